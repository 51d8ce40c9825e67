"""The access model's section 6.7: what a run reaches."""

from tests.pipelines.pipeline_company import PipelineCompany, history
from tests.pipelines.rules import GRAIN, rule
from tests.support.company import Api


@rule("6.7: a run reaches only what its definition declared and was judged for when it was saved")
def reach(pipeline_company: PipelineCompany) -> None:
    found = pipeline_company.made("Adam", history("land.grain", "mill.bread"))
    _, job = pipeline_company.claimed("Adam", found)
    run = Api(pipeline_company.company.client, job["token"])
    assert run.get("/iceberg/v1/namespaces").json()["namespaces"] == [["land"], ["mill"]]
    made = {one: run.post("/iceberg/v1/namespaces/mill/tables", {"name": one, "schema": SCHEMA}) for one in OUTPUTS}
    assert [made[one].status_code for one in OUTPUTS] == [200, 404, 404], {k: v.text for k, v in made.items()}
    assert made["cake"].text == made["fresh"].text, "undeclared tables do not exist for it"
    for path in ("/api/pipelines", f"/api/runs/{job['id']}", "/api/tables", "/api/access/me"):
        assert run.get(path).status_code == 401, "its token is the catalog's alone"


SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
OUTPUTS = ("bread", "cake", "fresh")


@rule("6.7: … by id: a table dropped and created again is another table")
def reach_by_id(pipeline_company: PipelineCompany) -> None:
    pipeline_company.tables("mill.tart")
    found = pipeline_company.made("Adam", history("land.grain", "mill.tart"))
    before = pipeline_company.company.id("table", "mill.tart")
    pipeline_company.ok(pipeline_company.as_("Adam").request("DELETE", f"/api/tables/{before}"))
    pipeline_company.tables("mill.tart")
    assert pipeline_company.company.id("table", "mill.tart") != before
    run = pipeline_company.started("Adam", found)
    assert pipeline_company.claim() == []
    ended = pipeline_company.as_("Adam").get(f"/api/runs/{run}").json()
    assert (ended["state"], "mill.tart does not exist any more" in ended["error"]) == ("failed", True)


@rule("6.7: … ∩ the rights, now, of the member it acts for")
def reach_now(pipeline_company: PipelineCompany) -> None:
    pipeline_company.grant("Ben", "editor", GRAIN, "layer:mill")
    found = pipeline_company.made("Ben", history())
    _, job = pipeline_company.claimed("Ben", found)
    run = Api(pipeline_company.company.client, job["token"])
    pipeline_company.revoke("Ben", "editor", "layer:mill")
    answer = run.post("/iceberg/v1/namespaces/mill/tables", {"name": "bread", "schema": SCHEMA})
    assert answer.status_code in {403, 404}, answer.text
    pipeline_company.revoke("Ben", "editor", GRAIN)
    assert run.get("/iceberg/v1/namespaces").json()["namespaces"] == []


@rule("6.7: … what its definition declared … when it was saved (one saved since is not the one that was started)")
def saved_since(pipeline_company: PipelineCompany) -> None:
    pipeline_company.grant("Ben", "editor", GRAIN, "table:land.flour", "layer:mill")
    found = pipeline_company.made("Ben", history("land.grain"))
    run = pipeline_company.started("Ben", found)
    assert pipeline_company.patch("Ben", found, definition=history("land.flour")) == 200
    assert pipeline_company.claim() == []
    ended = pipeline_company.as_("Ben").get(f"/api/runs/{run}").json()
    assert (ended["state"], "saved since" in ended["error"]) == ("blocked", True)
    run = pipeline_company.started("Ben", found)
    assert pipeline_company.patch("Adam", found, definition=history("land.flour")) == 200
    assert pipeline_company.claim() == []
    assert "another member" in pipeline_company.as_("Ben").get(f"/api/runs/{run}").json()["error"]
