"""Hostile members among pipelines, runs, triggers, connections and destinations: what they learn, and what they break."""

import json
from typing import Any

import pytest
from sqlalchemy import update

from headgate.pipelines.models import pipeline_definition_table
from tests.pipelines.pipeline_company import PipelineCompany, delivery, history, notebook, source
from tests.spaces.connections.support import SECRET
from tests.support.company import Api

ZERO = "0" * 20
EVERY_HOUR = {"name": "Hourly", "when": {"kind": "cron", "cron": "0 * * * *"}}
PLAN = "/api/pipelines/plan"


@pytest.fixture
def firm(works_on_sqlite: PipelineCompany) -> PipelineCompany:
    """The mill; what is said is the same on both kinds of database."""
    return works_on_sqlite


def told(answer: Any, *names: str) -> tuple[int, str]:
    """What an answer tells, without the names that the question gave."""
    body = {name: value for name, value in answer.json().items() if name != "request_id"}
    text = json.dumps(body, sort_keys=True)
    for one in names:
        text = text.replace(one, "IT")
    return answer.status_code, text


def alike(api: Api, method: str, path: str, hidden: str, missing: str, body: Any = None) -> tuple[int, str]:
    """The answer about something hidden, which is the one about something that does not exist."""
    answers = [
        told(api.request(method, path.format(one), **({"json": body} if method != "GET" else {})), one)
        for one in (hidden, missing)
    ]
    assert answers[0] == answers[1], (method, path)
    return answers[0]


# What is hidden looks like what is missing


OF_PIPELINES: tuple[tuple[str, str, Any], ...] = (
    ("GET", "/api/pipelines/{}", None),
    ("PATCH", "/api/pipelines/{}", {"name": "Mine"}),
    ("PATCH", "/api/pipelines/{}", {"active": False}),
    ("PATCH", "/api/pipelines/{}", {"definition": history()}),
    ("DELETE", "/api/pipelines/{}", None),
    ("GET", "/api/pipelines/{}/plan", None),
    ("POST", "/api/pipelines/{}/confirm", {"versions": {}}),
    ("POST", "/api/pipelines/{}/runs", {}),
    ("GET", "/api/pipelines/{}/runs", None),
    ("GET", "/api/pipelines/{}/triggers", None),
    ("POST", "/api/pipelines/{}/triggers", EVERY_HOUR),
    ("GET", "/api/resources/{}", None),
)
OF_RUNS = (
    ("GET", ""),
    ("GET", "?wait=5"),
    ("GET", "/log"),
    ("GET", "/log?wait=5"),
    ("POST", "/cancel"),
    ("POST", "/resume"),
    ("DELETE", ""),
    ("GET", "/artifacts/plot.png"),
)
OF_TRIGGERS = (("GET", ""), ("PATCH", ""), ("POST", "/pause"), ("POST", "/resume"), ("DELETE", ""))


def test_a_hidden_pipeline_with_its_runs_and_triggers_is_missing(firm: PipelineCompany) -> None:
    found = firm.made("Adam", history())
    trigger = firm.ok(firm.as_("Adam").post(f"/api/pipelines/{found}/triggers", EVERY_HOUR))["id"]
    hand, job = firm.claimed("Adam", found)
    keep(hand, job, "plot.png", b"secret")
    ben = firm.as_("Ben")
    for method, path, body in OF_PIPELINES:
        assert alike(ben, method, path, found, f"pip_{ZERO}", body)[0] == 404, (method, path)
    for method, path in OF_RUNS:
        assert alike(ben, method, f"/api/runs/{{}}{path}", job["id"], f"run_{ZERO}")[0] == 404, (method, path)
    for method, path in OF_TRIGGERS:
        assert alike(ben, method, f"/api/triggers/{{}}{path}", trigger, f"plt_{ZERO}", {})[0] == 404, (method, path)


