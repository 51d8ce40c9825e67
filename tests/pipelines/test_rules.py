"""The access model's rules about pipelines, sections 4 and 6, as members meet them over HTTP.

Each case names the sentence that it proves. Their worlds are tests/access/worlds/rules_4_*.yaml and joints_*.yaml; more
about fires is in tests/pipelines/triggers, about integrations in tests/lakehouse/integrations, about a run's reach in tests/lakehouse/catalog.
"""

import time
from datetime import timedelta

import pytest
from sqlalchemy import update

from headgate.kit.clock import now
from headgate.platform.authorization.fact_tables import grant_table
from tests.pipelines import rules_of_reach  # noqa: F401 - it enters its cases
from tests.pipelines.pipeline_company import PipelineCompany, delivery, history, notebook, source
from tests.pipelines.rules import BREAD, GRAIN, RULES, Case, rule
from tests.support.company import Api

EDITS = {"see", "see_runs", "follow", "edit", "activate", "trigger"}


# Section 4


@rule("4: see pipelines, see runs: Viewer. Add, edit, activate, trigger: Editor. Delete pipelines: Manager")
def levels(pipeline_company: PipelineCompany) -> None:
    found = pipeline_company.made("Adam", history())
    run = pipeline_company.started("Adam", found)
    body = {"definition": history(keys=["id", "day"])}
    expected = {None: (404,) * 7, "viewer": (200, 200, 200, 403, 403, 403, 403), "editor": (200,) * 6 + (403,)}
    for level, statuses in {**expected, "manager": (200,) * 7}.items():
        if level:
            pipeline_company.grant("Ben", level, GRAIN, "layer:mill")
        ben = pipeline_company.as_("Ben")
        asked = (
            ben.get(f"/api/pipelines/{found}").status_code,
            ben.get(f"/api/pipelines/{found}/runs").status_code,
            ben.get(f"/api/runs/{run}/log").status_code,
            pipeline_company.patch("Ben", found, **body),
            pipeline_company.patch("Ben", found, active=True),
            pipeline_company.start("Ben", found),
        )
        pipeline_company.as_("Olga").post(f"/api/runs/{run}/cancel", None)
        assert (*asked, pipeline_company.delete("Ben", found)) == statuses, level


@rule("4: an action's level is needed on every table or volume that the pipeline reads or writes")
def every_table(pipeline_company: PipelineCompany) -> None:
    found = pipeline_company.made("Adam", notebook(("land.grain",), ("mill.bread",), volumes=["land.crates"]))
    pipeline_company.grant("Ben", "editor", GRAIN, BREAD)
    assert pipeline_company.may("Ben", found) == set()
    pipeline_company.grant("Ben", "viewer", "volume:land.crates")
    assert pipeline_company.may("Ben", found) == {"see", "see_runs", "follow"}
    pipeline_company.grant("Ben", "editor", "volume:land.crates")
    assert pipeline_company.may("Ben", found) == EDITS
    pipeline_company.grant("Ben", "manager", GRAIN, BREAD)
    assert pipeline_company.may("Ben", found) == EDITS
    pipeline_company.grant("Ben", "manager", "volume:land.crates")
    assert pipeline_company.may("Ben", found) == {*EDITS, "delete"}


@rule("4: otherwise the output layer does not count")
def no_output_layer(pipeline_company: PipelineCompany) -> None:
    found = pipeline_company.made("Adam", history())
    pipeline_company.grant("Ben", "editor", GRAIN, BREAD)
    assert pipeline_company.may("Ben", found) == EDITS
    assert pipeline_company.patch("Ben", found, definition=history(keys=["day"])) == 200


@rule("4: a listed one that does not exist counts as its layer")
def missing_tables(pipeline_company: PipelineCompany) -> None:
    found = pipeline_company.made("Adam", notebook(("land.nothing",), ("mill.bread",)))
    pipeline_company.grant("Ben", "editor", GRAIN, BREAD)
    assert pipeline_company.may("Ben", found) == set()
    pipeline_company.grant("Ben", "viewer", "layer:land")
    assert pipeline_company.may("Ben", found) == {"see", "see_runs", "follow"}
    pipeline_company.grant("Ben", "editor", "layer:land")
    assert pipeline_company.may("Ben", found) == EDITS
    assert pipeline_company.start("Ben", found) == 409


