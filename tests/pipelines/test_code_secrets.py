"""Secrets for the code of notebooks: only of connections whose owner allowed code, for people who may use them now."""

from typing import Any

from tests.pipelines.works import Works, notebook, source
from tests.spaces.connections.support import SECRET


def allow(works: Works, connection: str, member: str = "Olga", *, on: bool) -> None:
    """As the owner of a connection, let code read its secrets, or no code any more."""
    works.ok(works.as_(member).request("PATCH", f"/api/connections/{connection}", json={"allow_code": on}))


def secret_of(connection: str) -> dict[str, str]:
    return {"name": "key", "connection": connection, "field": "password"}


def reading(connection: str) -> dict[str, Any]:
    """A notebook that reads the password of a connection."""
    return notebook((), ("mill.bread",), secrets=[secret_of(connection)])


def test_no_code_reads_a_secret_unless_the_owner_of_the_connection_allowed_code(works: Works) -> None:
    refused = works.save("Olga", reading(works.database))
    assert refused.status_code == 403
    assert "headgate connection change --allow-code" in refused.json()["detail"]
    plan = works.as_("Olga").post("/api/pipelines/plan", {"definition": reading(works.database)})
    assert plan.status_code == 403
    # Others may edit neither the connection nor this.
    patch = works.as_("Adam").request("PATCH", f"/api/connections/{works.database}", json={"allow_code": True})
    assert patch.status_code == 403
    allow(works, works.database, on=True)
    assert works.as_("Olga").get(f"/api/connections/{works.database}").json()["allows_code"] is True
    found = works.made("Adam", reading(works.database))
    hand, job = works.claimed("Adam", found)
    assert job["endpoints"][0]["secrets"] == {"password": SECRET}
    hand.finish(job)
    allow(works, works.database, on=False)
    assert works.start("Adam", found) == 403


def test_a_source_needs_no_leave_for_code(works: Works) -> None:
    found = works.made("Adam", source(connection=works.database, grain=True))
    assert works.start("Adam", found) == 200


def test_a_run_that_waits_gets_no_secret_once_code_is_not_allowed(works: Works) -> None:
    allow(works, works.database, on=True)
    found = works.made("Adam", reading(works.database))
    run = works.started("Adam", found)
    allow(works, works.database, on=False)
    assert works.claim() == []
    assert works.as_("Adam").get(f"/api/runs/{run}").json()["state"] == "blocked"


def test_a_fire_is_blocked_once_code_is_not_allowed(works: Works) -> None:
    allow(works, works.database, on=True)
    found = works.made("Adam", reading(works.database))
    trigger, state = works.fired("Adam", found)
    assert state == "queued"
    allow(works, works.database, on=False)
    assert works.fired("Adam", found, trigger) == (trigger, "blocked")
    assert works.as_("Adam").get(f"/api/triggers/{trigger}").json()["enabled"] is False


def test_what_an_owner_allowed_ends_with_their_ownership(works: Works) -> None:
    allow(works, works.database, on=True)
    found = works.made("Adam", reading(works.database))
    works.change(change="change_owner", resource=works.database, owner="Adam")
    assert works.as_("Adam").get(f"/api/connections/{works.database}").json()["allows_code"] is False
    assert works.start("Adam", found) == 403
    works.change(change="change_owner", resource=works.database, owner="Olga")
    assert works.start("Adam", found) == 403, "what an earlier owner allowed does not come back"


def test_the_last_saver_needs_a_role_in_the_space_now(works: Works) -> None:
    allow(works, works.database, on=True)
    works.grant("Ben", "editor", "layer:mill")
    works.role("Ben", "can_consume_data")
    found = works.made("Ben", reading(works.database))
    assert works.start("Adam", found) == 200
    works.take("Ben", "can_consume_data")
    assert works.start("Adam", found) == 403
    allow(works, works.database, on=False)


def test_of_a_task_both_the_last_saver_and_the_owner_of_the_project_need_a_role(works: Works) -> None:
    allow(works, works.database, on=True)
    for who in ("Tom", "Tess"):
        works.grant(who, "editor", "layer:mill")
        works.role(who, "can_consume_data")
    found = works.made("Tom", reading(works.database), project=works.project)
    assert works.start("Adam", found) == 200
    for who in ("Tom", "Tess"):
        works.take(who, "can_consume_data")
        assert works.start("Adam", found) == 403, who
        works.role(who, "can_consume_data")
        assert works.start("Adam", found) == 200
    allow(works, works.database, on=False)
