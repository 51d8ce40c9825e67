"""Secrets for the code of notebooks: only of connections whose owner allowed code, for people who may use them now."""

from typing import Any

from tests.pipelines.pipeline_company import PipelineCompany, notebook, source
from tests.spaces.connections.support import SECRET


def allow(pipeline_company: PipelineCompany, connection: str, member: str = "Olga", *, on: bool) -> None:
    """As the owner of a connection, let code read its secrets, or no code any more."""
    pipeline_company.ok(
        pipeline_company.as_(member).request("PATCH", f"/api/connections/{connection}", json={"allow_code": on})
    )


def secret_of(connection: str) -> dict[str, str]:
    return {"name": "key", "connection": connection, "field": "password"}


def reading(connection: str) -> dict[str, Any]:
    """A notebook that reads the password of a connection."""
    return notebook((), ("mill.bread",), secrets=[secret_of(connection)])


def test_no_code_reads_a_secret_unless_the_owner_of_the_connection_allowed_code(
    pipeline_company: PipelineCompany,
) -> None:
    refused = pipeline_company.save("Olga", reading(pipeline_company.database))
    assert refused.status_code == 403
    assert "headgate connection change --allow-code" in refused.json()["detail"]
    plan = pipeline_company.as_("Olga").post("/api/pipelines/plan", {"definition": reading(pipeline_company.database)})
    assert plan.status_code == 403
    # Others may edit neither the connection nor this.
    patch = pipeline_company.as_("Adam").request(
        "PATCH", f"/api/connections/{pipeline_company.database}", json={"allow_code": True}
    )
    assert patch.status_code == 403
    allow(pipeline_company, pipeline_company.database, on=True)
    assert (
        pipeline_company.as_("Olga").get(f"/api/connections/{pipeline_company.database}").json()["allows_code"] is True
    )
    found = pipeline_company.made("Adam", reading(pipeline_company.database))
    hand, job = pipeline_company.claimed("Adam", found)
    assert job["endpoints"][0]["secrets"] == {"password": SECRET}
    hand.finish(job)
    allow(pipeline_company, pipeline_company.database, on=False)
    assert pipeline_company.start("Adam", found) == 403


def test_a_source_needs_no_leave_for_code(pipeline_company: PipelineCompany) -> None:
    found = pipeline_company.made("Adam", source(connection=pipeline_company.database, grain=True))
    assert pipeline_company.start("Adam", found) == 200


def test_a_run_that_waits_gets_no_secret_once_code_is_not_allowed(pipeline_company: PipelineCompany) -> None:
    allow(pipeline_company, pipeline_company.database, on=True)
    found = pipeline_company.made("Adam", reading(pipeline_company.database))
    run = pipeline_company.started("Adam", found)
    allow(pipeline_company, pipeline_company.database, on=False)
    assert pipeline_company.claim() == []
    assert pipeline_company.as_("Adam").get(f"/api/runs/{run}").json()["state"] == "blocked"


def test_a_fire_is_blocked_once_code_is_not_allowed(pipeline_company: PipelineCompany) -> None:
    allow(pipeline_company, pipeline_company.database, on=True)
    found = pipeline_company.made("Adam", reading(pipeline_company.database))
    trigger, state = pipeline_company.fired("Adam", found)
    assert state == "queued"
    allow(pipeline_company, pipeline_company.database, on=False)
    assert pipeline_company.fired("Adam", found, trigger) == (trigger, "blocked")
    assert pipeline_company.as_("Adam").get(f"/api/triggers/{trigger}").json()["enabled"] is False


def test_what_an_owner_allowed_ends_with_their_ownership(pipeline_company: PipelineCompany) -> None:
    allow(pipeline_company, pipeline_company.database, on=True)
    found = pipeline_company.made("Adam", reading(pipeline_company.database))
    pipeline_company.change(change="change_owner", resource=pipeline_company.database, owner="Adam")
    assert (
        pipeline_company.as_("Adam").get(f"/api/connections/{pipeline_company.database}").json()["allows_code"] is False
    )
    assert pipeline_company.start("Adam", found) == 403
    pipeline_company.change(change="change_owner", resource=pipeline_company.database, owner="Olga")
    assert pipeline_company.start("Adam", found) == 403, "what an earlier owner allowed does not come back"


def test_the_last_saver_needs_a_role_in_the_space_now(pipeline_company: PipelineCompany) -> None:
    allow(pipeline_company, pipeline_company.database, on=True)
    pipeline_company.grant("Ben", "editor", "layer:mill")
    pipeline_company.role("Ben", "can_consume_data")
    found = pipeline_company.made("Ben", reading(pipeline_company.database))
    assert pipeline_company.start("Adam", found) == 200
    pipeline_company.take("Ben", "can_consume_data")
    assert pipeline_company.start("Adam", found) == 403
    allow(pipeline_company, pipeline_company.database, on=False)


def test_of_a_task_both_the_last_saver_and_the_owner_of_the_project_need_a_role(
    pipeline_company: PipelineCompany,
) -> None:
    allow(pipeline_company, pipeline_company.database, on=True)
    for who in ("Tom", "Tess"):
        pipeline_company.grant(who, "editor", "layer:mill")
        pipeline_company.role(who, "can_consume_data")
    found = pipeline_company.made("Tom", reading(pipeline_company.database), project=pipeline_company.project)
    assert pipeline_company.start("Adam", found) == 200
    for who in ("Tom", "Tess"):
        pipeline_company.take(who, "can_consume_data")
        assert pipeline_company.start("Adam", found) == 403, who
        pipeline_company.role(who, "can_consume_data")
        assert pipeline_company.start("Adam", found) == 200
    allow(pipeline_company, pipeline_company.database, on=False)