@rule("4: a listed one that does not exist counts as its layer (one that was deleted)")
def deleted_tables(pipeline_company: PipelineCompany) -> None:
    pipeline_company.tables("land.chaff")
    found = pipeline_company.made("Adam", notebook(("land.chaff",), ("mill.bread",)))
    pipeline_company.grant("Ben", "editor", "table:land.chaff", BREAD)
    pipeline_company.grant("Ana", "viewer", "layer:land", "layer:mill")
    assert pipeline_company.may("Ben", found) == EDITS
    pipeline_company.ok(
        pipeline_company.as_("Adam").request(
            "DELETE", f"/api/tables/{pipeline_company.company.id('table', 'land.chaff')}"
        )
    )
    assert pipeline_company.may("Ben", found) == set()
    assert pipeline_company.may("Ana", found) == {"see", "see_runs", "follow"}


@rule("4: tables of disabled streams do not count")
def disabled_streams(pipeline_company: PipelineCompany) -> None:
    found = pipeline_company.made("Adam", source(connection=pipeline_company.database, grain=True, flour=False))
    pipeline_company.grant("Ben", "editor", GRAIN, "table:land.grain_rejected")
    assert pipeline_company.may("Ben", found) == EDITS
    assert pipeline_company.shown("Ben", found)["definition"] is None, "it names a table that he may not see"
    assert pipeline_company.shown("Ben", found)["hidden"] == 2


@rule("4: if nothing is left to count, the output layer counts")
def nothing_counts(pipeline_company: PipelineCompany) -> None:
    found = pipeline_company.made("Adam", source(connection=pipeline_company.database, grain=False))
    pipeline_company.grant("Ben", "editor", GRAIN, "table:land.grain_rejected")
    assert pipeline_company.may("Ben", found) == set()
    pipeline_company.grant("Ben", "viewer", "layer:land")
    assert pipeline_company.may("Ben", found) == {"see", "see_runs", "follow"}
    pipeline_company.grant("Ben", "editor", "layer:land")
    assert pipeline_company.may("Ben", found) == EDITS


@rule("4: its trigger is seen with see, managed with edit")
def triggers(pipeline_company: PipelineCompany) -> None:
    found = pipeline_company.made("Adam", history())
    body = {"name": "Hourly", "when": {"kind": "cron", "cron": "0 * * * *"}}
    trigger = pipeline_company.ok(pipeline_company.as_("Adam").post(f"/api/pipelines/{found}/triggers", body))["id"]

    def asked() -> tuple[int, ...]:
        ben, place = pipeline_company.as_("Ben"), f"/api/triggers/{trigger}"
        changed = ben.request("PATCH", place, json={"full_refresh": True}).status_code
        made = ben.post(f"/api/pipelines/{found}/triggers", {**body, "name": str(time.time())}).status_code
        return ben.get(place).status_code, ben.get(f"/api/pipelines/{found}/triggers").status_code, changed, made

    assert asked() == (404, 404, 404, 404)
    pipeline_company.grant("Ben", "viewer", GRAIN, BREAD)
    assert asked() == (200, 200, 403, 403)
    pipeline_company.grant("Ben", "editor", GRAIN, BREAD)
    assert asked() == (200, 200, 200, 200)


@rule("4: creating needs Editor on every table it reads and on the output layer where the kind has one")
def creating(pipeline_company: PipelineCompany) -> None:
    pipeline_company.grant("Ben", "editor", BREAD)
    assert pipeline_company.save("Ben", history()).status_code == 403
    pipeline_company.grant("Ben", "viewer", GRAIN)
    pipeline_company.grant("Ben", "editor", "layer:mill")
    assert pipeline_company.save("Ben", history()).status_code == 403
    pipeline_company.grant("Ben", "editor", GRAIN)
    pipeline_company.revoke("Ben", "editor", "layer:mill")
    assert pipeline_company.save("Ben", history()).status_code == 403
    pipeline_company.grant("Ben", "editor", "layer:mill")
    assert pipeline_company.save("Ben", history()).status_code == 200