def test_a_hidden_connection_and_a_hidden_destination_are_missing(firm: PipelineCompany) -> None:
    for kind, hidden in (("connections", firm.database), ("destinations", firm.bakery)):
        missing = f"{hidden[:4]}{ZERO}"
        for method, path, body in (
            ("GET", "", None),
            ("PATCH", "", {"name": "Mine"}),
            ("DELETE", "", None),
            ("POST", "/checks", {"operation": "test"}),
        ):
            status, _ = alike(firm.as_("Ben"), method, f"/api/{kind}/{{}}{path}", hidden, missing, body)
            assert status == 404


DRAFTS: dict[str, Any] = {
    "what a history reads": lambda name: history(name, "mill.cake"),
    "what a history writes": lambda name: history("mill.cake", name),
    "what a notebook reads": lambda name: notebook((name,), ("mill.cake",)),
    "what a notebook writes": lambda name: notebook((), ("mill.cake", name)),
    "a volume of a notebook": lambda name: notebook((), ("mill.cake",), volumes=[name]),
    "a volume that a notebook writes": lambda name: notebook((), ("mill.cake",), output_volumes=[name]),
    "a wheel of a notebook": lambda name: notebook((), ("mill.cake",), wheels=[{"volume": name, "path": "x.whl"}]),
    "a volume of a source": lambda name: {**source("mill", cake=True), "volume": name},
    "what a check compares with": lambda name: notebook(
        (),
        ("mill.cake",),
        expectations=[
            {"table": "mill.cake", "check": "reference", "columns": ["a"], "other": name, "other_columns": ["a"]}
        ],
    ),
}


@pytest.mark.parametrize("what", DRAFTS)
@pytest.mark.parametrize("path", ["/api/pipelines", PLAN])
def test_a_definition_tells_hidden_tables_from_missing_ones_by_nothing(
    firm: PipelineCompany, path: str, what: str
) -> None:
    firm.grant("Ben", "editor", "layer:mill", "table:land.salt")
    answers = {}
    for name in ("land.grain", "land.crates", "land.absent"):
        body = {"definition": DRAFTS[what](name)} | ({} if path == PLAN else {"name": "Mine"})
        answers[name] = told(firm.as_("Ben").post(path, body), name)
    assert len(set(answers.values())) == 1, answers
    assert answers["land.grain"][0] == 403


@pytest.mark.parametrize("path", ["/api/pipelines", PLAN])
def test_a_definition_tells_hidden_places_from_missing_ones_by_nothing(firm: PipelineCompany, path: str) -> None:
    firm.grant("Ben", "editor", "layer:mill")

    def ask(definition: dict[str, Any], **more: Any) -> tuple[int, str]:
        body = {"definition": definition, **more} | ({} if path == PLAN else {"name": "Mine"})
        return told(firm.as_("Ben").post(path, body))

    secret = {"name": "key", "field": "password"}
    for one, other in (
        (firm.database, f"con_{ZERO}"),
        (firm.bakery, f"dst_{ZERO}"),
        (firm.project, f"prj_{ZERO}"),
    ):
        if one == firm.project:
            firm.change(change="take_space_role", space=firm.sales, to="group:analysts", space_role="can_operate")
            found, missing = ask(history("mill.cake"), project=one), ask(history("mill.cake"), project=other)
            firm.change(change="give_space_role", space=firm.sales, to="group:analysts", space_role="can_operate")
        elif one == firm.bakery:
            found, missing = ask(delivery(one, "mill.cake")), ask(delivery(other, "mill.cake"))
        else:
            found, missing = (ask(source("mill", connection=place, cake=True)) for place in (one, other))
            assert found == missing
            found, missing = (
                ask(notebook((), ("mill.cake",), secrets=[{**secret, "connection": place}])) for place in (one, other)
            )
        assert found == missing
        assert found[0] == 403


