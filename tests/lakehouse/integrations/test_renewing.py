"""An integration that gets another token is still the same: how it was used before is not forgotten."""

from pathlib import Path

from tests.lakehouse.catalog.support import ROWS, lake
from tests.lakehouse.integrations.test_api import PLACE
from tests.support.company import Api
from tests.support.databases import on_sqlite
from tests.support.installation import eventually


def test_reads_by_tokens_before_are_counted_too(tmp_path: Path) -> None:
    with lake(on_sqlite(tmp_path), tmp_path) as found:
        found.engine("Tess").create_table("raw.events", ROWS.schema).append(ROWS)
        table, adam = found.company.id("table", "raw.events"), found.company.as_("Adam")
        made, other = (
            adam.post(PLACE, {"name": name, "tables": ["raw.events"]}).json() for name in ("Charts", "Other")
        )
        place = f"{PLACE}/{made['id']}"

        def reads(secret: str, sum_of: int) -> str:
            assert Api(found.company.client, secret).get(f"/api/tables/{table}/preview").status_code == 200
            # What is read is written down a moment later.
            eventually(lambda: [one["reads"] for one in adam.get(place).json()["uses"]] == [sum_of])
            eventually(lambda: adam.get(place).json()["last_used_at"] is not None)
            return str(adam.get(place).json()["last_used_at"])

        at = reads(made["secret"], 1)
        renewed = adam.post(f"{place}/token", {}).json()["secret"]
        shown = adam.get(place).json()
        assert ([one["reads"] for one in shown["uses"]], shown["last_used_at"]) == ([1], at)
        listed = {one["name"]: one["last_used_at"] for one in adam.get(PLACE).json()["items"]}
        assert (listed["Charts"], listed["Other"]) == (at, None)
        assert reads(renewed, 2) >= at
        assert adam.get(f"{PLACE}/{other['id']}").json()["uses"] == []
        assert adam.request("DELETE", place).status_code == 200
        assert found.rows("SELECT COUNT(*) FROM integration_tokens") == [(1,)]