@rule("4: creating needs Editor on … the output layer where the kind has one (a delivery has none)")
def creating_deliveries(pipeline_company: PipelineCompany) -> None:
    own = pipeline_company.ok(pipeline_company.as_("Ben").post("/api/destinations", {"name": "Own", "place": OWN}))[
        "id"
    ]
    pipeline_company.grant("Ben", "viewer", GRAIN)
    assert pipeline_company.save("Ben", delivery(own, "land.grain")).status_code == 403
    pipeline_company.grant("Ben", "editor", GRAIN)
    assert pipeline_company.save("Ben", delivery(own, "land.grain")).status_code == 200
    pipeline_company.ok(pipeline_company.as_("Ben").request("DELETE", f"/api/destinations/{own}"))


OWN = {"kind": "postgresql", "host": "db.example.com", "database": "shop", "user": "ben"}


@rule("4: adding an output that does not exist yet needs Editor on the output layer")
def new_outputs(pipeline_company: PipelineCompany) -> None:
    found = pipeline_company.made("Adam", notebook((), ("mill.bread",)))
    pipeline_company.grant("Ben", "editor", BREAD)
    wanted = notebook((), ("mill.bread", "mill.rolls"))
    assert pipeline_company.patch("Ben", found, definition=wanted) == 403
    assert pipeline_company.as_("Adam").get("/api/tables", prefix="mill.rolls").json()["items"] == []
    pipeline_company.grant("Ben", "editor", "layer:mill")
    assert pipeline_company.patch("Ben", found, definition=wanted) == 200
    assert pipeline_company.shown("Ben", found)["writes"] == ["mill.bread", "mill.rolls"]


@rule("4: adding or retargeting a stream, disabled or not, needs the level on its table")
def adding_streams(pipeline_company: PipelineCompany) -> None:
    pipeline_company.made("Adam", source(connection=pipeline_company.database, grain=True, flour=True, salt=True))
    found = pipeline_company.made("Adam", source(connection=pipeline_company.database, grain=True))
    pipeline_company.grant("Ben", "editor", GRAIN, "table:land.grain_rejected")
    pipeline_company.role("Ben", "can_consume_data")
    for streams in ({"grain": True, "flour": True}, {"grain": True, "flour": False}, {"flour": True}):
        wanted = source(connection=pipeline_company.database, **streams)
        assert pipeline_company.patch("Ben", found, definition=wanted) == 403, streams
    pipeline_company.grant("Ben", "editor", "table:land.flour", "table:land.flour_rejected")
    for streams in ({"grain": True, "flour": False}, {"grain": True, "flour": True}, {"flour": True}):
        assert (
            pipeline_company.patch("Ben", found, definition=source(connection=pipeline_company.database, **streams))
            == 200
        ), streams


@rule("4: every edit is judged on the state before and after")
def before_and_after(pipeline_company: PipelineCompany) -> None:
    found = pipeline_company.made("Adam", history("land.grain"))
    pipeline_company.grant("Ben", "editor", "table:land.flour", BREAD, "layer:mill")
    assert pipeline_company.patch("Ben", found, definition=history("land.flour")) == 404, "before"
    pipeline_company.grant("Ben", "viewer", GRAIN)
    assert pipeline_company.patch("Ben", found, definition=history("land.flour")) == 403, "before"
    pipeline_company.grant("Ben", "editor", GRAIN)
    assert pipeline_company.patch("Ben", found, definition=history("land.salt")) == 403, "after"
    assert pipeline_company.patch("Ben", found, definition=history("land.flour")) == 200


@rule("4: with a list, nothing outside it is reachable but seeing the layers of what it lists. Read-only = see, list …")
def narrowed_tokens(pipeline_company: PipelineCompany) -> None:
    found = pipeline_company.made("Adam", history())
    path = f"/api/pipelines/{found}"
    reads = pipeline_company.as_("Adam", read_only=True)
    assert (reads.get(path).status_code, reads.get(f"{path}/runs").status_code) == (200, 200)
    assert reads.post(f"{path}/runs", {}).status_code == 403
    assert reads.request("PATCH", path, json={"name": "x"}).status_code == 403
    assert reads.post("/api/pipelines", {"name": "x", "definition": history()}).status_code == 403
    listed = pipeline_company.as_(
        "Adam", only=[pipeline_company.company.id("table", one) for one in ("land.grain", "mill.bread")]
    )
    assert listed.get(path).status_code == 404
    assert listed.get("/api/pipelines").json()["items"] == []
    assert listed.post("/api/pipelines", {"name": "x", "definition": history()}).status_code == 403


