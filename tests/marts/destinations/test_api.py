"""Destinations over HTTP: any member makes one, nobody else sees it until it is shared, deleting is soft."""

from typing import Any

import pytest
from sqlalchemy import update

from headgate.pipelines.models import pipeline_table
from tests.spaces.connections.support import PLACE, SECRET, secrets_of
from tests.support.company import Api, Company


def create(api: Api, name: str = "Finance database", **more: Any) -> Any:
    body = {"name": name, "place": PLACE, "secrets": {"password": SECRET}, **more}
    return api.post("/api/destinations", body)


def created(millrace: Company, member: str = "Ben", **more: Any) -> dict[str, Any]:
    answer = create(millrace.as_(member), **more)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def path(found: dict[str, Any]) -> str:
    return f"/api/destinations/{found['id']}"


def test_any_member_makes_one_and_owns_it(millrace: Company) -> None:
    for member in ("Olga", "Tess", "Ben", "Dora"):
        found = created(millrace, member)
        assert [one["name"] for one in found["owners"]] == [member]
        assert (found["shared_for_use"], found["shared_for_maintenance"]) == (False, False)
        assert secrets_of(found) == {"password"}


def test_nobody_else_but_admins_sees_it_until_it_is_shared(millrace: Company) -> None:
    found = created(millrace)
    seen = {who: millrace.as_(who).get(path(found)).status_code for who in ("Adam", "Ben", "Tess", "Ana", "Bea")}
    assert seen == {"Adam": 200, "Ben": 200, "Tess": 404, "Ana": 404, "Bea": 404}
    shared = millrace.as_("Ben").change(change="share", resource=found["id"], for_use=True)
    assert shared.status_code == 200
    assert millrace.as_("Tess").get(path(found)).json()["allowed"] == ["see", "use"]
    assert millrace.as_("Ana").get(path(found)).status_code == 404
    edit = millrace.as_("Tess").request("PATCH", path(found), json={"name": "x"})
    assert edit.status_code == 403
    assert edit.json()["ways"]


def test_the_secret_is_given_to_nobody(millrace: Company) -> None:
    found = created(millrace)
    for who in ("Ben", "Olga"):
        assert SECRET not in millrace.as_(who).get(path(found)).text
    assert SECRET not in millrace.as_("Olga").get("/api/audit").text
    assert not [row for row in millrace.rows("SELECT value FROM place_secrets") if SECRET in row[0]]


def test_pointing_it_elsewhere_clears_its_secrets(millrace: Company) -> None:
    found, ben = created(millrace), millrace.as_("Ben")
    kept = ben.request("PATCH", path(found), json={"name": "Renamed", "place": {**PLACE, "user": "writer"}}).json()
    assert (kept["name"], secrets_of(kept), kept["place"]["version"]) == ("Renamed", {"password"}, 1)
    moved = ben.request("PATCH", path(found), json={"place": {**PLACE, "host": "evil.example.com"}}).json()
    assert (secrets_of(moved), moved["place"]["version"]) == (set(), 2)


def test_deleting_is_soft_and_tells_what_it_stops(millrace: Company) -> None:
    found, ben = created(millrace), millrace.as_("Ben")
    pipeline = millrace.id("pipeline", "Refine orders")
    to_it = update(pipeline_table).where(pipeline_table.c.id == pipeline).values(destination_id=found["id"])
    millrace.database.write(lambda connection: connection.execute(to_it))
    assert ben.get(path(found)).json()["users"] == {"reports": 0, "pipelines": 1}
    assert ben.request("DELETE", path(found)).json()["users"] == {"reports": 0, "pipelines": 1}
    assert ben.get(path(found)).status_code == 403
    assert millrace.as_("Tess").get(path(found)).status_code == 404
    assert found["id"] not in {one["id"] for one in ben.get("/api/destinations").json()["items"]}
    deleted = ben.get("/api/destinations", deleted=True).json()["items"]
    assert {one["id"]: one["allowed"] for one in deleted} == {found["id"]: ["restore"]}
    assert millrace.as_("Tess").request("POST", f"{path(found)}/restore").status_code == 404
    back = ben.request("POST", f"{path(found)}/restore").json()
    assert (back["deleted_at"], secrets_of(back)) == (None, {"password"})
    assert ben.request("POST", f"{path(found)}/restore").status_code == 403


def test_a_name_is_used_once_by_whoever_makes_it_and_tells_nothing_of_others(millrace: Company) -> None:
    created(millrace, "Ben")
    assert create(millrace.as_("Ben"), name="FINANCE database").status_code == 409
    assert create(millrace.as_("Bea")).status_code == 200
    other = created(millrace, "Ben", name="Other")
    again = millrace.as_("Ben").request("PATCH", path(other), json={"name": "Finance database"})
    assert again.status_code == 409


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ({"kind": "folder", "path": "/srv/out"}, "deliveries.folders"),
        ({"kind": "iceberg", "uri": "https://catalog.example.com"}, "unknown kind 'iceberg'"),
        ({**PLACE, "host": "192.168.1.1"}, "outgoing.allow"),
    ],
)
def test_what_cannot_be_used_is_refused_with_what_to_do(
    millrace_on_sqlite: Company, place: dict[str, Any], says: str
) -> None:
    answer = create(millrace_on_sqlite.as_("Ben"), place=place, secrets={})
    assert answer.status_code == 422
    assert says in answer.json()["detail"]
