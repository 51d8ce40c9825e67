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
def levels(firm: PipelineCompany) -> None:
    found = firm.made("Adam", history())
    run = firm.started("Adam", found)
    body = {"definition": history(keys=["id", "day"])}
    expected = {None: (404,) * 7, "viewer": (200, 200, 200, 403, 403, 403, 403), "editor": (200,) * 6 + (403,)}
    for level, statuses in {**expected, "manager": (200,) * 7}.items():
        if level:
            firm.grant("Ben", level, GRAIN, "layer:mill")
        ben = firm.as_("Ben")
        asked = (
            ben.get(f"/api/pipelines/{found}").status_code,
            ben.get(f"/api/pipelines/{found}/runs").status_code,
            ben.get(f"/api/runs/{run}/log").status_code,
            firm.patch("Ben", found, **body),
            firm.patch("Ben", found, active=True),
            firm.start("Ben", found),
        )
        firm.as_("Olga").post(f"/api/runs/{run}/cancel", None)
        assert (*asked, firm.delete("Ben", found)) == statuses, level


@rule("4: an action's level is needed on every table or volume that the pipeline reads or writes")
def every_table(firm: PipelineCompany) -> None:
    found = firm.made("Adam", notebook(("land.grain",), ("mill.bread",), volumes=["land.crates"]))
    firm.grant("Ben", "editor", GRAIN, BREAD)
    assert firm.may("Ben", found) == set()
    firm.grant("Ben", "viewer", "volume:land.crates")
    assert firm.may("Ben", found) == {"see", "see_runs", "follow"}
    firm.grant("Ben", "editor", "volume:land.crates")
    assert firm.may("Ben", found) == EDITS
    firm.grant("Ben", "manager", GRAIN, BREAD)
    assert firm.may("Ben", found) == EDITS
    firm.grant("Ben", "manager", "volume:land.crates")
    assert firm.may("Ben", found) == {*EDITS, "delete"}


@rule("4: otherwise the output layer does not count")
def no_output_layer(firm: PipelineCompany) -> None:
    found = firm.made("Adam", history())
    firm.grant("Ben", "editor", GRAIN, BREAD)
    assert firm.may("Ben", found) == EDITS
    assert firm.patch("Ben", found, definition=history(keys=["day"])) == 200


@rule("4: a listed one that does not exist counts as its layer")
def missing_tables(firm: PipelineCompany) -> None:
    found = firm.made("Adam", notebook(("land.nothing",), ("mill.bread",)))
    firm.grant("Ben", "editor", GRAIN, BREAD)
    assert firm.may("Ben", found) == set()
    firm.grant("Ben", "viewer", "layer:land")
    assert firm.may("Ben", found) == {"see", "see_runs", "follow"}
    firm.grant("Ben", "editor", "layer:land")
    assert firm.may("Ben", found) == EDITS
    assert firm.start("Ben", found) == 409


@rule("4: a listed one that does not exist counts as its layer (one that was deleted)")
def deleted_tables(firm: PipelineCompany) -> None:
    firm.tables("land.chaff")
    found = firm.made("Adam", notebook(("land.chaff",), ("mill.bread",)))
    firm.grant("Ben", "editor", "table:land.chaff", BREAD)
    firm.grant("Ana", "viewer", "layer:land", "layer:mill")
    assert firm.may("Ben", found) == EDITS
    firm.ok(firm.as_("Adam").request("DELETE", f"/api/tables/{firm.company.id('table', 'land.chaff')}"))
    assert firm.may("Ben", found) == set()
    assert firm.may("Ana", found) == {"see", "see_runs", "follow"}


@rule("4: tables of disabled streams do not count")
def disabled_streams(firm: PipelineCompany) -> None:
    found = firm.made("Adam", source(connection=firm.database, grain=True, flour=False))
    firm.grant("Ben", "editor", GRAIN, "table:land.grain_rejected")
    assert firm.may("Ben", found) == EDITS
    assert firm.shown("Ben", found)["definition"] is None, "it names a table that he may not see"
    assert firm.shown("Ben", found)["hidden"] == 2