@rule("4: a narrowed token makes or changes no token")
def integrations_by_narrowed_tokens(pipeline_company: PipelineCompany) -> None:
    made = pipeline_company.ok(
        pipeline_company.as_("Adam").post("/api/integrations", {"name": "Screens", "tables": ["land.grain"]})
    )
    path = f"/api/integrations/{made['id']}"
    ends = pipeline_company.as_("Adam", expires=now() + timedelta(hours=1))
    assert ends.post("/api/integrations", {"name": "More", "tables": ["land.grain"]}).status_code == 403
    assert ends.post(f"{path}/token", {}).status_code == 403
    assert ends.request("PATCH", path, json={"tables": ["land.flour"]}).status_code == 403
    assert ends.request("DELETE", path).status_code == 403
    assert ends.request("PATCH", path, json={"description": "On the wall"}).status_code == 200
    assert (
        Api(pipeline_company.company.client, made["secret"]).get("/api/tables").json()["items"][0]["name"]
        == "land.grain"
    )
    assert pipeline_company.as_("Adam").request("DELETE", path).status_code == 200


@rule("4: on the Starter plan stored grants are kept but ignored, every member is Manager on all data")
def starter(pipeline_company: PipelineCompany) -> None:
    found = pipeline_company.made("Adam", history())
    pipeline_company.grant("Ben", "viewer", GRAIN, BREAD)
    pipeline_company.change(change="set_plan", plan="starter")
    try:
        assert pipeline_company.may("Bea", found) == pipeline_company.may("Ben", found) == {*EDITS, "delete"}
        assert pipeline_company.save("Bea", history()).status_code == 200
    finally:
        pipeline_company.change(change="set_plan", plan="growth")
    assert (pipeline_company.may("Bea", found), pipeline_company.may("Ben", found)) == (
        set(),
        {"see", "see_runs", "follow"},
    )


@rule("4: a grant ends at its instant; 6.5: at every start … now")
def expiry(pipeline_company: PipelineCompany) -> None:
    ends = now() + timedelta(hours=1)
    pipeline_company.grant("Ben", "editor", GRAIN, "layer:mill", expires=ends.isoformat())
    found = pipeline_company.made("Ben", history())
    assert pipeline_company.start("Adam", found) == 200
    over = update(grant_table).where(grant_table.c.expires_at == ends).values(expires_at=now())
    assert pipeline_company.company.database.write(lambda connection: connection.execute(over).rowcount) == 2
    assert pipeline_company.may("Ben", found) == set()
    assert pipeline_company.start("Adam", found) == 403


# Sections 2 and 5


@rule("2: state is not a right: not empty, in use, attached answer 409 after the decision and bind admins too")
def states(pipeline_company: PipelineCompany) -> None:
    found = pipeline_company.made("Adam", history())
    run = pipeline_company.started("Adam", found)
    pipeline_company.grant("Ben", "editor", GRAIN, BREAD)
    assert [pipeline_company.delete(who, found) for who in ("Bea", "Ben", "Adam", "Olga")] == [404, 403, 409, 409]
    path = f"/api/runs/{run}"
    assert [pipeline_company.as_(who).request("DELETE", path).status_code for who in ("Bea", "Ben", "Adam")] == [
        404,
        403,
        409,
    ]


@rule("5: changing where a connection … points … holds every … task … until someone … confirms the new place")
def moved_connections(pipeline_company: PipelineCompany) -> None:
    found = pipeline_company.made("Adam", source(connection=pipeline_company.database, grain=True))
    pipeline_company.grant("Ben", "viewer", "layer:land")
    place = {**OWN, "user": "reader"}
    for host, status in (("db.example.com", 200), ("elsewhere.example.com", 409), ("db.example.com", 409)):
        changed = {"place": {**place, "host": host}}
        pipeline_company.ok(
            pipeline_company.as_("Olga").request("PATCH", f"/api/connections/{pipeline_company.database}", json=changed)
        )
        assert pipeline_company.start("Adam", found) == status, host
    shown = {"versions": {pipeline_company.database: 3}}
    assert pipeline_company.as_("Ben").post(f"/api/pipelines/{found}/confirm", shown).status_code == 403
    assert pipeline_company.as_("Adam").post(f"/api/pipelines/{found}/confirm", shown).status_code == 200
    assert pipeline_company.start("Adam", found) == 200


