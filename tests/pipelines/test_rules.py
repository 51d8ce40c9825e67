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
from tests.pipelines.rules import BREAD, GRAIN, RULES, Case, rule
from tests.pipelines.works import Works, delivery, history, notebook, source
from tests.support.company import Api

EDITS = {"see", "see_runs", "follow", "edit", "activate", "trigger"}


# Section 4


@rule("4: see pipelines, see runs: Viewer. Add, edit, activate, trigger: Editor. Delete pipelines: Manager")
def levels(works: Works) -> None:
    found = works.made("Adam", history())
    run = works.started("Adam", found)
    body = {"definition": history(keys=["id", "day"])}
    expected = {None: (404,) * 7, "viewer": (200, 200, 200, 403, 403, 403, 403), "editor": (200,) * 6 + (403,)}
    for level, statuses in {**expected, "manager": (200,) * 7}.items():
        if level:
            works.grant("Ben", level, GRAIN, "layer:mill")
        ben = works.as_("Ben")
        asked = (
            ben.get(f"/api/pipelines/{found}").status_code,
            ben.get(f"/api/pipelines/{found}/runs").status_code,
            ben.get(f"/api/runs/{run}/log").status_code,
            works.patch("Ben", found, **body),
            works.patch("Ben", found, active=True),
            works.start("Ben", found),
        )
        works.as_("Olga").post(f"/api/runs/{run}/cancel", None)
        assert (*asked, works.delete("Ben", found)) == statuses, level


@rule("4: an action's level is needed on every table or volume that the pipeline reads or writes")
def every_table(works: Works) -> None:
    found = works.made("Adam", notebook(("land.grain",), ("mill.bread",), volumes=["land.crates"]))
    works.grant("Ben", "editor", GRAIN, BREAD)
    assert works.may("Ben", found) == set()
    works.grant("Ben", "viewer", "volume:land.crates")
    assert works.may("Ben", found) == {"see", "see_runs", "follow"}
    works.grant("Ben", "editor", "volume:land.crates")
    assert works.may("Ben", found) == EDITS
    works.grant("Ben", "manager", GRAIN, BREAD)
    assert works.may("Ben", found) == EDITS
    works.grant("Ben", "manager", "volume:land.crates")
    assert works.may("Ben", found) == {*EDITS, "delete"}


@rule("4: otherwise the output layer does not count")
def no_output_layer(works: Works) -> None:
    found = works.made("Adam", history())
    works.grant("Ben", "editor", GRAIN, BREAD)
    assert works.may("Ben", found) == EDITS
    assert works.patch("Ben", found, definition=history(keys=["day"])) == 200


@rule("4: a listed one that does not exist counts as its layer")
def missing_tables(works: Works) -> None:
    found = works.made("Adam", notebook(("land.nothing",), ("mill.bread",)))
    works.grant("Ben", "editor", GRAIN, BREAD)
    assert works.may("Ben", found) == set()
    works.grant("Ben", "viewer", "layer:land")
    assert works.may("Ben", found) == {"see", "see_runs", "follow"}
    works.grant("Ben", "editor", "layer:land")
    assert works.may("Ben", found) == EDITS
    assert works.start("Ben", found) == 409


@rule("4: a listed one that does not exist counts as its layer (one that was deleted)")
def deleted_tables(works: Works) -> None:
    works.tables("land.chaff")
    found = works.made("Adam", notebook(("land.chaff",), ("mill.bread",)))
    works.grant("Ben", "editor", "table:land.chaff", BREAD)
    works.grant("Ana", "viewer", "layer:land", "layer:mill")
    assert works.may("Ben", found) == EDITS
    works.ok(works.as_("Adam").request("DELETE", f"/api/tables/{works.company.id('table', 'land.chaff')}"))
    assert works.may("Ben", found) == set()
    assert works.may("Ana", found) == {"see", "see_runs", "follow"}


