"""Data spaces over HTTP, as far as connections need them."""

from tests.spaces.connections.support import add, added
from tests.support.company import Company


def test_who_creates_a_space_owns_it(millrace: Company) -> None:
    answers = {
        who: millrace.as_(who).post("/api/spaces", {"name": "Mill data"}).status_code
        for who in ("Olga", "Dora", "Tess", "Ben")
    }
    assert answers == {"Olga": 200, "Dora": 200, "Tess": 403, "Ben": 403}
    again = millrace.as_("Dora").post("/api/spaces", {"name": "mill DATA"})
    assert again.status_code == 409
    found = [one for one in millrace.as_("Dora").get("/api/spaces").json()["items"] if one["name"] == "Mill data"]
    assert {one["owner"]["name"] for one in found} == {"Olga", "Dora"}


def test_a_space_is_seen_by_who_has_a_role_in_it(millrace: Company) -> None:
    space = millrace.id("space", "Sales data")
    seen = {who: millrace.as_(who).get(f"/api/spaces/{space}").status_code for who in ("Tess", "Tom", "Bea", "Ben")}
    assert seen == {"Tess": 200, "Tom": 200, "Bea": 200, "Ben": 200}
    own = millrace.id("space", "Tom's own")
    assert millrace.as_("Tom").get(f"/api/spaces/{own}").json()["personal"]
    assert millrace.as_("Tess").get(f"/api/spaces/{own}").status_code == 404
    assert [one["name"] for one in millrace.as_("Bea").get("/api/spaces").json()["items"]] == ["Sales data"]


def test_a_role_in_a_space_shares_the_connections_in_it(millrace: Company) -> None:
    space = millrace.as_("Dora").post("/api/spaces", {"name": "Mill data"}).json()
    found = added(millrace, "Dora", space="Mill data")
    path = f"/api/connections/{found['id']}"
    assert millrace.as_("Tess").get(path).status_code == 404
    given = {"change": "give_space_role", "space": space["id"], "to": "Tess", "space_role": "can_consume_data"}
    assert millrace.as_("Dora").change(**given).status_code == 200
    assert "connect" in millrace.as_("Tess").get(path).json()["allowed"]


def test_a_hidden_space_makes_no_name_ambiguous(millrace: Company) -> None:
    for who in ("Olga", "Dora"):
        millrace.as_(who).post("/api/spaces", {"name": "Mill data"}).raise_for_status()
    both = add(millrace.as_("Dora"), space="Mill data")
    assert both.status_code == 409
    assert "Give the id" in both.json()["detail"]
    own = next(
        one["id"] for one in millrace.as_("Dora").get("/api/spaces").json()["items"] if one["owner"]["name"] == "Dora"
    )
    given = {"change": "give_space_role", "space": own, "to": "Tess", "space_role": "can_manage"}
    millrace.as_("Dora").change(**given).raise_for_status()
    assert add(millrace.as_("Tess"), space="Mill data").json()["space"]["id"] == own
