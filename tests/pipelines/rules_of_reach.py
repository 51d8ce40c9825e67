"""The access model's section 6.7: what a run reaches."""

from tests.pipelines.rules import GRAIN, rule
from tests.pipelines.works import Works, history
from tests.support.company import Api


@rule("6.7: a run reaches only what its definition declared and was judged for when it was saved")
def reach(works: Works) -> None:
    found = works.made("Adam", history("land.grain", "mill.bread"))
    _, job = works.claimed("Adam", found)
    run = Api(works.company.client, job["token"])
    assert run.get("/iceberg/v1/namespaces").json()["namespaces"] == [["land"], ["mill"]]
    made = {one: run.post("/iceberg/v1/namespaces/mill/tables", {"name": one, "schema": SCHEMA}) for one in OUTPUTS}
    assert [made[one].status_code for one in OUTPUTS] == [200, 404, 404], {k: v.text for k, v in made.items()}
    assert made["cake"].text == made["fresh"].text, "undeclared tables do not exist for it"
    for path in ("/api/pipelines", f"/api/runs/{job['id']}", "/api/tables", "/api/access/me"):
        assert run.get(path).status_code == 401, "its token is the catalog's alone"


SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
OUTPUTS = ("bread", "cake", "fresh")


@rule("6.7: … by id: a table dropped and created again is another table")
def reach_by_id(works: Works) -> None:
    works.tables("mill.tart")
    found = works.made("Adam", history("land.grain", "mill.tart"))
    before = works.company.id("table", "mill.tart")
    works.ok(works.as_("Adam").request("DELETE", f"/api/tables/{before}"))
    works.tables("mill.tart")
    assert works.company.id("table", "mill.tart") != before
    run = works.started("Adam", found)
    assert works.claim() == []
    ended = works.as_("Adam").get(f"/api/runs/{run}").json()
    assert (ended["state"], "mill.tart does not exist any more" in ended["error"]) == ("failed", True)


@rule("6.7: … ∩ the rights, now, of the member it acts for")
def reach_now(works: Works) -> None:
    works.grant("Ben", "editor", GRAIN, "layer:mill")
    found = works.made("Ben", history())
    _, job = works.claimed("Ben", found)
    run = Api(works.company.client, job["token"])
    works.revoke("Ben", "editor", "layer:mill")
    answer = run.post("/iceberg/v1/namespaces/mill/tables", {"name": "bread", "schema": SCHEMA})
    assert answer.status_code in {403, 404}, answer.text
    works.revoke("Ben", "editor", GRAIN)
    assert run.get("/iceberg/v1/namespaces").json()["namespaces"] == []


@rule("6.7: … what its definition declared … when it was saved (one saved since is not the one that was started)")
def saved_since(works: Works) -> None:
    works.grant("Ben", "editor", GRAIN, "table:land.flour", "layer:mill")
    found = works.made("Ben", history("land.grain"))
    run = works.started("Ben", found)
    assert works.patch("Ben", found, definition=history("land.flour")) == 200
    assert works.claim() == []
    ended = works.as_("Ben").get(f"/api/runs/{run}").json()
    assert (ended["state"], "saved since" in ended["error"]) == ("blocked", True)
    run = works.started("Ben", found)
    assert works.patch("Adam", found, definition=history("land.flour")) == 200
    assert works.claim() == []
    assert "another member" in works.as_("Ben").get(f"/api/runs/{run}").json()["error"]
