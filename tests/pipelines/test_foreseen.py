"""A chain is saved before any of it ran: to probes alone, an output that is still to come is an empty table."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from headgate.kit.clock import now
from headgate.lakehouse.catalog.work_tokens import open_work
from tests.lakehouse.sql.support import Hand, submit
from tests.pipelines.probes import LONG, Probe, columns_of, create, fields, place
from tests.pipelines.runs.support import make
from tests.support.company import Api, Company

DAILY = fields(day="date", amount="decimal(10, 2)")


@pytest.fixture
def daily(millrace: Company) -> Company:
    """The company, in which Tess has saved what writes trusted.daily, and never ran it."""
    create(millrace, "Tess", "raw.sold", id=LONG, day="date", amount="decimal(10, 2)")
    Probe(millrace, "Tess", "Daily", "trusted.daily").save(DAILY, "raw.sold")
    return millrace


def shown(millrace: Company, pipeline: str, member: str = "Tess") -> Any:
    return millrace.as_(member).get(f"/api/pipelines/{pipeline}").json()


def test_a_query_on_the_output_of_one_that_never_ran_is_saved_resolved(daily: Company) -> None:
    probe = Probe(daily, "Tess", "Weekly", "trusted.weekly")
    answer = probe.load("trusted.daily")
    assert columns_of(answer) == ["day", "amount"]
    metadata = answer.json()["metadata"]
    assert (answer.json()["metadata-location"], metadata["snapshots"], metadata.get("current-snapshot-id")) == (
        None,
        [],
        None,
    )
    found = shown(daily, probe.save(fields(week=LONG)))
    assert (found["unresolved"], found["reads"], found["writes"]) == (None, ["trusted.daily"], ["trusted.weekly"])
    third = Probe(daily, "Tess", "Yearly", "trusted.yearly")
    assert columns_of(third.load("trusted.weekly")) == ["week"]


def test_the_columns_of_the_last_save_count(daily: Company) -> None:
    Probe(daily, "Tess", "Daily", "trusted.daily").save(fields(day="date", total=LONG))
    probe = Probe(daily, "Tess", "Weekly", "trusted.weekly")
    assert columns_of(probe.load("trusted.daily")) == ["day", "total"]
    probe.finish("failed", error_code="X", error="x")
    Probe(daily, "Tess", "Daily", "trusted.elsewhere").save(DAILY)
    probe = Probe(daily, "Tess", "Weekly", "trusted.weekly")
    assert probe.load("trusted.daily").status_code == 404
    assert columns_of(probe.load("trusted.elsewhere")) == ["day", "amount"]


def test_a_table_that_is_written_is_what_it_is(daily: Company) -> None:
    create(daily, "Tess", "trusted.daily", other=LONG)
    assert columns_of(Probe(daily, "Tess", "Weekly", "trusted.weekly").load("trusted.daily")) == ["other"]


def test_a_history_of_what_never_ran_can_be_read_too(daily: Company) -> None:
    make(daily, name="Versions", table="trusted.daily", output="trusted.versions", keys=["day"])
    probe = Probe(daily, "Tess", "Weekly", "trusted.weekly")
    own = ["_valid_from", "_valid_to", "_is_current"]
    assert columns_of(probe.load("trusted.versions")) == ["day", "amount", *own]
    probe.finish("failed", error_code="X", error="x")
    make(daily, name="Sales", table="raw.sold", output="trusted.sales", keys=["id"], time_column="day")
    probe = Probe(daily, "Tess", "Weekly", "trusted.weekly")
    assert columns_of(probe.load("trusted.sales")) == ["id", "day", "amount", *own, "_seen_at"]


def test_what_notebooks_write_is_not_known_before_they_ran(millrace: Company) -> None:
    notebook = {"kind": "notebook", "cells": [{"source": "1"}], "outputs": [{"table": "trusted.made"}]}
    answer = millrace.as_("Tess").post("/api/pipelines", {"name": "Notebook", "definition": notebook})
    assert answer.status_code == 200, answer.text
    probe = Probe(millrace, "Tess", "Weekly", "trusted.weekly")
    told = probe.load("trusted.made")
    assert (told.status_code, "run the pipeline that writes it" in told.text) == (404, True)
    missing = {"error_code": "TABLE_OR_VIEW_NOT_FOUND", "error": "There is no table trusted.made that you may see"}
    found = shown(millrace, probe.finish("failed", **missing)["saved_query"])
    assert "run the pipeline that writes it" in found["unresolved"]


def test_checks_of_an_output_are_analysed_with_the_columns_that_its_query_gives(millrace: Company) -> None:
    create(millrace, "Tess", "raw.sold", id=LONG)
    check = {"table": "trusted.daily", "check": "sql", "sql": "SELECT * FROM trusted.daily WHERE amount < 0"}
    probe = Probe(millrace, "Tess", "Daily", "trusted.daily", expectations=[check])
    assert probe.job["more"] == [check["sql"]]
    assert probe.load("trusted.daily").status_code == 404
    assert probe.tell(DAILY).status_code == 200
    assert columns_of(probe.load("Trusted.Daily")) == ["day", "amount"]
    found = shown(millrace, probe.finish()["saved_query"])
    assert (found["unresolved"], found["reads"], found["writes"]) == (None, [], ["trusted.daily"])


def test_checks_of_a_history_are_analysed_with_the_columns_that_follow_from_its_source(daily: Company) -> None:
    sql = "SELECT * FROM trusted.versions WHERE _valid_from IS NULL"
    check = {"table": "trusted.versions", "check": "sql", "sql": sql}
    history = {"kind": "history", "table": "trusted.daily", "output": "trusted.versions", "keys": ["day"]}
    body = {"name": "Versions", "definition": {**history, "expectations": [check]}}
    probe = Probe.of(daily, "Tess", daily.as_("Tess").post("/api/pipelines", body).json()["statement"])
    assert (probe.job["sql"], probe.job["tells"]) == (sql, False)
    assert columns_of(probe.load("trusted.versions"))[:3] == ["day", "amount", "_valid_from"]
    assert probe.tell(DAILY).status_code == 409
    found = shown(daily, probe.finish()["saved_query"])
    assert (found["unresolved"], found["reads"]) == (None, ["trusted.daily"])


def test_columns_that_no_table_holds_are_refused_at_the_save(millrace: Company) -> None:
    probe = Probe(millrace, "Tess", "Daily", "trusted.daily")
    assert probe.tell(None, problem="The column x is always NULL and has no type").status_code == 200
    found = probe.finish()
    assert (found["state"], found["error"]["message"]) == ("failed", "The column x is always NULL and has no type")


def test_nothing_but_a_probe_loads_what_is_to_come(daily: Company) -> None:
    submit(daily, "Tess", "SELECT * FROM trusted.daily")
    (job,) = Hand(daily).claim()
    for api in (Api(daily.client, job["token"]), daily.as_("Tess"), daily.as_("Olga")):
        answer = api.get(place("trusted.daily"))
        assert (answer.status_code, "has no data and no columns yet" in answer.text) == (404, True)
        assert api.request("HEAD", place("trusted.daily")).status_code == 404


def test_a_probe_loads_nothing_that_its_author_may_not_see(daily: Company) -> None:
    probe = Probe(daily, "Tom", "Copy", "raw.copy")
    hidden, missing = probe.load("trusted.daily"), probe.load("trusted.nothing")
    assert (hidden.status_code, hidden.text) == (404, missing.text.replace("nothing", "daily"))
    probe.finish("failed", error_code="X", error="x")
    daily.as_("Tess").change(change="grant", to="Tom", resource="table:trusted.daily", level="viewer")
    probe = Probe(daily, "Tom", "Copy", "raw.copy")
    assert columns_of(probe.load("trusted.daily")) == ["day", "amount"]
    daily.as_("Tess").change(change="revoke", to="Tom", resource="table:trusted.daily", level="viewer")
    assert probe.load("trusted.daily").status_code == 404


def test_a_probe_stays_within_the_token_by_which_it_was_asked_for(daily: Company) -> None:
    for only, status in ((["layer", "raw"], 404), (["layer", "trusted"], 200)):
        daily.token("Tess", only=[daily.id(*only)])
        token = max(row[0] for row in daily.rows("SELECT id FROM tokens WHERE listed"))
        more = {"purpose": "probe", "member": daily.id("member", "Tess"), "token_id": token}
        _, secret = daily.database.write(partial(open_work, now=now(), expires=now() + timedelta(hours=1), **more))
        assert Api(daily.client, secret).get(place("trusted.daily")).status_code == status


def test_what_is_to_come_holds_no_rows_and_takes_none(daily: Company) -> None:
    probe = Probe(daily, "Tess", "Weekly", "trusted.weekly")
    metadata = probe.load("trusted.daily").json()["metadata"]
    for requirement in (
        [],
        [{"type": "assert-create"}],
        [{"type": "assert-table-uuid", "uuid": metadata["table-uuid"]}],
    ):
        updates = [{"action": "set-properties", "updates": {"owner": "x"}}]
        body = {"requirements": requirement, "updates": updates}
        assert probe.catalog.post(place("trusted.daily"), body).status_code in (403, 404)
    assert probe.catalog.request("DELETE", place("trusted.daily")).status_code in (403, 404)
    assert probe.catalog.get("/iceberg/v1/namespaces/trusted/tables").json()["identifiers"] == []
    assert daily.rows("SELECT count(*) FROM table_pointers WHERE version > 1") == [(0,)]
    root = daily.settings.data_dir / "warehouse"
    table = daily.id("table", "trusted.daily")
    assert not [one for one in root.rglob("*") if table in str(one)]


def test_only_the_worker_that_has_a_probe_tells_its_columns(daily: Company) -> None:
    probe = Probe(daily, "Tess", "Weekly", "trusted.weekly")
    right = probe.hand.id
    probe.hand.id = Hand(daily).id
    assert probe.tell(DAILY).status_code == 409
    probe.hand.id = right
    submit(daily, "Tess")
    (job,) = Hand(daily).claim()
    other = Hand(daily)
    body = {"worker": other.id, "fence": job["fence"], "columns": DAILY}
    assert other.request("POST", f"/statements/{job['id']}/analysed", json=body).status_code == 409
    assert probe.tell(DAILY).status_code == 200