@rule("4: tables of disabled streams do not count")
def disabled_streams(works: Works) -> None:
    found = works.made("Adam", source(connection=works.database, grain=True, flour=False))
    works.grant("Ben", "editor", GRAIN, "table:land.grain_rejected")
    assert works.may("Ben", found) == EDITS
    assert works.shown("Ben", found)["definition"] is None, "it names a table that he may not see"
    assert works.shown("Ben", found)["hidden"] == 2


@rule("4: if nothing is left to count, the output layer counts")
def nothing_counts(works: Works) -> None:
    found = works.made("Adam", source(connection=works.database, grain=False))
    works.grant("Ben", "editor", GRAIN, "table:land.grain_rejected")
    assert works.may("Ben", found) == set()
    works.grant("Ben", "viewer", "layer:land")
    assert works.may("Ben", found) == {"see", "see_runs", "follow"}
    works.grant("Ben", "editor", "layer:land")
    assert works.may("Ben", found) == EDITS


@rule("4: its trigger is seen with see, managed with edit")
def triggers(works: Works) -> None:
    found = works.made("Adam", history())
    body = {"name": "Hourly", "when": {"kind": "cron", "cron": "0 * * * *"}}
    trigger = works.ok(works.as_("Adam").post(f"/api/pipelines/{found}/triggers", body))["id"]

    def asked() -> tuple[int, ...]:
        ben, place = works.as_("Ben"), f"/api/triggers/{trigger}"
        changed = ben.request("PATCH", place, json={"full_refresh": True}).status_code
        made = ben.post(f"/api/pipelines/{found}/triggers", {**body, "name": str(time.time())}).status_code
        return ben.get(place).status_code, ben.get(f"/api/pipelines/{found}/triggers").status_code, changed, made

    assert asked() == (404, 404, 404, 404)
    works.grant("Ben", "viewer", GRAIN, BREAD)
    assert asked() == (200, 200, 403, 403)
    works.grant("Ben", "editor", GRAIN, BREAD)
    assert asked() == (200, 200, 200, 200)


@rule("4: creating needs Editor on every table it reads and on the output layer where the kind has one")
def creating(works: Works) -> None:
    works.grant("Ben", "editor", BREAD)
    assert works.save("Ben", history()).status_code == 403
    works.grant("Ben", "viewer", GRAIN)
    works.grant("Ben", "editor", "layer:mill")
    assert works.save("Ben", history()).status_code == 403
    works.grant("Ben", "editor", GRAIN)
    works.revoke("Ben", "editor", "layer:mill")
    assert works.save("Ben", history()).status_code == 403
    works.grant("Ben", "editor", "layer:mill")
    assert works.save("Ben", history()).status_code == 200


@rule("4: creating needs Editor on … the output layer where the kind has one (a delivery has none)")
def creating_deliveries(works: Works) -> None:
    own = works.ok(works.as_("Ben").post("/api/destinations", {"name": "Own", "place": OWN}))["id"]
    works.grant("Ben", "viewer", GRAIN)
    assert works.save("Ben", delivery(own, "land.grain")).status_code == 403
    works.grant("Ben", "editor", GRAIN)
    assert works.save("Ben", delivery(own, "land.grain")).status_code == 200
    works.ok(works.as_("Ben").request("DELETE", f"/api/destinations/{own}"))


OWN = {"kind": "postgresql", "host": "db.example.com", "database": "shop", "user": "ben"}


@rule("4: adding an output that does not exist yet needs Editor on the output layer")
def new_outputs(works: Works) -> None:
    found = works.made("Adam", notebook((), ("mill.bread",)))
    works.grant("Ben", "editor", BREAD)
    wanted = notebook((), ("mill.bread", "mill.rolls"))
    assert works.patch("Ben", found, definition=wanted) == 403
    assert works.as_("Adam").get("/api/tables", prefix="mill.rolls").json()["items"] == []
    works.grant("Ben", "editor", "layer:mill")
    assert works.patch("Ben", found, definition=wanted) == 200
    assert works.shown("Ben", found)["writes"] == ["mill.bread", "mill.rolls"]