@rule("4: if nothing is left to count, the output layer counts")
def nothing_counts(firm: PipelineCompany) -> None:
    found = firm.made("Adam", source(connection=firm.database, grain=False))
    firm.grant("Ben", "editor", GRAIN, "table:land.grain_rejected")
    assert firm.may("Ben", found) == set()
    firm.grant("Ben", "viewer", "layer:land")
    assert firm.may("Ben", found) == {"see", "see_runs", "follow"}
    firm.grant("Ben", "editor", "layer:land")
    assert firm.may("Ben", found) == EDITS


@rule("4: its trigger is seen with see, managed with edit")
def triggers(firm: PipelineCompany) -> None:
    found = firm.made("Adam", history())
    body = {"name": "Hourly", "when": {"kind": "cron", "cron": "0 * * * *"}}
    trigger = firm.ok(firm.as_("Adam").post(f"/api/pipelines/{found}/triggers", body))["id"]

    def asked() -> tuple[int, ...]:
        ben, place = firm.as_("Ben"), f"/api/triggers/{trigger}"
        changed = ben.request("PATCH", place, json={"full_refresh": True}).status_code
        made = ben.post(f"/api/pipelines/{found}/triggers", {**body, "name": str(time.time())}).status_code
        return ben.get(place).status_code, ben.get(f"/api/pipelines/{found}/triggers").status_code, changed, made

    assert asked() == (404, 404, 404, 404)
    firm.grant("Ben", "viewer", GRAIN, BREAD)
    assert asked() == (200, 200, 403, 403)
    firm.grant("Ben", "editor", GRAIN, BREAD)
    assert asked() == (200, 200, 200, 200)


@rule("4: creating needs Editor on every table it reads and on the output layer where the kind has one")
def creating(firm: PipelineCompany) -> None:
    firm.grant("Ben", "editor", BREAD)
    assert firm.save("Ben", history()).status_code == 403
    firm.grant("Ben", "viewer", GRAIN)
    firm.grant("Ben", "editor", "layer:mill")
    assert firm.save("Ben", history()).status_code == 403
    firm.grant("Ben", "editor", GRAIN)
    firm.revoke("Ben", "editor", "layer:mill")
    assert firm.save("Ben", history()).status_code == 403
    firm.grant("Ben", "editor", "layer:mill")
    assert firm.save("Ben", history()).status_code == 200


@rule("4: creating needs Editor on … the output layer where the kind has one (a delivery has none)")
def creating_deliveries(firm: PipelineCompany) -> None:
    own = firm.ok(firm.as_("Ben").post("/api/destinations", {"name": "Own", "place": OWN}))["id"]
    firm.grant("Ben", "viewer", GRAIN)
    assert firm.save("Ben", delivery(own, "land.grain")).status_code == 403
    firm.grant("Ben", "editor", GRAIN)
    assert firm.save("Ben", delivery(own, "land.grain")).status_code == 200
    firm.ok(firm.as_("Ben").request("DELETE", f"/api/destinations/{own}"))


OWN = {"kind": "postgresql", "host": "db.example.com", "database": "shop", "user": "ben"}


@rule("4: adding an output that does not exist yet needs Editor on the output layer")
def new_outputs(firm: PipelineCompany) -> None:
    found = firm.made("Adam", notebook((), ("mill.bread",)))
    firm.grant("Ben", "editor", BREAD)
    wanted = notebook((), ("mill.bread", "mill.rolls"))
    assert firm.patch("Ben", found, definition=wanted) == 403
    assert firm.as_("Adam").get("/api/tables", prefix="mill.rolls").json()["items"] == []
    firm.grant("Ben", "editor", "layer:mill")
    assert firm.patch("Ben", found, definition=wanted) == 200
    assert firm.shown("Ben", found)["writes"] == ["mill.bread", "mill.rolls"]