def test_what_does_not_exist_is_said_to_admins_too(firm: PipelineCompany) -> None:
    for definition, more in (
        (source(connection=f"con_{ZERO}", grain=True), {}),
        (delivery(f"dst_{ZERO}", "land.grain"), {}),
        (history(), {"project": f"prj_{ZERO}"}),
        (history(), {"project": firm.space}),
        (history(), {"project": "Shop"}),
        (history(), {"project": ""}),
        (history("nowhere.grain"), {}),
        (history("land.grain", "nowhere.bread"), {}),
        ({**source(grain=True), "output_layer": "nowhere"}, {}),
    ):
        for path, name in (("/api/pipelines", {"name": "Mine"}), (PLAN, {})):
            answer = firm.as_("Adam").post(path, {"definition": definition, **name, **more})
            assert 400 <= answer.status_code < 500 or answer.json().get("problems") or "id" in answer.json(), (
                answer.text
            )


# What others' runs tell


def keep(hand: Any, job: dict[str, Any], name: str, content: bytes) -> None:
    about = {"worker": hand.id, "fence": job["fence"], "media_type": "image/png"}
    answer = hand.request("PUT", f"/runs/{job['id']}/artifacts/{name}", params=about, content=content)
    assert answer.status_code == 200, answer.text


def test_a_run_tells_nothing_of_what_its_pipeline_read_before(firm: PipelineCompany) -> None:
    found = firm.made("Adam", notebook(("land.grain",), ("mill.bread",)))
    hand, job = firm.claimed("Adam", found)
    hand.lines(job, "land.grain has 7 rows")
    keep(hand, job, "plot.png", b"rows of land.grain")
    hand.step(job, 0, "running")
    hand.step(job, 0, "failed", detail={"cells": ["land.grain"]})
    assert hand.finish(job, "failed", error_code="X", error="land.grain is odd").status_code == 200
    assert firm.patch("Adam", found, definition=notebook(("land.flour",), ("mill.bread",))) == 200
    firm.grant("Ben", "viewer", "table:land.flour", "table:mill.bread")
    ben, path = firm.as_("Ben"), f"/api/runs/{job['id']}"
    shown = firm.ok(ben.get(path))
    assert (shown["state"], shown["definition"], shown["artifacts"]) == ("failed", None, [])
    listed = firm.ok(ben.get(f"/api/pipelines/{found}/runs"))
    log = firm.ok(ben.get(f"{path}/log"))
    assert "grain" not in json.dumps([shown, listed, log])
    assert ben.get(f"{path}/artifacts/plot.png").status_code == 404
    firm.grant("Ben", "viewer", "table:land.grain")
    assert firm.ok(ben.get(path))["error"] == "land.grain is odd"
    assert len(firm.ok(ben.get(f"{path}/log"))["items"]) == 1
    assert ben.get(f"{path}/artifacts/plot.png").content == b"rows of land.grain"


def test_a_run_tells_nothing_of_a_table_that_was_deleted_since(firm: PipelineCompany) -> None:
    firm.tables("land.husk")
    found = firm.made("Adam", notebook(("land.husk",), ("mill.bread",)), project=firm.project)
    hand, job = firm.claimed_as_owner("Adam", found)
    hand.lines(job, "land.husk has 7 rows")
    hand.finish(job, "failed", error_code="X", error="land.husk is odd")
    firm.ok(firm.as_("Adam").request("DELETE", f"/api/tables/{firm.company.id('table', 'land.husk')}"))
    firm.grant("Bea", "viewer", "table:land.salt", "table:mill.bread")
    path = f"/api/runs/{job['id']}"
    both = [firm.ok(firm.as_("Bea").get(one)) for one in (path, f"{path}/log", f"/api/pipelines/{found}/plan")]
    assert "husk" not in json.dumps(both), "seeing the layer by way of another table is no right to it"
    assert firm.ok(firm.as_("Adam").get(path))["error"] == "land.husk is odd"