@rule("4: adding or retargeting a stream, disabled or not, needs the level on its table")
def adding_streams(works: Works) -> None:
    works.made("Adam", source(connection=works.database, grain=True, flour=True, salt=True))
    found = works.made("Adam", source(connection=works.database, grain=True))
    works.grant("Ben", "editor", GRAIN, "table:land.grain_rejected")
    works.role("Ben", "can_consume_data")
    for streams in ({"grain": True, "flour": True}, {"grain": True, "flour": False}, {"flour": True}):
        wanted = source(connection=works.database, **streams)
        assert works.patch("Ben", found, definition=wanted) == 403, streams
    works.grant("Ben", "editor", "table:land.flour", "table:land.flour_rejected")
    for streams in ({"grain": True, "flour": False}, {"grain": True, "flour": True}, {"flour": True}):
        assert works.patch("Ben", found, definition=source(connection=works.database, **streams)) == 200, streams


@rule("4: every edit is judged on the state before and after")
def before_and_after(works: Works) -> None:
    found = works.made("Adam", history("land.grain"))
    works.grant("Ben", "editor", "table:land.flour", BREAD, "layer:mill")
    assert works.patch("Ben", found, definition=history("land.flour")) == 404, "before"
    works.grant("Ben", "viewer", GRAIN)
    assert works.patch("Ben", found, definition=history("land.flour")) == 403, "before"
    works.grant("Ben", "editor", GRAIN)
    assert works.patch("Ben", found, definition=history("land.salt")) == 403, "after"
    assert works.patch("Ben", found, definition=history("land.flour")) == 200


@rule("4: with a list, nothing outside it is reachable but seeing the layers of what it lists. Read-only = see, list …")
def narrowed_tokens(works: Works) -> None:
    found = works.made("Adam", history())
    path = f"/api/pipelines/{found}"
    reads = works.as_("Adam", read_only=True)
    assert (reads.get(path).status_code, reads.get(f"{path}/runs").status_code) == (200, 200)
    assert reads.post(f"{path}/runs", {}).status_code == 403
    assert reads.request("PATCH", path, json={"name": "x"}).status_code == 403
    assert reads.post("/api/pipelines", {"name": "x", "definition": history()}).status_code == 403
    listed = works.as_("Adam", only=[works.company.id("table", one) for one in ("land.grain", "mill.bread")])
    assert listed.get(path).status_code == 404
    assert listed.get("/api/pipelines").json()["items"] == []
    assert listed.post("/api/pipelines", {"name": "x", "definition": history()}).status_code == 403


@rule("4: a narrowed token makes or changes no token")
def integrations_by_narrowed_tokens(works: Works) -> None:
    made = works.ok(works.as_("Adam").post("/api/integrations", {"name": "Screens", "tables": ["land.grain"]}))
    path = f"/api/integrations/{made['id']}"
    ends = works.as_("Adam", expires=now() + timedelta(hours=1))
    assert ends.post("/api/integrations", {"name": "More", "tables": ["land.grain"]}).status_code == 403
    assert ends.post(f"{path}/token", {}).status_code == 403
    assert ends.request("PATCH", path, json={"tables": ["land.flour"]}).status_code == 403
    assert ends.request("DELETE", path).status_code == 403
    assert ends.request("PATCH", path, json={"description": "On the wall"}).status_code == 200
    assert Api(works.company.client, made["secret"]).get("/api/tables").json()["items"][0]["name"] == "land.grain"
    assert works.as_("Adam").request("DELETE", path).status_code == 200


@rule("4: on the Starter plan stored grants are kept but ignored, every member is Manager on all data")
def starter(works: Works) -> None:
    found = works.made("Adam", history())
    works.grant("Ben", "viewer", GRAIN, BREAD)
    works.change(change="set_plan", plan="starter")
    try:
        assert works.may("Bea", found) == works.may("Ben", found) == {*EDITS, "delete"}
        assert works.save("Bea", history()).status_code == 200
    finally:
        works.change(change="set_plan", plan="growth")
    assert (works.may("Bea", found), works.may("Ben", found)) == (set(), {"see", "see_runs", "follow"})