@rule("4: adding or retargeting a stream, disabled or not, needs the level on its table")
def adding_streams(firm: PipelineCompany) -> None:
    firm.made("Adam", source(connection=firm.database, grain=True, flour=True, salt=True))
    found = firm.made("Adam", source(connection=firm.database, grain=True))
    firm.grant("Ben", "editor", GRAIN, "table:land.grain_rejected")
    firm.role("Ben", "can_consume_data")
    for streams in ({"grain": True, "flour": True}, {"grain": True, "flour": False}, {"flour": True}):
        wanted = source(connection=firm.database, **streams)
        assert firm.patch("Ben", found, definition=wanted) == 403, streams
    firm.grant("Ben", "editor", "table:land.flour", "table:land.flour_rejected")
    for streams in ({"grain": True, "flour": False}, {"grain": True, "flour": True}, {"flour": True}):
        assert firm.patch("Ben", found, definition=source(connection=firm.database, **streams)) == 200, streams


@rule("4: every edit is judged on the state before and after")
def before_and_after(firm: PipelineCompany) -> None:
    found = firm.made("Adam", history("land.grain"))
    firm.grant("Ben", "editor", "table:land.flour", BREAD, "layer:mill")
    assert firm.patch("Ben", found, definition=history("land.flour")) == 404, "before"
    firm.grant("Ben", "viewer", GRAIN)
    assert firm.patch("Ben", found, definition=history("land.flour")) == 403, "before"
    firm.grant("Ben", "editor", GRAIN)
    assert firm.patch("Ben", found, definition=history("land.salt")) == 403, "after"
    assert firm.patch("Ben", found, definition=history("land.flour")) == 200


@rule("4: with a list, nothing outside it is reachable but seeing the layers of what it lists. Read-only = see, list …")
def narrowed_tokens(firm: PipelineCompany) -> None:
    found = firm.made("Adam", history())
    path = f"/api/pipelines/{found}"
    reads = firm.as_("Adam", read_only=True)
    assert (reads.get(path).status_code, reads.get(f"{path}/runs").status_code) == (200, 200)
    assert reads.post(f"{path}/runs", {}).status_code == 403
    assert reads.request("PATCH", path, json={"name": "x"}).status_code == 403
    assert reads.post("/api/pipelines", {"name": "x", "definition": history()}).status_code == 403
    listed = firm.as_("Adam", only=[firm.company.id("table", one) for one in ("land.grain", "mill.bread")])
    assert listed.get(path).status_code == 404
    assert listed.get("/api/pipelines").json()["items"] == []
    assert listed.post("/api/pipelines", {"name": "x", "definition": history()}).status_code == 403


@rule("4: a narrowed token makes or changes no token")
def integrations_by_narrowed_tokens(firm: PipelineCompany) -> None:
    made = firm.ok(firm.as_("Adam").post("/api/integrations", {"name": "Screens", "tables": ["land.grain"]}))
    path = f"/api/integrations/{made['id']}"
    ends = firm.as_("Adam", expires=now() + timedelta(hours=1))
    assert ends.post("/api/integrations", {"name": "More", "tables": ["land.grain"]}).status_code == 403
    assert ends.post(f"{path}/token", {}).status_code == 403
    assert ends.request("PATCH", path, json={"tables": ["land.flour"]}).status_code == 403
    assert ends.request("DELETE", path).status_code == 403
    assert ends.request("PATCH", path, json={"description": "On the wall"}).status_code == 200
    assert Api(firm.company.client, made["secret"]).get("/api/tables").json()["items"][0]["name"] == "land.grain"
    assert firm.as_("Adam").request("DELETE", path).status_code == 200


@rule("4: on the Starter plan stored grants are kept but ignored, every member is Manager on all data")
def starter(firm: PipelineCompany) -> None:
    found = firm.made("Adam", history())
    firm.grant("Ben", "viewer", GRAIN, BREAD)
    firm.change(change="set_plan", plan="starter")
    try:
        assert firm.may("Bea", found) == firm.may("Ben", found) == {*EDITS, "delete"}
        assert firm.save("Bea", history()).status_code == 200
    finally:
        firm.change(change="set_plan", plan="growth")
    assert (firm.may("Bea", found), firm.may("Ben", found)) == (
        set(),
        {"see", "see_runs", "follow"},
    )