def test_a_task_names_no_hidden_table_whatever_is_wrong_with_it(firm: PipelineCompany) -> None:
    found = firm.made("Adam", history(), project=firm.project)
    told_ = update(pipeline_definition_table).where(pipeline_definition_table.c.pipeline_id == found)
    firm.company.database.write(lambda c: c.execute(told_.values(unresolved="land.grain does not exist")).rowcount)
    firm.grant("Tess", "editor", "layer:land", "layer:mill")
    ben = firm.as_("Ben")
    refused = ben.post(f"/api/pipelines/{found}/runs", {})
    assert refused.status_code == 409
    seen = [refused.json(), ben.get(f"/api/pipelines/{found}").json(), ben.get(f"/api/pipelines/{found}/plan").json()]
    assert "grain" not in json.dumps(seen)
    assert "must save it again" in refused.json()["detail"]
    assert "land.grain" in firm.as_("Tess").get(f"/api/pipelines/{found}/plan").json()["problems"][0]


def test_a_step_names_no_table_but_its_own(firm: PipelineCompany) -> None:
    found = firm.made("Adam", history(), project=firm.project)
    _, job = firm.claimed_as_owner("Adam", found)
    firm.grant("Bea", "viewer", "table:mill.bread")
    [step] = firm.ok(firm.as_("Bea").get(f"/api/runs/{job['id']}"))["steps"]
    assert step["title"] == "history"
    firm.grant("Bea", "viewer", "table:land.grain")
    [step] = firm.ok(firm.as_("Bea").get(f"/api/runs/{job['id']}"))["steps"]
    assert step["title"] == "Update the history of land.grain in mill.bread"


def test_a_file_is_of_its_own_run(firm: PipelineCompany) -> None:
    first, job = firm.claimed("Adam", firm.made("Adam", history()))
    keep(first, job, "plot.png", b"first")
    other = firm.started("Adam", firm.made("Adam", history("land.flour", "mill.cake")))
    adam = firm.as_("Adam")
    assert adam.get(f"/api/runs/{job['id']}/artifacts/plot.png").content == b"first"
    for path in (
        f"{other}/artifacts/plot.png",
        f"{other}/artifacts/..%2F{job['id']}%2F1%2Fplot.png",
        f"{other}/artifacts/../../{job['id']}/artifacts/../plot.png",
        f"{job['id']}/artifacts/%2e%2e",
        f"{job['id']}/artifacts/plot.png%00",
    ):
        assert adam.get(f"/api/runs/{path}").status_code in {404, 422}, path
    answer = adam.get(f"/api/runs/{job['id']}/artifacts/plot.png")
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_page_begins_at_cursors_of_its_own_list_alone(firm: PipelineCompany) -> None:
    one, other = (
        firm.made("Adam", history()),
        firm.made("Adam", history("land.flour", "mill.cake")),
    )
    for pipeline in (one, one, other, other):
        firm.started("Adam", pipeline)
    adam = firm.as_("Adam")
    cursor = adam.get(f"/api/pipelines/{one}/runs", limit=1).json()["next_cursor"]
    assert len(adam.get(f"/api/pipelines/{one}/runs", limit=1, cursor=cursor).json()["items"]) == 1
    for path in (f"/api/pipelines/{other}/runs", "/api/pipelines", "/api/connections", "/api/destinations"):
        assert adam.get(path, cursor=cursor).status_code == 422, path
    listed = adam.get("/api/pipelines", limit=1).json()["next_cursor"]
    seen = firm.as_("Ben").get("/api/pipelines", cursor=listed).json()["items"]
    assert {one["name"] for one in seen} <= {"Land shop orders"}
    for bad in ("x", "====", "\x00", "W10", "WzEsMiwzXQ", "A" * 5000):
        assert adam.get(f"/api/pipelines/{one}/runs", cursor=bad).status_code == 422, bad


# Credentials that are not theirs