@rule("4: a grant ends at its instant; 6.5: at every start … now")
def expiry(works: Works) -> None:
    ends = now() + timedelta(hours=1)
    works.grant("Ben", "editor", GRAIN, "layer:mill", expires=ends.isoformat())
    found = works.made("Ben", history())
    assert works.start("Adam", found) == 200
    over = update(grant_table).where(grant_table.c.expires_at == ends).values(expires_at=now())
    assert works.company.database.write(lambda connection: connection.execute(over).rowcount) == 2
    assert works.may("Ben", found) == set()
    assert works.start("Adam", found) == 403


# Sections 2 and 5


@rule("2: state is not a right: not empty, in use, attached answer 409 after the decision and bind admins too")
def states(works: Works) -> None:
    found = works.made("Adam", history())
    run = works.started("Adam", found)
    works.grant("Ben", "editor", GRAIN, BREAD)
    assert [works.delete(who, found) for who in ("Bea", "Ben", "Adam", "Olga")] == [404, 403, 409, 409]
    path = f"/api/runs/{run}"
    assert [works.as_(who).request("DELETE", path).status_code for who in ("Bea", "Ben", "Adam")] == [404, 403, 409]


@rule("5: changing where a connection … points … holds every … task … until someone … confirms the new place")
def moved_connections(works: Works) -> None:
    found = works.made("Adam", source(connection=works.database, grain=True))
    works.grant("Ben", "viewer", "layer:land")
    place = {**OWN, "user": "reader"}
    for host, status in (("db.example.com", 200), ("elsewhere.example.com", 409), ("db.example.com", 409)):
        changed = {"place": {**place, "host": host}}
        works.ok(works.as_("Olga").request("PATCH", f"/api/connections/{works.database}", json=changed))
        assert works.start("Adam", found) == status, host
    shown = {"versions": {works.database: 3}}
    assert works.as_("Ben").post(f"/api/pipelines/{found}/confirm", shown).status_code == 403
    assert works.as_("Adam").post(f"/api/pipelines/{found}/confirm", shown).status_code == 200
    assert works.start("Adam", found) == 200


# Section 6


@rule("6.1: the member who last saved its definition (everything but its name, description, activation and schedule)")
def acts_for(works: Works) -> None:
    works.grant("Ben", "editor", GRAIN, "layer:mill")
    works.grant("Bea", "editor", GRAIN, "layer:mill")
    found = works.made("Ben", history())
    assert works.patch("Bea", found, name="Other", description="Other", active=False) == 200
    assert works.patch("Bea", found, active=True) == 200
    trigger = {"name": "Hourly", "when": {"kind": "cron", "cron": "0 * * * *"}}
    works.ok(works.as_("Bea").post(f"/api/pipelines/{found}/triggers", trigger))
    assert works.shown("Adam", found)["acts_for"] == works.member("Ben")
    _, job = works.claimed("Bea", found)
    run = works.as_("Adam").get(f"/api/runs/{job['id']}").json()
    assert (run["acts_for"], run["started_by"]) == (works.member("Ben"), works.member("Bea"))
    assert works.patch("Bea", found, definition=history()) == 200
    assert works.shown("Adam", found)["acts_for"] == works.member("Bea")


@rule("6.1: saving it and each start also need, of that member, use on its destination")
def destinations(works: Works) -> None:
    works.grant("Ben", "editor", GRAIN)
    hidden = works.save("Ben", delivery(works.bakery, "land.grain"))
    missing = works.save("Ben", delivery(f"dst_{'0' * 20}", "land.grain"))
    assert (hidden.status_code, missing.status_code) == (403, 403)
    assert told(hidden) == told(missing)
    shared = {"change": "share", "resource": works.bakery}
    works.change(**shared, for_use=True)
    works.change(change="set_scope", member="Ben", scope="entire")
    found = works.made("Ben", delivery(works.bakery, "land.grain"))
    assert works.start("Adam", found) == 200
    works.change(**shared, for_use=False)
    assert works.may("Ben", found) == EDITS
    for who in ("Ben", "Adam"):
        assert works.start(who, found) == 403, "whom it acts for may not use the destination"
    assert works.patch("Ben", found, definition=delivery(works.bakery, "land.grain")) == 403
    assert works.patch("Adam", found, definition=delivery(works.bakery, "land.grain")) == 200
    assert works.start("Ben", found) == 200
    works.ok(works.as_("Bea").request("DELETE", f"/api/destinations/{works.bakery}"))
    assert works.start("Adam", found) == 403, "a deleted destination is absent"
    works.ok(works.as_("Bea").post(f"/api/destinations/{works.bakery}/restore", None))