# Section 6


@rule("6.1: the member who last saved its definition (everything but its name, description, activation and schedule)")
def acts_for(pipeline_company: PipelineCompany) -> None:
    pipeline_company.grant("Ben", "editor", GRAIN, "layer:mill")
    pipeline_company.grant("Bea", "editor", GRAIN, "layer:mill")
    found = pipeline_company.made("Ben", history())
    assert pipeline_company.patch("Bea", found, name="Other", description="Other", active=False) == 200
    assert pipeline_company.patch("Bea", found, active=True) == 200
    trigger = {"name": "Hourly", "when": {"kind": "cron", "cron": "0 * * * *"}}
    pipeline_company.ok(pipeline_company.as_("Bea").post(f"/api/pipelines/{found}/triggers", trigger))
    assert pipeline_company.shown("Adam", found)["acts_for"] == pipeline_company.member("Ben")
    _, job = pipeline_company.claimed("Bea", found)
    run = pipeline_company.as_("Adam").get(f"/api/runs/{job['id']}").json()
    assert (run["acts_for"], run["started_by"]) == (pipeline_company.member("Ben"), pipeline_company.member("Bea"))
    assert pipeline_company.patch("Bea", found, definition=history()) == 200
    assert pipeline_company.shown("Adam", found)["acts_for"] == pipeline_company.member("Bea")


@rule("6.1: saving it and each start also need, of that member, use on its destination")
def destinations(pipeline_company: PipelineCompany) -> None:
    pipeline_company.grant("Ben", "editor", GRAIN)
    hidden = pipeline_company.save("Ben", delivery(pipeline_company.bakery, "land.grain"))
    missing = pipeline_company.save("Ben", delivery(f"dst_{'0' * 20}", "land.grain"))
    assert (hidden.status_code, missing.status_code) == (403, 403)
    assert told(hidden) == told(missing)
    shared = {"change": "share", "resource": pipeline_company.bakery}
    pipeline_company.change(**shared, for_use=True)
    pipeline_company.change(change="set_scope", member="Ben", scope="entire")
    found = pipeline_company.made("Ben", delivery(pipeline_company.bakery, "land.grain"))
    assert pipeline_company.start("Adam", found) == 200
    pipeline_company.change(**shared, for_use=False)
    assert pipeline_company.may("Ben", found) == EDITS
    for who in ("Ben", "Adam"):
        assert pipeline_company.start(who, found) == 403, "whom it acts for may not use the destination"
    assert pipeline_company.patch("Ben", found, definition=delivery(pipeline_company.bakery, "land.grain")) == 403
    assert pipeline_company.patch("Adam", found, definition=delivery(pipeline_company.bakery, "land.grain")) == 200
    assert pipeline_company.start("Ben", found) == 200
    pipeline_company.ok(pipeline_company.as_("Bea").request("DELETE", f"/api/destinations/{pipeline_company.bakery}"))
    assert pipeline_company.start("Adam", found) == 403, "a deleted destination is absent"
    pipeline_company.ok(pipeline_company.as_("Bea").post(f"/api/destinations/{pipeline_company.bakery}/restore", None))


def told(answer: object) -> object:
    body = answer.json()  # type: ignore[attr-defined]
    return {name: value for name, value in body.items() if name != "request_id"}


@rule("6.1: … and consume, edit or manage in the space of each connection and gateway")
def connections(pipeline_company: PipelineCompany) -> None:
    pipeline_company.grant("Ben", "editor", "layer:land")
    wanted = source(connection=pipeline_company.database, grain=True)
    hidden, missing = (
        pipeline_company.save("Ben", wanted),
        pipeline_company.save("Ben", source(connection=f"con_{'0' * 20}", grain=True)),
    )
    assert told(hidden) == told(missing)
    for role, status in (
        ("can_view", 403),
        ("can_operate", 403),
        ("can_view_data", 403),
        ("can_consume_data", 200),
        ("can_edit", 200),
        ("can_manage", 200),
    ):
        pipeline_company.role("Ben", role)
        answer = pipeline_company.save("Ben", wanted)
        assert answer.status_code == status, role
        if status == 200:
            found = answer.json()["id"]
            assert pipeline_company.start("Adam", found) == 200
            pipeline_company.take("Ben", role)
            assert pipeline_company.start("Adam", found) == 403, role
        else:
            pipeline_company.take("Ben", role)