def test_tokens_open_their_own_doors_alone(firm: PipelineCompany) -> None:
    hand, job = firm.claimed("Adam", firm.made("Adam", notebook(("land.grain",), ("mill.bread",))))
    client = firm.company.client
    run, reading = Api(client, job["token"]), Api(client, job["reading_token"])
    about = {"worker": hand.id, "fence": job["fence"]}
    place = f"/api/worker/runs/{job['id']}"
    job_path = f"/api/worker/jobs/run/{job['id']}"
    for api in (run, reading, firm.as_("Adam"), firm.as_("Ben"), firm.as_(None)):
        assert api.post(f"{job_path}/finish", {**about, "state": "succeeded"}).status_code == 401
        assert api.post(f"{job_path}/log", {**about, "lines": []}).status_code == 401
        assert api.post("/api/worker/jobs/run/claim", {**hand.about(), "slots": 1}).status_code == 401
        assert api.get(f"{place}/volumes/{firm.company.id('volume', 'land.crates')}", **about).status_code == 401
    for path in ("/api/pipelines", f"/api/runs/{job['id']}", "/api/connections", "/api/tokens"):
        for secret in (job["token"], job["reading_token"], hand.secret):
            assert Api(client, secret).get(path).status_code == 401
    made = reading.post("/iceberg/v1/namespaces/mill/tables", {"name": "bread", "schema": {"type": "struct"}})
    assert made.status_code in {403, 404}
    stranger = {"worker": f"wrk_{ZERO}", "fence": job["fence"], "state": "succeeded"}
    assert hand.request("POST", f"/jobs/run/{job['id']}/finish", json=stranger).status_code == 409


def test_no_answer_holds_a_secret(firm: PipelineCompany) -> None:
    found = firm.made("Adam", source(connection=firm.database, grain=True))
    sent = firm.made("Adam", delivery(firm.bakery, "land.grain"))
    run = firm.started("Adam", found)
    firm.claim()
    olga = firm.as_("Olga")
    for path in (
        "/api/pipelines",
        f"/api/pipelines/{found}",
        f"/api/pipelines/{found}/plan",
        f"/api/pipelines/{sent}/plan",
        f"/api/runs/{run}",
        f"/api/runs/{run}/log",
        "/api/connections",
        f"/api/connections/{firm.database}",
        f"/api/destinations/{firm.bakery}",
        "/api/audit",
        "/api/access/export",
    ):
        answer = olga.get(path)
        assert (answer.status_code, SECRET in answer.text) == (200, False), path


# Odd texts and sizes

NAMES = ["", " ", "\x00", "a\x00b", "\x1b[31m", "a\nb", "\x85", "\ud800", "x" * 300]


@pytest.mark.parametrize("name", NAMES)
def test_names_hold_no_control_characters(firm: PipelineCompany, name: str) -> None:
    found = firm.made("Adam", history())
    headers = {"Content-Type": "application/json"}
    for method, path, body in (
        ("POST", "/api/pipelines", {"name": name, "definition": history("land.flour", "mill.cake")}),
        ("PATCH", f"/api/pipelines/{found}", {"name": name}),
        ("POST", f"/api/pipelines/{found}/triggers", {**EVERY_HOUR, "name": name}),
        ("POST", "/api/integrations", {"name": name, "tables": ["land.grain"]}),
        ("PATCH", f"/api/destinations/{firm.bakery}", {"name": name}),
    ):
        answer = firm.as_("Adam").request(method, path, content=json.dumps(body), headers=headers)
        assert answer.status_code in {400, 422}, (method, path, answer.text)


def test_markup_in_a_name_is_a_name(firm: PipelineCompany) -> None:
    name = "<img src=x onerror=alert(1)> {{7*7}} ${x} '; DROP TABLE runs; --"
    found = firm.made("Adam", history(), name=name)
    answer = firm.as_("Adam").get(f"/api/pipelines/{found}")
    assert (answer.json()["name"], answer.headers["content-type"]) == (name, "application/json")
    assert firm.as_("Adam").get("/api/pipelines", prefix="<img").json()["items"][0]["id"] == found