def told(answer: object) -> object:
    body = answer.json()  # type: ignore[attr-defined]
    return {name: value for name, value in body.items() if name != "request_id"}


@rule("6.1: … and consume, edit or manage in the space of each connection and gateway")
def connections(works: Works) -> None:
    works.grant("Ben", "editor", "layer:land")
    wanted = source(connection=works.database, grain=True)
    hidden, missing = works.save("Ben", wanted), works.save("Ben", source(connection=f"con_{'0' * 20}", grain=True))
    assert told(hidden) == told(missing)
    for role, status in (
        ("can_view", 403),
        ("can_operate", 403),
        ("can_view_data", 403),
        ("can_consume_data", 200),
        ("can_edit", 200),
        ("can_manage", 200),
    ):
        works.role("Ben", role)
        answer = works.save("Ben", wanted)
        assert answer.status_code == status, role
        if status == 200:
            found = answer.json()["id"]
            assert works.start("Adam", found) == 200
            works.take("Ben", role)
            assert works.start("Adam", found) == 403, role
        else:
            works.take("Ben", role)


@rule("6.2: create and update of the definition … need, beside the role, the author's own Viewer … and Editor …")
def tasks(works: Works) -> None:
    wanted = history("land.grain", "mill.bread")
    assert works.save("Tom", wanted, project=works.project).status_code == 403
    works.grant("Tom", "viewer", GRAIN)
    works.grant("Tom", "editor", BREAD)
    found = works.made("Tom", wanted, project=works.project)
    assert works.patch("Tom", found, definition=wanted) == 200
    assert works.patch("Tom", found, definition=history("land.grain", "mill.cake")) == 403
    works.grant("Ben", "manager", "layer:land", "layer:mill")
    assert works.save("Ben", wanted, project=works.project).status_code == 403, "Can operate does not edit"
    assert works.patch("Ben", found, definition=wanted) == 403
    works.revoke("Tom", "viewer", GRAIN)
    assert works.patch("Tom", found, definition=wanted) == 403


@rule("6.2: edit_attributes, activate, schedule and validate need the cell alone")
def attributes_of_tasks(works: Works) -> None:
    found = works.made("Adam", history(), project=works.project)
    assert works.patch("Tom", found, name="Tom's", description="x", active=True) == 200
    body = {"name": "Hourly", "when": {"kind": "cron", "cron": "0 * * * *"}}
    assert works.as_("Tom").post(f"/api/pipelines/{found}/triggers", body).status_code == 200
    assert works.patch("Tom", found, definition=history()) == 403
    assert works.patch("Ben", found, name="Ben's") == 403, "Can operate"
    assert works.shown("Tom", found)["definition"] is None, "the cell shows no table that he may not see"


@rule("6.2: … and consume, edit or manage where its connections and gateways live")
def connections_of_tasks(works: Works) -> None:
    works.grant("Tom", "editor", "layer:land")
    assert works.save("Tom", source(connection=works.shop, grain=True), project=works.project).status_code == 200
    assert works.save("Tom", source(connection=works.database, grain=True), project=works.project).status_code == 403
    works.role("Tom", "can_view")
    assert works.save("Tom", source(connection=works.database, grain=True), project=works.project).status_code == 403
    works.role("Tom", "can_consume_data")
    assert works.save("Tom", source(connection=works.database, grain=True), project=works.project).status_code == 200


