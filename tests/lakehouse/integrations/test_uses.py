"""What an integration reads is counted, by whatever way it reads."""

from pathlib import Path

from headgate.kit.database import Database
from headgate.schema import METADATA
from tests.lakehouse.catalog.support import ROWS, lake
from tests.lakehouse.integrations.test_api import PLACE
from tests.support.company import Api
from tests.support.installation import eventually


def test_reads_of_an_engine_and_previews_are_counted(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/headgate.db")
    METADATA.create_all(database.engine)
    with lake(database, tmp_path) as found:
        found.engine("Tess").create_table("raw.events", ROWS.schema).append(ROWS)
        adam = found.company.as_("Adam")
        made = adam.post(PLACE, {"name": "Charts", "tables": ["raw.events"]}).json()
        assert found.engine_by(made["secret"]).load_table("raw.events").scan().to_arrow().num_rows == 3
        table = found.company.id("table", "raw.events")
        assert Api(found.company.client, made["secret"]).get(f"/api/tables/{table}/preview").status_code == 200
        # What is read is written down a moment later.
        eventually(lambda: [one["reads"] for one in adam.get(f"{PLACE}/{made['id']}").json()["uses"]] == [2])
        eventually(lambda: adam.get(f"{PLACE}/{made['id']}").json()["last_used_at"] is not None)