@pytest.mark.parametrize(
    "parameters",
    [
        {"x": "y" * 2_000_000},
        {"x" * 100_000: 1},
        {f"k{n}": 1 for n in range(101)},
        {"x": 10**400},
        {"x": {"deep": 1}},
        {"x": [1]},
        {"\x00": 1},
        {"x": "\x00"},
        {"x": "\ud800"},
    ],
    ids=["long", "long name", "many", "large number", "object", "list", "zero in a name", "zero", "half a character"],
)
def test_parameters_of_a_run_are_bounded(firm: PipelineCompany, parameters: dict[str, Any]) -> None:
    found = firm.made("Adam", notebook((), ("mill.bread",)))
    content = json.dumps({"parameters": parameters})
    headers = {"Content-Type": "application/json"}
    answer = firm.as_("Adam").request("POST", f"/api/pipelines/{found}/runs", content=content, headers=headers)
    assert answer.status_code in {400, 413, 422}, answer.text[:200]


DEFINITIONS: dict[str, tuple[Any, str]] = {
    "a check of a table that is not its own": (
        history(expectations=[{"table": "land.salt", "check": "rows", "least": 1}]),
        "land.salt is not a table that this pipeline writes or delivers",
    ),
    "a table that holds its own history": (history("land.grain", "land.grain"), "its own history"),
    "a stream into the side table of another": (source(grain=False, grain_rejected=True), "the same table"),
    "a volume that is a table": ({**source(flour=True), "volume": "land.grain"}, "land.grain is a table"),
    "a table that is a volume": (notebook(("land.crates",), ("mill.bread",)), "land.crates is a volume"),
    "an output that is a volume": (notebook((), ("land.crates",)), "land.crates is a volume"),
    "a volume to write that is not there": (
        notebook((), ("mill.bread",), output_volumes=["land.absent"]),
        "there is no volume land.absent",
    ),
    "a connection by its name": (source(connection="Mill database", grain=True), "is not the id of a connection"),
    "a connection without a name": (
        {**source(grain=True), "volume": None, "connection": ""},
        "is not the id of a conn",
    ),
    "a connection that is a destination": (
        source(connection=f"dst_{ZERO}", grain=True),
        "is not the id of a connection",
    ),
    "a destination by its name": (delivery("Bakery", "land.grain"), "is not the id of a destination"),
    "a secret by the name of its connection": (
        notebook((), ("mill.bread",), secrets=[{"name": "a", "connection": "Mill database", "field": "password"}]),
        "is not the id of a connection",
    ),
    "an output twice": (notebook((), ("mill.bread", "mill.bread")), "outputs: a name occurs twice"),
    "a layer that is no name": ({**source(grain=True), "output_layer": "raw; DROP"}, "output_layer"),
    "an output layer that is a path": ({**source(grain=True), "output_layer": "../raw"}, "output_layer"),
}


@pytest.mark.parametrize("what", DEFINITIONS)
@pytest.mark.parametrize("path", ["/api/pipelines", PLAN])
def test_what_cannot_run_is_refused_before_it_is_saved(firm: PipelineCompany, path: str, what: str) -> None:
    definition, says = DEFINITIONS[what]
    body = {"definition": definition} | ({} if path == PLAN else {"name": "Mine"})
    answer = firm.as_("Adam").post(path, body)
    assert answer.status_code == 422, answer.text
    assert says in answer.json()["detail"]


def test_a_refused_save_changes_nothing(firm: PipelineCompany) -> None:
    firm.grant("Ben", "editor", "table:land.grain", "table:mill.bread")
    found = firm.made("Adam", history())
    assert firm.patch("Ben", found, active=False, name="Mine", definition=history("land.salt")) == 403
    shown = firm.shown("Ben", found)
    assert (shown["active"], shown["version"]) == (True, 1)
    assert shown["name"] != "Mine"