@rule("6.2: create and update of the definition … need, beside the role, the author's own Viewer … and Editor …")
def tasks(pipeline_company: PipelineCompany) -> None:
    wanted = history("land.grain", "mill.bread")
    assert pipeline_company.save("Tom", wanted, project=pipeline_company.project).status_code == 403
    pipeline_company.grant("Tom", "viewer", GRAIN)
    pipeline_company.grant("Tom", "editor", BREAD)
    found = pipeline_company.made("Tom", wanted, project=pipeline_company.project)
    assert pipeline_company.patch("Tom", found, definition=wanted) == 200
    assert pipeline_company.patch("Tom", found, definition=history("land.grain", "mill.cake")) == 403
    pipeline_company.grant("Ben", "manager", "layer:land", "layer:mill")
    assert pipeline_company.save("Ben", wanted, project=pipeline_company.project).status_code == 403, (
        "Can operate does not edit"
    )
    assert pipeline_company.patch("Ben", found, definition=wanted) == 403
    pipeline_company.revoke("Tom", "viewer", GRAIN)
    assert pipeline_company.patch("Tom", found, definition=wanted) == 403


@rule("6.2: edit_attributes, activate, schedule and validate need the cell alone")
def attributes_of_tasks(pipeline_company: PipelineCompany) -> None:
    found = pipeline_company.made("Adam", history(), project=pipeline_company.project)
    assert pipeline_company.patch("Tom", found, name="Tom's", description="x", active=True) == 200
    body = {"name": "Hourly", "when": {"kind": "cron", "cron": "0 * * * *"}}
    assert pipeline_company.as_("Tom").post(f"/api/pipelines/{found}/triggers", body).status_code == 200
    assert pipeline_company.patch("Tom", found, definition=history()) == 403
    assert pipeline_company.patch("Ben", found, name="Ben's") == 403, "Can operate"
    assert pipeline_company.shown("Tom", found)["definition"] is None, "the cell shows no table that he may not see"


@rule("6.2: … and consume, edit or manage where its connections and gateways live")
def connections_of_tasks(pipeline_company: PipelineCompany) -> None:
    pipeline_company.grant("Tom", "editor", "layer:land")
    assert (
        pipeline_company.save(
            "Tom", source(connection=pipeline_company.shop, grain=True), project=pipeline_company.project
        ).status_code
        == 200
    )
    assert (
        pipeline_company.save(
            "Tom", source(connection=pipeline_company.database, grain=True), project=pipeline_company.project
        ).status_code
        == 403
    )
    pipeline_company.role("Tom", "can_view")
    assert (
        pipeline_company.save(
            "Tom", source(connection=pipeline_company.database, grain=True), project=pipeline_company.project
        ).status_code
        == 403
    )
    pipeline_company.role("Tom", "can_consume_data")
    assert (
        pipeline_company.save(
            "Tom", source(connection=pipeline_company.database, grain=True), project=pipeline_company.project
        ).status_code
        == 200
    )


@rule("6.2: it runs as the project owner. 6.5: and for a task also the member who last saved it")
def whom_tasks_act_for(pipeline_company: PipelineCompany) -> None:
    pipeline_company.grant("Tom", "editor", "layer:land", "layer:mill")
    found = pipeline_company.made("Tom", history(), project=pipeline_company.project)
    assert pipeline_company.shown("Tom", found)["acts_for"] == pipeline_company.member("Tess")
    assert pipeline_company.start("Ben", found) == 403, "the project's owner has no level"
    pipeline_company.grant("Tess", "viewer", GRAIN)
    pipeline_company.grant("Tess", "editor", BREAD)
    _, job = pipeline_company.claimed("Ben", found)
    assert pipeline_company.as_("Adam").get(f"/api/runs/{job['id']}").json()["acts_for"] == pipeline_company.member(
        "Tess"
    )
    pipeline_company.ok(pipeline_company.as_("Adam").post(f"/api/runs/{job['id']}/cancel", None))
    assert pipeline_company.start("Tom", found) == 403, "Can edit does not run"
    pipeline_company.revoke("Tom", "editor", "layer:land")
    assert pipeline_company.start("Ben", found) == 403, "whoever saved it last lost a level"
    plan = pipeline_company.ok(pipeline_company.as_("Adam").get(f"/api/pipelines/{found}/plan"))
    assert {one["name"]: one["held"] for one in plan["needs"]} == {"land.grain": False, "mill.bread": True}
    assert pipeline_company.patch("Adam", found, definition=history()) == 200
    assert pipeline_company.start("Ben", found) == 200