@rule("6.2: it runs as the project owner. 6.5: and for a task also the member who last saved it")
def whom_tasks_act_for(works: Works) -> None:
    works.grant("Tom", "editor", "layer:land", "layer:mill")
    found = works.made("Tom", history(), project=works.project)
    assert works.shown("Tom", found)["acts_for"] == works.member("Tess")
    assert works.start("Ben", found) == 403, "the project's owner has no level"
    works.grant("Tess", "viewer", GRAIN)
    works.grant("Tess", "editor", BREAD)
    _, job = works.claimed("Ben", found)
    assert works.as_("Adam").get(f"/api/runs/{job['id']}").json()["acts_for"] == works.member("Tess")
    works.ok(works.as_("Adam").post(f"/api/runs/{job['id']}/cancel", None))
    assert works.start("Tom", found) == 403, "Can edit does not run"
    works.revoke("Tom", "editor", "layer:land")
    assert works.start("Ben", found) == 403, "whoever saved it last lost a level"
    plan = works.ok(works.as_("Adam").get(f"/api/pipelines/{found}/plan"))
    assert {one["name"]: one["held"] for one in plan["needs"]} == {"land.grain": False, "mill.bread": True}
    assert works.patch("Adam", found, definition=history()) == 200
    assert works.start("Ben", found) == 200


@rule("6.3: view data in tasks … as far as the project owner and the member who last saved the task could both grant")
def data_of_tasks(works: Works) -> None:
    works.grant("Tom", "manager", "layer:land", "layer:mill")
    found = works.made("Tom", history(), project=works.project)
    works.role("Bea", "can_view_data", works.sales)
    assert not works.as_("Bea").may("view_data", found)
    works.grant("Tess", "editor", BREAD)
    assert not works.as_("Bea").may("view_data", found)
    works.grant("Tess", "manager", BREAD)
    assert works.as_("Bea").may("view_data", found)
    works.revoke("Tess", "manager", BREAD)
    works.grant("Bea", "viewer", BREAD)
    assert works.as_("Bea").may("view_data", found)


@rule(
    "6.5: at every start of anything: whom it acts for … must have Viewer on what it reads and Editor on what it writes"
)
def starts(works: Works) -> None:
    works.grant("Ben", "editor", GRAIN, "layer:mill")
    found = works.made("Ben", history())
    works.grant("Bea", "editor", GRAIN, BREAD)
    assert works.start("Bea", found) == 200
    works.revoke("Ben", "editor", GRAIN)
    works.grant("Ben", "viewer", GRAIN)
    assert works.start("Bea", found) == 200, "to read, Viewer is enough"
    works.revoke("Ben", "editor", "layer:mill")
    works.grant("Ben", "viewer", "layer:mill")
    for who in ("Bea", "Adam"):
        assert works.start(who, found) == 403, "to write, it is not"
    plan = works.ok(works.as_("Bea").get(f"/api/pipelines/{found}/plan"))
    assert not plan["may_start"]
    assert {one["name"]: one["held"] for one in plan["needs"]} == {"land.grain": True, "mill.bread": False}
    assert works.patch("Bea", found, definition=history()) == 200, "it acts for who saves it again"
    assert works.start("Bea", found) == 200


@rule("6.5: at every start (and of a run that has waited, when it begins)")
def waiting_runs(works: Works) -> None:
    works.grant("Ben", "editor", GRAIN, "layer:mill")
    found = works.made("Ben", history())
    run = works.started("Adam", found)
    works.revoke("Ben", "editor", GRAIN)
    assert works.claim() == []
    assert works.as_("Adam").get(f"/api/runs/{run}").json()["state"] == "blocked"


@rule(
    "6.5: a scheduled fire is also judged for the trigger's author … pipeline, trigger … blocked … the trigger pauses"
)
def fires(works: Works) -> None:
    works.grant("Ben", "editor", GRAIN, BREAD)
    found = works.made("Adam", history())
    trigger, state = works.fired("Ben", found)
    assert state == "queued"
    works.revoke("Ben", "editor", BREAD)
    assert works.fired("Ben", found, trigger) == (trigger, "blocked")
    run = works.as_("Adam").get(f"/api/pipelines/{found}/runs").json()["items"][0]
    shown = works.as_("Adam").get(f"/api/triggers/{trigger}").json()
    assert "author may no longer start this pipeline" in run["error"]
    assert (shown["enabled"], shown["paused_because"]) == (False, run["error"])