@rule("4: a grant ends at its instant; 6.5: at every start … now")
def expiry(firm: PipelineCompany) -> None:
    ends = now() + timedelta(hours=1)
    firm.grant("Ben", "editor", GRAIN, "layer:mill", expires=ends.isoformat())
    found = firm.made("Ben", history())
    assert firm.start("Adam", found) == 200
    over = update(grant_table).where(grant_table.c.expires_at == ends).values(expires_at=now())
    assert firm.company.database.write(lambda connection: connection.execute(over).rowcount) == 2
    assert firm.may("Ben", found) == set()
    assert firm.start("Adam", found) == 403


# Sections 2 and 5


@rule("2: state is not a right: not empty, in use, attached answer 409 after the decision and bind admins too")
def states(firm: PipelineCompany) -> None:
    found = firm.made("Adam", history())
    run = firm.started("Adam", found)
    firm.grant("Ben", "editor", GRAIN, BREAD)
    assert [firm.delete(who, found) for who in ("Bea", "Ben", "Adam", "Olga")] == [404, 403, 409, 409]
    path = f"/api/runs/{run}"
    assert [firm.as_(who).request("DELETE", path).status_code for who in ("Bea", "Ben", "Adam")] == [
        404,
        403,
        409,
    ]


@rule("5: changing where a connection … points … holds every … task … until someone … confirms the new place")
def moved_connections(firm: PipelineCompany) -> None:
    found = firm.made("Adam", source(connection=firm.database, grain=True))
    firm.grant("Ben", "viewer", "layer:land")
    place = {**OWN, "user": "reader"}
    for host, status in (("db.example.com", 200), ("elsewhere.example.com", 409), ("db.example.com", 409)):
        changed = {"place": {**place, "host": host}}
        firm.ok(firm.as_("Olga").request("PATCH", f"/api/connections/{firm.database}", json=changed))
        assert firm.start("Adam", found) == status, host
    shown = {"versions": {firm.database: 3}}
    assert firm.as_("Ben").post(f"/api/pipelines/{found}/confirm", shown).status_code == 403
    assert firm.as_("Adam").post(f"/api/pipelines/{found}/confirm", shown).status_code == 200
    assert firm.start("Adam", found) == 200


# Section 6


@rule("6.1: the member who last saved its definition (everything but its name, description, activation and schedule)")
def acts_for(firm: PipelineCompany) -> None:
    firm.grant("Ben", "editor", GRAIN, "layer:mill")
    firm.grant("Bea", "editor", GRAIN, "layer:mill")
    found = firm.made("Ben", history())
    assert firm.patch("Bea", found, name="Other", description="Other", active=False) == 200
    assert firm.patch("Bea", found, active=True) == 200
    trigger = {"name": "Hourly", "when": {"kind": "cron", "cron": "0 * * * *"}}
    firm.ok(firm.as_("Bea").post(f"/api/pipelines/{found}/triggers", trigger))
    assert firm.shown("Adam", found)["acts_for"] == firm.member("Ben")
    _, job = firm.claimed("Bea", found)
    run = firm.as_("Adam").get(f"/api/runs/{job['id']}").json()
    assert (run["acts_for"], run["started_by"]) == (firm.member("Ben"), firm.member("Bea"))
    assert firm.patch("Bea", found, definition=history()) == 200
    assert firm.shown("Adam", found)["acts_for"] == firm.member("Bea")


@rule("6.1: saving it and each start also need, of that member, use on its destination")
def destinations(firm: PipelineCompany) -> None:
    firm.grant("Ben", "editor", GRAIN)
    hidden = firm.save("Ben", delivery(firm.bakery, "land.grain"))
    missing = firm.save("Ben", delivery(f"dst_{'0' * 20}", "land.grain"))
    assert (hidden.status_code, missing.status_code) == (403, 403)
    assert told(hidden) == told(missing)
    shared = {"change": "share", "resource": firm.bakery}
    firm.change(**shared, for_use=True)
    firm.change(change="set_scope", member="Ben", scope="entire")
    found = firm.made("Ben", delivery(firm.bakery, "land.grain"))
    assert firm.start("Adam", found) == 200
    firm.change(**shared, for_use=False)
    assert firm.may("Ben", found) == EDITS
    for who in ("Ben", "Adam"):
        assert firm.start(who, found) == 403, "whom it acts for may not use the destination"
    assert firm.patch("Ben", found, definition=delivery(firm.bakery, "land.grain")) == 403
    assert firm.patch("Adam", found, definition=delivery(firm.bakery, "land.grain")) == 200
    assert firm.start("Ben", found) == 200
    firm.ok(firm.as_("Bea").request("DELETE", f"/api/destinations/{firm.bakery}"))
    assert firm.start("Adam", found) == 403, "a deleted destination is absent"
    firm.ok(firm.as_("Bea").post(f"/api/destinations/{firm.bakery}/restore", None))