@rule("6.3: view data in tasks … as far as the project owner and the member who last saved the task could both grant")
def data_of_tasks(pipeline_company: PipelineCompany) -> None:
    pipeline_company.grant("Tom", "manager", "layer:land", "layer:mill")
    found = pipeline_company.made("Tom", history(), project=pipeline_company.project)
    pipeline_company.role("Bea", "can_view_data", pipeline_company.sales)
    assert not pipeline_company.as_("Bea").may("view_data", found)
    pipeline_company.grant("Tess", "editor", BREAD)
    assert not pipeline_company.as_("Bea").may("view_data", found)
    pipeline_company.grant("Tess", "manager", BREAD)
    assert pipeline_company.as_("Bea").may("view_data", found)
    pipeline_company.revoke("Tess", "manager", BREAD)
    pipeline_company.grant("Bea", "viewer", BREAD)
    assert pipeline_company.as_("Bea").may("view_data", found)


@rule(
    "6.5: at every start of anything: whom it acts for … must have Viewer on what it reads and Editor on what it writes"
)
def starts(pipeline_company: PipelineCompany) -> None:
    pipeline_company.grant("Ben", "editor", GRAIN, "layer:mill")
    found = pipeline_company.made("Ben", history())
    pipeline_company.grant("Bea", "editor", GRAIN, BREAD)
    assert pipeline_company.start("Bea", found) == 200
    pipeline_company.revoke("Ben", "editor", GRAIN)
    pipeline_company.grant("Ben", "viewer", GRAIN)
    assert pipeline_company.start("Bea", found) == 200, "to read, Viewer is enough"
    pipeline_company.revoke("Ben", "editor", "layer:mill")
    pipeline_company.grant("Ben", "viewer", "layer:mill")
    for who in ("Bea", "Adam"):
        assert pipeline_company.start(who, found) == 403, "to write, it is not"
    plan = pipeline_company.ok(pipeline_company.as_("Bea").get(f"/api/pipelines/{found}/plan"))
    assert not plan["may_start"]
    assert {one["name"]: one["held"] for one in plan["needs"]} == {"land.grain": True, "mill.bread": False}
    assert pipeline_company.patch("Bea", found, definition=history()) == 200, "it acts for who saves it again"
    assert pipeline_company.start("Bea", found) == 200


@rule("6.5: at every start (and of a run that has waited, when it begins)")
def waiting_runs(pipeline_company: PipelineCompany) -> None:
    pipeline_company.grant("Ben", "editor", GRAIN, "layer:mill")
    found = pipeline_company.made("Ben", history())
    run = pipeline_company.started("Adam", found)
    pipeline_company.revoke("Ben", "editor", GRAIN)
    assert pipeline_company.claim() == []
    assert pipeline_company.as_("Adam").get(f"/api/runs/{run}").json()["state"] == "blocked"


@rule(
    "6.5: a scheduled fire is also judged for the trigger's author … pipeline, trigger … blocked … the trigger pauses"
)
def fires(pipeline_company: PipelineCompany) -> None:
    pipeline_company.grant("Ben", "editor", GRAIN, BREAD)
    found = pipeline_company.made("Adam", history())
    trigger, state = pipeline_company.fired("Ben", found)
    assert state == "queued"
    pipeline_company.revoke("Ben", "editor", BREAD)
    assert pipeline_company.fired("Ben", found, trigger) == (trigger, "blocked")
    run = pipeline_company.as_("Adam").get(f"/api/pipelines/{found}/runs").json()["items"][0]
    shown = pipeline_company.as_("Adam").get(f"/api/triggers/{trigger}").json()
    assert "author may no longer start this pipeline" in run["error"]
    assert (shown["enabled"], shown["paused_because"]) == (False, run["error"])


