"""Custom checks of what nothing has written yet: saved with a note, and judged by the first run within what it declared."""

from typing import Any

from sqlalchemy import update

from headgate.pipelines.models import pipeline_definition_table
from tests.pipelines.pipeline_company import PipelineCompany
from tests.pipelines.probes import LONG, Probe, create
from tests.pipelines.runs.support import RunHand, start
from tests.support.company import Api, Company

CHECK = {"table": "trusted.made", "check": "sql", "sql": "SELECT * FROM trusted.made WHERE amount < 0"}
NOTE = "judged by the first run, before anything is published"
MISSING = {"error_code": "TABLE_OR_VIEW_NOT_FOUND", "error": "There is no table trusted.made that you may see"}


def notebook(*checks: dict[str, Any], outputs: tuple[str, ...] = ("trusted.made",), **more: Any) -> dict[str, Any]:
    written = [{"table": one} for one in outputs]
    return {"kind": "notebook", "cells": [{"source": "1"}], "outputs": written, "expectations": list(checks), **more}


def post(millrace: Company, definition: dict[str, Any], name: str = "Made") -> dict[str, Any]:
    answer = millrace.as_("Tess").post("/api/pipelines", {"name": name, "definition": definition})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def shown(millrace: Company, pipeline: str, member: str = "Tess") -> dict[str, Any]:
    return dict(millrace.as_(member).get(f"/api/pipelines/{pipeline}").json())


def test_it_is_saved_with_a_note_and_can_start(millrace: Company) -> None:
    saved = post(millrace, notebook(CHECK))
    assert saved["state"] == "saved", "there is nothing that Spark could analyse"
    found = shown(millrace, saved["id"])
    assert (found["unresolved"], found["reads"], found["writes"]) == (None, [], ["trusted.made"])
    (note,) = found["notes"]
    assert "trusted.made" in note
    assert NOTE in note
    plan = millrace.as_("Tess").get(f"/api/pipelines/{saved['id']}/plan").json()
    assert (plan["may_start"], plan["problems"], plan["notes"]) == (True, [], [note])
    assert plan["steps"][-1]["title"] == "Check sql in trusted.made"
    run = start(millrace, saved["id"])
    (job,) = RunHand(millrace).claim()
    assert (job["id"], job["steps"][-1]["kind"]) == (run, "check")


def test_the_same_of_a_source_and_its_rejected_rows(millrace: Company) -> None:
    answer = millrace.as_("Tess").post("/api/volumes", {"layer": "raw", "name": "crates"})
    assert answer.status_code == 200, answer.text
    sql = {"table": "raw.grain_rejected", "check": "sql", "sql": "SELECT * FROM raw.grain_rejected"}
    stream = {"name": "grain/*.csv", "table": "grain"}
    definition = {"kind": "source", "volume": "raw.crates", "output_layer": "raw", "streams": [stream]}
    saved = post(millrace, {**definition, "expectations": [sql]})
    assert saved["state"] == "saved"
    (note,) = shown(millrace, saved["id"])["notes"]
    assert "raw.grain, raw.grain_rejected" in note


def test_a_dry_run_says_it_too(millrace: Company) -> None:
    answer = millrace.as_("Tess").post("/api/pipelines/plan", {"definition": notebook(CHECK)})
    assert answer.status_code == 200, answer.text
    assert answer.json()["problems"] == []
    assert NOTE in answer.json()["notes"][0]
    without = millrace.as_("Tess").post("/api/pipelines/plan", {"definition": notebook()}).json()
    assert without["notes"] == []


def test_the_run_reaches_nothing_that_the_check_names_beside_what_was_declared(millrace: Company) -> None:
    create(millrace, "Tess", "raw.known", id=LONG)
    create(millrace, "Tess", "raw.other", id=LONG)
    check = {**CHECK, "sql": "SELECT * FROM trusted.made JOIN raw.known USING (id) JOIN raw.other USING (id)"}
    start(millrace, post(millrace, notebook(check, inputs=["raw.known"]))["id"])
    (job,) = RunHand(millrace).claim()
    catalog = Api(millrace.client, job["token"])
    status = {one: catalog.get(f"/iceberg/v1/namespaces/raw/tables/{one}").status_code for one in ("known", "other")}
    assert status == {"known": 200, "other": 404}


def test_once_it_is_written_a_save_analyses_it(millrace: Company) -> None:
    saved = post(millrace, notebook(CHECK))
    create(millrace, "Tess", "trusted.made", amount=LONG)
    assert shown(millrace, saved["id"])["notes"] == []
    body = {"definition": notebook(CHECK)}
    again = millrace.as_("Tess").request("PATCH", f"/api/pipelines/{saved['id']}", json=body).json()
    assert again["state"] == "queued"
    probe = Probe.of(millrace, "Tess", again["statement"])
    assert probe.job["sql"] == CHECK["sql"]
    assert probe.load("trusted.made").status_code == 200
    wrong = probe.finish("failed", error_code="UNRESOLVED_COLUMN", error="no such column")
    assert (wrong["state"], wrong["error"]["code"]) == ("failed", "UNRESOLVED_COLUMN")


def test_a_check_of_a_written_output_that_reads_one_to_come_is_saved_too(millrace: Company) -> None:
    create(millrace, "Tess", "trusted.made", amount=LONG)
    check = {**CHECK, "sql": "SELECT * FROM trusted.made JOIN trusted.new USING (id)"}
    saved = post(millrace, notebook(check, outputs=("trusted.made", "trusted.new")))
    probe = Probe.of(millrace, "Tess", saved["statement"])
    assert probe.load("trusted.made").status_code == 200
    assert probe.load("trusted.new").status_code == 404
    found = shown(millrace, probe.finish("failed", **MISSING)["saved_query"])
    assert found["unresolved"] is None
    assert "trusted.new" in found["notes"][0]


def test_a_table_that_is_missing_besides_leaves_it_unresolved(millrace: Company) -> None:
    create(millrace, "Tess", "trusted.made", amount=LONG)
    check = {**CHECK, "sql": "SELECT * FROM trusted.made, trusted.new, raw.nowhere"}
    saved = post(millrace, notebook(check, outputs=("trusted.made", "trusted.new")))
    probe = Probe.of(millrace, "Tess", saved["statement"])
    for one in ("trusted.new", "raw.nowhere"):
        assert probe.load(one).status_code == 404
    found = shown(millrace, probe.finish("failed", **MISSING)["saved_query"])
    assert found["unresolved"]
    assert millrace.as_("Tess").post(f"/api/pipelines/{found['id']}/runs", {}).status_code == 409


def test_who_may_not_see_the_output_reads_no_note(firm: PipelineCompany) -> None:
    check = {"table": "mill.fresh", "check": "sql", "sql": "SELECT * FROM mill.fresh"}
    found = firm.made("Adam", notebook(check, outputs=("mill.fresh",)), project=firm.project)
    assert "mill.fresh" in firm.shown("Adam", found)["notes"][0]
    assert firm.shown("Tess", found)["notes"] == []
    plan = firm.ok(firm.as_("Tess").get(f"/api/pipelines/{found}/plan"))
    assert plan["notes"] == []
    assert "mill.fresh" not in str(plan)


def test_one_of_another_version_is_shown_without(millrace: Company) -> None:
    saved = post(millrace, notebook(CHECK))
    later = update(pipeline_definition_table).values(definition={"kind": "of a later version"})
    millrace.database.write(lambda connection: connection.execute(later).rowcount)
    assert shown(millrace, saved["id"])["notes"] == []