@rule("6.5: at every start of anything (also by a schedule): whom it acts for … 6.1: … of each connection")
def fires_of_others(works: Works) -> None:
    works.grant("Ben", "editor", "layer:land")
    works.role("Ben", "can_consume_data")
    found = works.made("Ben", source(connection=works.database, grain=True))
    trigger, state = works.fired("Adam", found)
    assert state == "queued"
    works.take("Ben", "can_consume_data")
    assert works.fired("Adam", found, trigger) == (trigger, "blocked")


@rule("6.5: who last saved or resumed the trigger; activating a pipeline or resuming a run is neither")
def authors(works: Works) -> None:
    works.grant("Ben", "editor", GRAIN, "layer:mill")
    found = works.made("Adam", history())
    trigger, _ = works.fired("Ben", found)
    adam = works.as_("Adam")

    def author() -> str:
        return str(works.ok(adam.get(f"/api/triggers/{trigger}"))["author"]["name"])

    assert works.patch("Adam", found, active=False) == works.patch("Adam", found, active=True) == 200
    run = works.started("Adam", found)
    works.ok(adam.post(f"/api/runs/{run}/cancel", None))
    works.ok(adam.post(f"/api/runs/{run}/resume", None))
    works.ok(adam.post(f"/api/triggers/{trigger}/pause", None))
    assert author() == "Ben"
    works.ok(adam.post(f"/api/triggers/{trigger}/resume", None))
    assert author() == "Adam"
    works.ok(works.as_("Ben").request("PATCH", f"/api/triggers/{trigger}", json={"name": "Saved by Ben"}))
    assert author() == "Ben"


@rule("6.5: … task, update, with 6.2's levels")
def fires_of_tasks(works: Works) -> None:
    works.grant("Tess", "editor", "layer:land", "layer:mill")
    found = works.made("Adam", history(), project=works.project)
    trigger, state = works.fired("Tom", found)
    assert state == "blocked", "he schedules it by the cell, and has no level on its tables"
    works.grant("Tom", "viewer", GRAIN)
    works.grant("Tom", "editor", BREAD)
    works.ok(works.as_("Tom").post(f"/api/triggers/{trigger}/resume", None))
    assert works.fired("Tom", found, trigger) == (trigger, "queued")


@rule("6.6: marts area and spaces area never grant lakehouse levels")
def spaces_grant_no_levels(works: Works) -> None:
    found = works.made("Adam", history(), project=works.project)
    shown = works.shown("Tess", found)
    assert (shown["definition"], shown["reads"], shown["writes"], shown["hidden"]) == (None, [], [], 2)
    assert works.as_("Tess").get(f"/api/tables/{works.company.id('table', 'land.grain')}").status_code == 404
    plan = works.ok(works.as_("Tess").get(f"/api/pipelines/{found}/plan"))
    assert not {"land.grain", "mill.bread"} & set(str(plan).replace("'", " ").split())


@rule("6.6: … and lakehouse levels never grant mart or space rights")
def levels_grant_no_spaces(works: Works) -> None:
    found = works.made("Adam", history(), project=works.project)
    works.grant("Tom", "manager", "layer:land", "layer:mill")
    works.change(change="take_space_role", space=works.sales, to="Tom", space_role="can_edit")
    try:
        assert works.may("Tom", found) == set()
        assert (works.start("Tom", found), works.delete("Tom", found)) == (404, 404)
    finally:
        works.change(change="give_space_role", space=works.sales, to="Tom", space_role="can_edit")


@pytest.mark.parametrize(("sentence", "case"), RULES, ids=[case.__name__ for _, case in RULES])
def test_rule(works: Works, sentence: str, case: Case) -> None:
    assert sentence
    case(works)
