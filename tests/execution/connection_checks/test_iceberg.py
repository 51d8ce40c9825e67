"""Another Iceberg REST catalog, asked by a worker: here, that of an installation of our own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.kit.database import Database
from headgate.schema import METADATA
from tests.execution.connection_checks.support import endpoint, failure_of, said, settings, streams_of
from tests.lakehouse.catalog.support import Lake, lake
from tests.support import api as apis
from tests.support.api import SECRET, USER, Reply

COLUMNS = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "name", StringType(), required=False),
    identifier_field_ids=[1],
)


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Lake]:
    database = Database(f"sqlite:///{tmp_path}/headgate.db")
    METADATA.create_all(database.engine)
    with lake(database, tmp_path) as found:
        yield found


def place(other: Lake, token: str) -> Endpoint:
    return endpoint("iceberg", {"uri": f"{other.url}/iceberg", "auth": {"style": "bearer"}}, token=token)


def test_a_catalog_shows_the_tables_that_its_token_may_see(other: Lake) -> None:
    for name in ("raw.events", "trusted.events"):
        other.engine("Tess").create_table(name, COLUMNS)
    tess = place(other, other.company.token("Tess"))
    assert said(tess) == "Connected to the catalog; it lists 3 namespaces"
    found = streams_of(tess, pattern="raw.*")
    assert found["raw.events"]["keys"] == ["id"]
    assert found["raw.events"]["columns"] == [
        {"name": "id", "type": "long", "nullable": False},
        {"name": "name", "type": "string", "nullable": True},
    ]
    assert list(streams_of(place(other, other.company.token("Ana")))) == ["trusted.events"]


def test_what_is_wrong_with_a_catalog_is_said_with_what_to_do(other: Lake) -> None:
    good = place(other, other.company.token("Tess"))
    assert failure_of(place(other, "hgt_not-a-token")).code == "WRONG_CREDENTIALS"
    assert failure_of(good, settings()).code == "ADDRESS_REFUSED"
    elsewhere = endpoint("iceberg", {"uri": f"{other.url}/nowhere"})
    assert failure_of(elsewhere).code in {"NO_SUCH_PATH", "NOT_A_CATALOG"}


def test_what_is_no_catalog_is_told_apart_and_hurts_nothing() -> None:
    with apis.serving() as api:
        place = endpoint("iceberg", {"uri": api.url})
        for odd in ([1, 2], {"namespaces": 7}, {"namespaces": [3]}, b"<html>"):
            api.on("/v1/config", lambda _: Reply({}))
            api.on("/v1/namespaces", lambda _, odd=odd: Reply(odd))
            assert failure_of(place).code == "NOT_A_CATALOG"


def test_a_catalog_gives_a_token_for_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    with apis.serving() as api:
        auth = {"style": "oauth2", "client_id": USER, "token_url": f"{api.url}/token", "scope": "all"}
        config = {"uri": api.url, "warehouse": "a b", "auth": auth}
        api.on("/v1/config", lambda seen: Reply({"overrides": {"prefix": "w"}}))
        api.on("/v1/w/namespaces", lambda seen: Reply({"namespaces": [["x"]]}))
        assert (
            said(endpoint("iceberg", config, client_secret=SECRET)) == "Connected to the catalog; it lists 1 namespaces"
        )
        asked = {one.path: one for one in api.seen}
        assert asked["/v1/config"].parameters == {"warehouse": "a b"}
        assert asked["/v1/w/namespaces"].headers["authorization"] == "Bearer token-1-all"
        assert failure_of(endpoint("iceberg", config, client_secret="x" * 9)).code == "API_UNAUTHORIZED"