@rule("6.5: at every start of anything (also by a schedule): whom it acts for … 6.1: … of each connection")
def fires_of_others(pipeline_company: PipelineCompany) -> None:
    pipeline_company.grant("Ben", "editor", "layer:land")
    pipeline_company.role("Ben", "can_consume_data")
    found = pipeline_company.made("Ben", source(connection=pipeline_company.database, grain=True))
    trigger, state = pipeline_company.fired("Adam", found)
    assert state == "queued"
    pipeline_company.take("Ben", "can_consume_data")
    assert pipeline_company.fired("Adam", found, trigger) == (trigger, "blocked")


@rule("6.5: who last saved or resumed the trigger; activating a pipeline or resuming a run is neither")
def authors(pipeline_company: PipelineCompany) -> None:
    pipeline_company.grant("Ben", "editor", GRAIN, "layer:mill")
    found = pipeline_company.made("Adam", history())
    trigger, _ = pipeline_company.fired("Ben", found)
    adam = pipeline_company.as_("Adam")

    def author() -> str:
        return str(pipeline_company.ok(adam.get(f"/api/triggers/{trigger}"))["author"]["name"])

    assert (
        pipeline_company.patch("Adam", found, active=False) == pipeline_company.patch("Adam", found, active=True) == 200
    )
    run = pipeline_company.started("Adam", found)
    pipeline_company.ok(adam.post(f"/api/runs/{run}/cancel", None))
    pipeline_company.ok(adam.post(f"/api/runs/{run}/resume", None))
    pipeline_company.ok(adam.post(f"/api/triggers/{trigger}/pause", None))
    assert author() == "Ben"
    pipeline_company.ok(adam.post(f"/api/triggers/{trigger}/resume", None))
    assert author() == "Adam"
    pipeline_company.ok(
        pipeline_company.as_("Ben").request("PATCH", f"/api/triggers/{trigger}", json={"name": "Saved by Ben"})
    )
    assert author() == "Ben"


@rule("6.5: … task, update, with 6.2's levels")
def fires_of_tasks(pipeline_company: PipelineCompany) -> None:
    pipeline_company.grant("Tess", "editor", "layer:land", "layer:mill")
    found = pipeline_company.made("Adam", history(), project=pipeline_company.project)
    trigger, state = pipeline_company.fired("Tom", found)
    assert state == "blocked", "he schedules it by the cell, and has no level on its tables"
    pipeline_company.grant("Tom", "viewer", GRAIN)
    pipeline_company.grant("Tom", "editor", BREAD)
    pipeline_company.ok(pipeline_company.as_("Tom").post(f"/api/triggers/{trigger}/resume", None))
    assert pipeline_company.fired("Tom", found, trigger) == (trigger, "queued")


@rule("6.6: marts area and spaces area never grant lakehouse levels")
def spaces_grant_no_levels(pipeline_company: PipelineCompany) -> None:
    found = pipeline_company.made("Adam", history(), project=pipeline_company.project)
    shown = pipeline_company.shown("Tess", found)
    assert (shown["definition"], shown["reads"], shown["writes"], shown["hidden"]) == (None, [], [], 2)
    assert (
        pipeline_company.as_("Tess")
        .get(f"/api/tables/{pipeline_company.company.id('table', 'land.grain')}")
        .status_code
        == 404
    )
    plan = pipeline_company.ok(pipeline_company.as_("Tess").get(f"/api/pipelines/{found}/plan"))
    assert not {"land.grain", "mill.bread"} & set(str(plan).replace("'", " ").split())


@rule("6.6: … and lakehouse levels never grant mart or space rights")
def levels_grant_no_spaces(pipeline_company: PipelineCompany) -> None:
    found = pipeline_company.made("Adam", history(), project=pipeline_company.project)
    pipeline_company.grant("Tom", "manager", "layer:land", "layer:mill")
    pipeline_company.change(change="take_space_role", space=pipeline_company.sales, to="Tom", space_role="can_edit")
    try:
        assert pipeline_company.may("Tom", found) == set()
        assert (pipeline_company.start("Tom", found), pipeline_company.delete("Tom", found)) == (404, 404)
    finally:
        pipeline_company.change(change="give_space_role", space=pipeline_company.sales, to="Tom", space_role="can_edit")


@pytest.mark.parametrize(("sentence", "case"), RULES, ids=[case.__name__ for _, case in RULES])
def test_rule(pipeline_company: PipelineCompany, sentence: str, case: Case) -> None:
    assert sentence
    case(pipeline_company)
