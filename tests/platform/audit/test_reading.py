"""What is recorded, and who may read it."""

from pathlib import Path

import pytest

from headgate.kit.database import Database
from headgate.schema import METADATA
from tests.support.company import Company, company
from tests.support.installation import eventually

pytestmark = pytest.mark.both_databases


def test_only_admins_read_the_log(millrace: Company) -> None:
    assert millrace.as_("Adam").get("/api/audit").status_code == 200
    for who in ("Tess", "Ben", "Dora"):
        assert millrace.as_(who).get("/api/audit").status_code == 403


def test_the_log_pages_newest_first_and_filters(millrace: Company) -> None:
    for level in ("viewer", "editor", "manager"):
        millrace.as_("Adam").change(change="grant", to="Ben", resource="layer:raw", level=level).raise_for_status()
    first = millrace.as_("Adam").get("/api/audit", limit=2, event="access.changed").json()
    assert [one["after"]["level"] for one in first["items"]] == ["manager", "editor"]
    rest = millrace.as_("Adam").get("/api/audit", limit=2, event="access.changed", cursor=first["next_cursor"]).json()
    assert [one["after"]["level"] for one in rest["items"]] == ["viewer"]
    assert rest["next_cursor"] is None
    raw = millrace.id("layer", "raw")
    assert len(millrace.as_("Adam").get("/api/audit", resource=raw).json()["items"]) == 3
    assert len(millrace.as_("Adam").get("/api/audit", resource="layer:raw").json()["items"]) == 3
    assert millrace.as_("Adam").get("/api/audit", actor="mbr_00000000000000000000").json()["items"] == []
    by_name = millrace.as_("Adam").get("/api/audit", actor="adam", event="access.changed").json()["items"]
    assert [one["actor_name"] for one in by_name] == ["Adam"] * 3
    for wrong in ({"actor": "nobody"}, {"resource": "layer:nothing"}, {"resource": "castle:x"}, {"resource": "raw"}):
        assert millrace.as_("Adam").get("/api/audit", **wrong).status_code == 422


def test_a_denied_look_is_recorded_whether_the_thing_exists_or_not(millrace: Company) -> None:
    hidden = millrace.id("table", "raw.orders")
    for one in (hidden, "tbl_00000000000000000000"):
        assert millrace.as_("Ben").get(f"/api/resources/{one}").status_code == 404
    found = millrace.as_("Adam").get("/api/audit", event="access.denied").json()["items"]
    assert [(one["resource"], one["action"]) for one in found] == [
        ("tbl_00000000000000000000", "see"),
        (hidden, "see"),
    ]


def test_a_decision_about_data_is_recorded_soon(millrace: Company) -> None:
    for action in ("see", "execute"):
        millrace.as_("Bea").post("/api/access/explain", {"action": action, "resource": "table:service.revenue"})
    eventually(lambda: millrace.rows("SELECT 1 FROM audit_events WHERE event = 'access.decided'"))
    found = millrace.as_("Adam").get("/api/audit", event="access.decided").json()["items"]
    assert [(one["action"], one["allowed"], one["via"]) for one in found] == [("execute", True, ["Viewer"])]


def test_looks_are_recorded_only_if_the_settings_want_it(tmp_path: Path) -> None:
    for mode, expected in (("data", 0), ("all", 2)):
        database = Database(f"sqlite:///{tmp_path}/{mode}.db")
        METADATA.create_all(database.engine)
        with company(database, tmp_path, audit={"reads": mode}) as found:
            found.as_("Ben").get(f"/api/resources/{found.id('data_mart', 'Revenue')}")
            found.as_("Ben").get("/api/resources", kind="data_mart")
        # Whatever is to be written is, when the company ends.
        with database.read() as connection:
            told = connection.exec_driver_sql("SELECT 1 FROM audit_events WHERE event = 'resource.read'").all()
        assert len(told) == expected
        database.close()
