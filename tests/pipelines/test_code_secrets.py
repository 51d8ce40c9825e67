"""Secrets for the code of notebooks: only of connections whose owner allowed code, for people who may use them now."""

from typing import Any

from tests.pipelines.pipeline_company import PipelineCompany, notebook, source
from tests.spaces.connections.support import SECRET


def allow(firm: PipelineCompany, connection: str, member: str = "Olga", *, on: bool) -> None:
    """As the owner of a connection, let code read its secrets, or no code any more."""
    firm.ok(firm.as_(member).request("PATCH", f"/api/connections/{connection}", json={"allow_code": on}))


def secret_of(connection: str) -> dict[str, str]:
    return {"name": "key", "connection": connection, "field": "password"}


def reading(connection: str) -> dict[str, Any]:
    """A notebook that reads the password of a connection."""
    return notebook((), ("mill.bread",), secrets=[secret_of(connection)])


def test_no_code_reads_a_secret_unless_the_owner_of_the_connection_allowed_code(
    firm: PipelineCompany,
) -> None:
    refused = firm.save("Olga", reading(firm.database))
    assert refused.status_code == 403
    assert "headgate connection change --allow-code" in refused.json()["detail"]
    plan = firm.as_("Olga").post("/api/pipelines/plan", {"definition": reading(firm.database)})
    assert plan.status_code == 403
    # Others may edit neither the connection nor this.
    patch = firm.as_("Adam").request("PATCH", f"/api/connections/{firm.database}", json={"allow_code": True})
    assert patch.status_code == 403
    allow(firm, firm.database, on=True)
    assert firm.as_("Olga").get(f"/api/connections/{firm.database}").json()["allows_code"] is True
    found = firm.made("Adam", reading(firm.database))
    hand, job = firm.claimed("Adam", found)
    assert job["endpoints"][0]["secrets"] == {"password": SECRET}
    hand.finish(job)
    allow(firm, firm.database, on=False)
    assert firm.start("Adam", found) == 403


def test_a_source_needs_no_leave_for_code(firm: PipelineCompany) -> None:
    found = firm.made("Adam", source(connection=firm.database, grain=True))
    assert firm.start("Adam", found) == 200


def test_a_run_that_waits_gets_no_secret_once_code_is_not_allowed(firm: PipelineCompany) -> None:
    allow(firm, firm.database, on=True)
    found = firm.made("Adam", reading(firm.database))
    run = firm.started("Adam", found)
    allow(firm, firm.database, on=False)
    assert firm.claim() == []
    assert firm.as_("Adam").get(f"/api/runs/{run}").json()["state"] == "blocked"


def test_a_fire_is_blocked_once_code_is_not_allowed(firm: PipelineCompany) -> None:
    allow(firm, firm.database, on=True)
    found = firm.made("Adam", reading(firm.database))
    trigger, state = firm.fired("Adam", found)
    assert state == "queued"
    allow(firm, firm.database, on=False)
    assert firm.fired("Adam", found, trigger) == (trigger, "blocked")
    assert firm.as_("Adam").get(f"/api/triggers/{trigger}").json()["enabled"] is False


def test_what_an_owner_allowed_ends_with_their_ownership(firm: PipelineCompany) -> None:
    allow(firm, firm.database, on=True)
    found = firm.made("Adam", reading(firm.database))
    firm.change(change="change_owner", resource=firm.database, owner="Adam")
    assert firm.as_("Adam").get(f"/api/connections/{firm.database}").json()["allows_code"] is False
    assert firm.start("Adam", found) == 403
    firm.change(change="change_owner", resource=firm.database, owner="Olga")
    assert firm.start("Adam", found) == 403, "what an earlier owner allowed does not come back"


def test_the_last_saver_needs_a_role_in_the_space_now(firm: PipelineCompany) -> None:
    allow(firm, firm.database, on=True)
    firm.grant("Ben", "editor", "layer:mill")
    firm.role("Ben", "can_consume_data")
    found = firm.made("Ben", reading(firm.database))
    assert firm.start("Adam", found) == 200
    firm.take("Ben", "can_consume_data")
    assert firm.start("Adam", found) == 403
    allow(firm, firm.database, on=False)


def test_of_a_task_both_the_last_saver_and_the_owner_of_the_project_need_a_role(
    firm: PipelineCompany,
) -> None:
    allow(firm, firm.database, on=True)
    for who in ("Tom", "Tess"):
        firm.grant(who, "editor", "layer:mill")
        firm.role(who, "can_consume_data")
    found = firm.made("Tom", reading(firm.database), project=firm.project)
    assert firm.start("Adam", found) == 200
    for who in ("Tom", "Tess"):
        firm.take(who, "can_consume_data")
        assert firm.start("Adam", found) == 403, who
        firm.role(who, "can_consume_data")
        assert firm.start("Adam", found) == 200
    allow(firm, firm.database, on=False)
