"""The Python client, against a server."""

from pathlib import Path

import pytest

from headgate.client import Headgate, HeadgateError
from tests.support.installation import Installation


def test_the_client_asks_changes_and_pages(tmp_path: Path) -> None:
    one = Installation(tmp_path)
    one.fill()
    tokens = {name: one.token(name) for name in ("Adam", "Tess", "Ben")}
    with one.serving() as address:
        with Headgate(address, tokens["Ben"]) as ben, Headgate(address, tokens["Tess"]) as tess:
            assert ben.me().name == "Ben"
            (mart,) = ben.resources("data_mart")
            assert (mart.name, mart.allowed) == ("Revenue", ("see", "use"))
            assert ben.resource(mart.id) == mart
            assert not ben.can("edit", "data_mart:Revenue")
            assert {way.path for way in ben.explain("edit", "data_mart:Revenue").ways} >= {"admin"}
            foretold = tess.what_if("share", resource="data_mart:Revenue", for_maintenance=True)
            assert {item.member for item in foretold.items} == {"Ana"}
            assert tess.change("share", resource="data_mart:Revenue", for_maintenance=True).via == ["technical owner"]
            assert [person.name for person in tess.who_can("edit", "data_mart:Revenue")] == [
                "Adam",
                "Ana",
                "Olga",
                "Tess",
            ]
            assert [found.name for found in tess.what_can("volume")] == ["raw.invoices"]
            made = tess.make_token("nightly", read_only=True)
            with Headgate(address, made.token) as narrow:
                assert narrow.me().read_only
            with pytest.raises(HeadgateError, match="change the sharing toggles") as refused:
                ben.change("share", resource="data_mart:Revenue", for_use=False)
            assert (refused.value.status, refused.value.code) == (403, "denied")
        with Headgate(address, tokens["Adam"]) as adam:
            assert len(list(adam.members())) == 8
            assert "/link#hgi_" in (adam.invite("nell@example.com", "business").link or "")
        with Headgate(address, "hgt_nothing") as nobody, pytest.raises(HeadgateError) as unknown:
            nobody.me()
        assert unknown.value.status == 401
