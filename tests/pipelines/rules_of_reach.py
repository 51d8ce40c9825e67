"""The access model's section 6.7: what a run reaches."""

from tests.pipelines.pipeline_company import PipelineCompany, history
from tests.pipelines.rules import GRAIN, rule
from tests.support.company import Api


@rule("6.7: a run reaches only what its definition declared and was judged for when it was saved")
def reach(firm: PipelineCompany) -> None:
    found = firm.made("Adam", history("land.grain", "mill.bread"))
    _, job = firm.claimed("Adam", found)
    run = Api(firm.company.client, job["token"])
    assert run.get("/iceberg/v1/namespaces").json()["namespaces"] == [["land"], ["mill"]]
    made = {one: run.post("/iceberg/v1/namespaces/mill/tables", {"name": one, "schema": SCHEMA}) for one in OUTPUTS}
    assert [made[one].status_code for one in OUTPUTS] == [200, 404, 404], {k: v.text for k, v in made.items()}
    assert made["cake"].text == made["fresh"].text, "undeclared tables do not exist for it"
    for path in ("/api/pipelines", f"/api/runs/{job['id']}", "/api/tables", "/api/access/me"):
        assert run.get(path).status_code == 401, "its token is the catalog's alone"


SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
OUTPUTS = ("bread", "cake", "fresh")


@rule("6.7: … by id: a table dropped and created again is another table")
def reach_by_id(firm: PipelineCompany) -> None:
    firm.tables("mill.tart")
    found = firm.made("Adam", history("land.grain", "mill.tart"))
    before = firm.company.id("table", "mill.tart")
    firm.ok(firm.as_("Adam").request("DELETE", f"/api/tables/{before}"))
    firm.tables("mill.tart")
    assert firm.company.id("table", "mill.tart") != before
    run = firm.started("Adam", found)
    assert firm.claim() == []
    ended = firm.as_("Adam").get(f"/api/runs/{run}").json()
    assert (ended["state"], "mill.tart does not exist any more" in ended["error"]) == ("failed", True)


@rule("6.7: … ∩ the rights, now, of the member it acts for")
def reach_now(firm: PipelineCompany) -> None:
    firm.grant("Ben", "editor", GRAIN, "layer:mill")
    found = firm.made("Ben", history())
    _, job = firm.claimed("Ben", found)
    run = Api(firm.company.client, job["token"])
    firm.revoke("Ben", "editor", "layer:mill")
    answer = run.post("/iceberg/v1/namespaces/mill/tables", {"name": "bread", "schema": SCHEMA})
    assert answer.status_code in {403, 404}, answer.text
    firm.revoke("Ben", "editor", GRAIN)
    assert run.get("/iceberg/v1/namespaces").json()["namespaces"] == []


@rule("6.7: … what its definition declared … when it was saved (one saved since is not the one that was started)")
def saved_since(firm: PipelineCompany) -> None:
    firm.grant("Ben", "editor", GRAIN, "table:land.flour", "layer:mill")
    found = firm.made("Ben", history("land.grain"))
    run = firm.started("Ben", found)
    assert firm.patch("Ben", found, definition=history("land.flour")) == 200
    assert firm.claim() == []
    ended = firm.as_("Ben").get(f"/api/runs/{run}").json()
    assert (ended["state"], "saved since" in ended["error"]) == ("blocked", True)
    run = firm.started("Ben", found)
    assert firm.patch("Adam", found, definition=history("land.flour")) == 200
    assert firm.claim() == []
    assert "another member" in firm.as_("Ben").get(f"/api/runs/{run}").json()["error"]