def told(answer: object) -> object:
    body = answer.json()  # type: ignore[attr-defined]
    return {name: value for name, value in body.items() if name != "request_id"}


@rule("6.1: … and consume, edit or manage in the space of each connection and gateway")
def connections(firm: PipelineCompany) -> None:
    firm.grant("Ben", "editor", "layer:land")
    wanted = source(connection=firm.database, grain=True)
    hidden, missing = (
        firm.save("Ben", wanted),
        firm.save("Ben", source(connection=f"con_{'0' * 20}", grain=True)),
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
        firm.role("Ben", role)
        answer = firm.save("Ben", wanted)
        assert answer.status_code == status, role
        if status == 200:
            found = answer.json()["id"]
            assert firm.start("Adam", found) == 200
            firm.take("Ben", role)
            assert firm.start("Adam", found) == 403, role
        else:
            firm.take("Ben", role)


@rule("6.2: create and update of the definition … need, beside the role, the author's own Viewer … and Editor …")
def tasks(firm: PipelineCompany) -> None:
    wanted = history("land.grain", "mill.bread")
    assert firm.save("Tom", wanted, project=firm.project).status_code == 403
    firm.grant("Tom", "viewer", GRAIN)
    firm.grant("Tom", "editor", BREAD)
    found = firm.made("Tom", wanted, project=firm.project)
    assert firm.patch("Tom", found, definition=wanted) == 200
    assert firm.patch("Tom", found, definition=history("land.grain", "mill.cake")) == 403
    firm.grant("Ben", "manager", "layer:land", "layer:mill")
    assert firm.save("Ben", wanted, project=firm.project).status_code == 403, "Can operate does not edit"
    assert firm.patch("Ben", found, definition=wanted) == 403
    firm.revoke("Tom", "viewer", GRAIN)
    assert firm.patch("Tom", found, definition=wanted) == 403


@rule("6.2: edit_attributes, activate, schedule and validate need the cell alone")
def attributes_of_tasks(firm: PipelineCompany) -> None:
    found = firm.made("Adam", history(), project=firm.project)
    assert firm.patch("Tom", found, name="Tom's", description="x", active=True) == 200
    body = {"name": "Hourly", "when": {"kind": "cron", "cron": "0 * * * *"}}
    assert firm.as_("Tom").post(f"/api/pipelines/{found}/triggers", body).status_code == 200
    assert firm.patch("Tom", found, definition=history()) == 403
    assert firm.patch("Ben", found, name="Ben's") == 403, "Can operate"
    assert firm.shown("Tom", found)["definition"] is None, "the cell shows no table that he may not see"


@rule("6.2: … and consume, edit or manage where its connections and gateways live")
def connections_of_tasks(firm: PipelineCompany) -> None:
    firm.grant("Tom", "editor", "layer:land")
    assert firm.save("Tom", source(connection=firm.shop, grain=True), project=firm.project).status_code == 200
    assert firm.save("Tom", source(connection=firm.database, grain=True), project=firm.project).status_code == 403
    firm.role("Tom", "can_view")
    assert firm.save("Tom", source(connection=firm.database, grain=True), project=firm.project).status_code == 403
    firm.role("Tom", "can_consume_data")
    assert firm.save("Tom", source(connection=firm.database, grain=True), project=firm.project).status_code == 200


@rule("6.2: it runs as the project owner. 6.5: and for a task also the member who last saved it")
def whom_tasks_act_for(firm: PipelineCompany) -> None:
    firm.grant("Tom", "editor", "layer:land", "layer:mill")
    found = firm.made("Tom", history(), project=firm.project)
    assert firm.shown("Tom", found)["acts_for"] == firm.member("Tess")
    assert firm.start("Ben", found) == 403, "the project's owner has no level"
    firm.grant("Tess", "viewer", GRAIN)
    firm.grant("Tess", "editor", BREAD)
    _, job = firm.claimed("Ben", found)
    assert firm.as_("Adam").get(f"/api/runs/{job['id']}").json()["acts_for"] == firm.member("Tess")
    firm.ok(firm.as_("Adam").post(f"/api/runs/{job['id']}/cancel", None))
    assert firm.start("Tom", found) == 403, "Can edit does not run"
    firm.revoke("Tom", "editor", "layer:land")
    assert firm.start("Ben", found) == 403, "whoever saved it last lost a level"
    plan = firm.ok(firm.as_("Adam").get(f"/api/pipelines/{found}/plan"))
    assert {one["name"]: one["held"] for one in plan["needs"]} == {"land.grain": False, "mill.bread": True}
    assert firm.patch("Adam", found, definition=history()) == 200
    assert firm.start("Ben", found) == 200


@rule("6.3: view data in tasks … as far as the project owner and the member who last saved the task could both grant")
def data_of_tasks(firm: PipelineCompany) -> None:
    firm.grant("Tom", "manager", "layer:land", "layer:mill")
    found = firm.made("Tom", history(), project=firm.project)
    firm.role("Bea", "can_view_data", firm.sales)
    assert not firm.as_("Bea").may("view_data", found)
    firm.grant("Tess", "editor", BREAD)
    assert not firm.as_("Bea").may("view_data", found)
    firm.grant("Tess", "manager", BREAD)
    assert firm.as_("Bea").may("view_data", found)
    firm.revoke("Tess", "manager", BREAD)
    firm.grant("Bea", "viewer", BREAD)
    assert firm.as_("Bea").may("view_data", found)


@rule(
    "6.5: at every start of anything: whom it acts for … must have Viewer on what it reads and Editor on what it writes"
)
def starts(firm: PipelineCompany) -> None:
    firm.grant("Ben", "editor", GRAIN, "layer:mill")
    found = firm.made("Ben", history())
    firm.grant("Bea", "editor", GRAIN, BREAD)
    assert firm.start("Bea", found) == 200
    firm.revoke("Ben", "editor", GRAIN)
    firm.grant("Ben", "viewer", GRAIN)
    assert firm.start("Bea", found) == 200, "to read, Viewer is enough"
    firm.revoke("Ben", "editor", "layer:mill")
    firm.grant("Ben", "viewer", "layer:mill")
    for who in ("Bea", "Adam"):
        assert firm.start(who, found) == 403, "to write, it is not"
    plan = firm.ok(firm.as_("Bea").get(f"/api/pipelines/{found}/plan"))
    assert not plan["may_start"]
    assert {one["name"]: one["held"] for one in plan["needs"]} == {"land.grain": True, "mill.bread": False}
    assert firm.patch("Bea", found, definition=history()) == 200, "it acts for who saves it again"
    assert firm.start("Bea", found) == 200


@rule("6.5: at every start (and of a run that has waited, when it begins)")
def waiting_runs(firm: PipelineCompany) -> None:
    firm.grant("Ben", "editor", GRAIN, "layer:mill")
    found = firm.made("Ben", history())
    run = firm.started("Adam", found)
    firm.revoke("Ben", "editor", GRAIN)
    assert firm.claim() == []
    assert firm.as_("Adam").get(f"/api/runs/{run}").json()["state"] == "blocked"


@rule(
    "6.5: a scheduled fire is also judged for the trigger's author … pipeline, trigger … blocked … the trigger pauses"
)
def fires(firm: PipelineCompany) -> None:
    firm.grant("Ben", "editor", GRAIN, BREAD)
    found = firm.made("Adam", history())
    trigger, state = firm.fired("Ben", found)
    assert state == "queued"
    firm.revoke("Ben", "editor", BREAD)
    assert firm.fired("Ben", found, trigger) == (trigger, "blocked")
    run = firm.as_("Adam").get(f"/api/pipelines/{found}/runs").json()["items"][0]
    shown = firm.as_("Adam").get(f"/api/triggers/{trigger}").json()
    assert "author may no longer start this pipeline" in run["error"]
    assert (shown["enabled"], shown["paused_because"]) == (False, run["error"])


@rule("6.5: at every start of anything (also by a schedule): whom it acts for … 6.1: … of each connection")
def fires_of_others(firm: PipelineCompany) -> None:
    firm.grant("Ben", "editor", "layer:land")
    firm.role("Ben", "can_consume_data")
    found = firm.made("Ben", source(connection=firm.database, grain=True))
    trigger, state = firm.fired("Adam", found)
    assert state == "queued"
    firm.take("Ben", "can_consume_data")
    assert firm.fired("Adam", found, trigger) == (trigger, "blocked")


@rule("6.5: who last saved or resumed the trigger; activating a pipeline or resuming a run is neither")
def authors(firm: PipelineCompany) -> None:
    firm.grant("Ben", "editor", GRAIN, "layer:mill")
    found = firm.made("Adam", history())
    trigger, _ = firm.fired("Ben", found)
    adam = firm.as_("Adam")

    def author() -> str:
        return str(firm.ok(adam.get(f"/api/triggers/{trigger}"))["author"]["name"])

    assert firm.patch("Adam", found, active=False) == firm.patch("Adam", found, active=True) == 200
    run = firm.started("Adam", found)
    firm.ok(adam.post(f"/api/runs/{run}/cancel", None))
    firm.ok(adam.post(f"/api/runs/{run}/resume", None))
    firm.ok(adam.post(f"/api/triggers/{trigger}/pause", None))
    assert author() == "Ben"
    firm.ok(adam.post(f"/api/triggers/{trigger}/resume", None))
    assert author() == "Adam"
    firm.ok(firm.as_("Ben").request("PATCH", f"/api/triggers/{trigger}", json={"name": "Saved by Ben"}))
    assert author() == "Ben"


@rule("6.5: … task, update, with 6.2's levels")
def fires_of_tasks(firm: PipelineCompany) -> None:
    firm.grant("Tess", "editor", "layer:land", "layer:mill")
    found = firm.made("Adam", history(), project=firm.project)
    trigger, state = firm.fired("Tom", found)
    assert state == "blocked", "he schedules it by the cell, and has no level on its tables"
    firm.grant("Tom", "viewer", GRAIN)
    firm.grant("Tom", "editor", BREAD)
    firm.ok(firm.as_("Tom").post(f"/api/triggers/{trigger}/resume", None))
    assert firm.fired("Tom", found, trigger) == (trigger, "queued")


@rule("6.6: marts area and spaces area never grant lakehouse levels")
def spaces_grant_no_levels(firm: PipelineCompany) -> None:
    found = firm.made("Adam", history(), project=firm.project)
    shown = firm.shown("Tess", found)
    assert (shown["definition"], shown["reads"], shown["writes"], shown["hidden"]) == (None, [], [], 2)
    assert firm.as_("Tess").get(f"/api/tables/{firm.company.id('table', 'land.grain')}").status_code == 404
    plan = firm.ok(firm.as_("Tess").get(f"/api/pipelines/{found}/plan"))
    assert not {"land.grain", "mill.bread"} & set(str(plan).replace("'", " ").split())


@rule("6.6: … and lakehouse levels never grant mart or space rights")
def levels_grant_no_spaces(firm: PipelineCompany) -> None:
    found = firm.made("Adam", history(), project=firm.project)
    firm.grant("Tom", "manager", "layer:land", "layer:mill")
    firm.change(change="take_space_role", space=firm.sales, to="Tom", space_role="can_edit")
    try:
        assert firm.may("Tom", found) == set()
        assert (firm.start("Tom", found), firm.delete("Tom", found)) == (404, 404)
    finally:
        firm.change(change="give_space_role", space=firm.sales, to="Tom", space_role="can_edit")


@pytest.mark.parametrize(("sentence", "case"), RULES, ids=[case.__name__ for _, case in RULES])
def test_rule(firm: PipelineCompany, sentence: str, case: Case) -> None:
    assert sentence
    case(firm)
