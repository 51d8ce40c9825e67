"""Statements over HTTP: whose they are, their limits, their rows, and that rows are judged at every opening."""

import io
import threading
import time
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.cli.main import app
from headgate.kit.clock import now
from headgate.lakehouse.sql import cleanup as cleaning
from tests.lakehouse.sql.support import STATEMENTS, Hand, ran, submit
from tests.organization.profile.support import Commands
from tests.support.company import Company, company

ARROW = {"Accept": "application/vnd.apache.arrow.stream"}
REVENUE = "service.revenue"
VIEW = {"to": "Bea", "resource": f"table:{REVENUE}", "level": "viewer"}
PAGES = (pa.table({"n": [1, 2], "s": ["a", None]}), pa.table({"n": [3], "s": [""]}))


def test_a_statement_is_run_and_its_rows_come_back(millrace: Company) -> None:
    statement = ran(millrace, "Ben", *PAGES)
    found = millrace.as_("Ben").get(f"{STATEMENTS}/{statement}").json()
    assert (found["state"], found["rows"], found["pages"], found["truncated"]) == ("succeeded", 3, 2, False)
    assert [(one["name"], one["type"]) for one in found["columns"]] == [("n", "int64"), ("s", "string")]
    assert (found["data"], found["withheld"], found["error"]) == ([[1, "a"], [2, None]], False, None)
    first = millrace.as_("Ben").get(f"{STATEMENTS}/{statement}/pages/0").json()
    assert first == {"number": 0, "data": [[1, "a"], [2, None]], "next": 1}
    second = millrace.as_("Ben").get(f"{STATEMENTS}/{statement}/pages/1").json()
    assert second == {"number": 1, "data": [[3, ""]], "next": None}
    arrow = millrace.as_("Ben").request("GET", f"{STATEMENTS}/{statement}/pages/1", headers=ARROW)
    assert arrow.headers["content-type"] == ARROW["Accept"]
    assert pa.ipc.open_stream(arrow.content).read_all() == PAGES[1]
    assert millrace.as_("Ben").get(f"{STATEMENTS}/{statement}/pages/2").status_code == 404


def test_downloads_hold_every_row_and_change_nothing(millrace_on_sqlite: Company) -> None:
    millrace = millrace_on_sqlite
    odd = pa.table({"a,b": ["=1+1", 'say "hi"', "", None], "n": [1.5, float("nan"), None, 2.0]})
    statement = ran(millrace, "Ben", odd, odd)
    text = millrace.as_("Ben").get(f"{STATEMENTS}/{statement}/download", format="csv")
    assert text.headers["content-disposition"] == f'attachment; filename="{statement}.csv"'
    lines = '=1+1,1.5\r\n"say ""hi""",NaN\r\n"",\r\n,2.0\r\n'
    assert text.content.decode() == '"a,b",n\r\n' + lines * 2
    parquet = millrace.as_("Ben").get(f"{STATEMENTS}/{statement}/download", format="parquet")
    found = pq.read_table(io.BytesIO(parquet.content))
    assert (found.num_rows, found.schema.names) == (8, ["a,b", "n"])
    assert found.column("a,b").to_pylist() == ["=1+1", 'say "hi"', "", None] * 2


def test_what_a_statement_wrote_is_told_as_the_ledger_has_it(millrace: Company) -> None:
    statement, hand = submit(millrace, "Tess"), Hand(millrace)
    (job,) = hand.claim()
    hand.commit(statement, "raw.orders", added_rows=3)
    hand.commit(statement, REVENUE, "overwrite", added_rows=9, deleted_rows=10)
    hand.commit(statement, "trusted.orders", "change")
    assert hand.finish(job, "succeeded", pa.table({})).json() == {"state": "succeeded"}
    written: list[dict[str, Any]] = [
        {"table": "raw.orders", "operation": "append", "added_rows": 3, "deleted_rows": None},
        {"table": REVENUE, "operation": "overwrite", "added_rows": 9, "deleted_rows": 10},
        {"table": "trusted.orders", "operation": "change", "added_rows": None, "deleted_rows": None},
    ]
    assert millrace.as_("Tess").get(f"{STATEMENTS}/{statement}").json()["writes"] == written
    millrace.as_("Adam").change(change="revoke", to="Tess", resource="layer:raw", level="manager").raise_for_status()
    hidden = [{**written[0], "table": None}, *written[1:]]
    assert millrace.as_("Tess").get(f"{STATEMENTS}/{statement}").json()["writes"] == hidden


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ([{"added_rows": 1}], "Done. Added 1 row to raw.orders."),
        ([{"added_rows": 1200}], "Done. Added 1,200 rows to raw.orders."),
        ([{"operation": "delete", "deleted_rows": 5}], "Done. Removed 5 rows from raw.orders."),
        (
            [{"operation": "overwrite", "added_rows": 9, "deleted_rows": 10}],
            "Done. In raw.orders, files with 10 rows were replaced by files with 9 rows.",
        ),
        ([{"operation": "change"}], "Done."),
        ([], "Done."),
    ],
)
def test_the_command_line_says_how_many_rows_were_written(
    millrace_on_sqlite: Company, monkeypatch: pytest.MonkeyPatch, counts: list[dict[str, Any]], says: str
) -> None:
    statement, hand = submit(millrace_on_sqlite, "Tess"), Hand(millrace_on_sqlite)
    (job,) = hand.claim()
    for one in counts:
        hand.commit(statement, "raw.orders", **one)
    hand.finish(job, "succeeded", pa.table({}))
    run = Commands(millrace_on_sqlite, app, monkeypatch)
    assert run("Tess", "statement", "results", statement).output == f"{says}\n"
    shown = run("Tess", "statement", "show", statement).output
    assert ("wrote" in shown) == (says != "Done.")


def test_nobody_else_sees_a_statement_but_the_audit_log_has_it(millrace: Company) -> None:
    statement = ran(millrace, "Ben")
    missing = f"stm_{'0' * 20}"
    for who in ("Olga", "Adam", "Tess"):
        for path in ("", "/pages/0", "/download"):
            hidden = millrace.as_(who).get(f"{STATEMENTS}/{statement}{path}")
            absent = millrace.as_(who).get(f"{STATEMENTS}/{missing}{path}")
            assert hidden.status_code == absent.status_code == 404
            assert hidden.json()["detail"] == absent.json()["detail"]
        assert millrace.as_(who).post(f"{STATEMENTS}/{statement}/cancel", None).status_code == 404
        assert millrace.as_(who).request("DELETE", f"{STATEMENTS}/{statement}").status_code == 404
        assert millrace.as_(who).get(STATEMENTS).json()["items"] == []
    events = millrace.as_("Olga").get("/api/audit", resource=statement).json()["items"]
    told = [(one["event"], one["actor_name"]) for one in events]
    assert [one for one in told if one[0] != "access.denied"] == [("statement.submitted", "Ben")]
    assert {name for event, name in told if event == "access.denied"} == {"Olga", "Adam", "Tess"}


def test_the_history_goes_by_pages_and_forgets_on_demand(millrace: Company) -> None:
    made = [ran(millrace, "Ben") for _ in range(3)]
    waiting = submit(millrace, "Ben")
    ben = millrace.as_("Ben")
    first = ben.get(STATEMENTS, limit=2).json()
    second = ben.get(STATEMENTS, limit=2, cursor=first["next_cursor"]).json()
    assert [one["id"] for one in first["items"] + second["items"]] == [waiting, *reversed(made)]
    assert second["next_cursor"] is None
    assert [one["id"] for one in ben.get(STATEMENTS, active=True).json()["items"]] == [waiting]
    assert ben.request("DELETE", f"{STATEMENTS}/{waiting}").status_code == 409
    assert ben.request("DELETE", f"{STATEMENTS}/{made[0]}").json() == {"id": made[0]}
    assert ben.get(f"{STATEMENTS}/{made[0]}").status_code == 404


def test_a_member_has_so_many_at_a_time(millrace: Company) -> None:
    made = [submit(millrace, "Ben") for _ in range(millrace.settings.sql.concurrent)]
    refused = millrace.as_("Ben").post(STATEMENTS, {"sql": "SELECT 1"})
    assert (refused.status_code, "cancel one" in refused.json()["detail"]) == (429, True)
    assert int(refused.headers["retry-after"]) > 0
    submit(millrace, "Tess")
    assert millrace.as_("Ben").post(f"{STATEMENTS}/{made[0]}/cancel", None).json()["state"] == "cancelled"
    submit(millrace, "Ben")


def test_a_text_that_is_too_long_is_refused_with_the_limit(millrace_on_sqlite: Company) -> None:
    refused = millrace_on_sqlite.as_("Ben").post(STATEMENTS, {"sql": "x" * 100_001})
    assert (refused.status_code, "100,000" in refused.json()["detail"]) == (422, True)
    assert millrace_on_sqlite.as_("Ben").post(STATEMENTS, {"sql": ""}).status_code == 422


def test_rows_are_judged_at_every_opening(millrace: Company) -> None:
    """Bea reads a table, loses it between two pages, and gets it back."""
    statement = ran(millrace, "Bea", *PAGES, reads=(REVENUE,))
    bea = millrace.as_("Bea")
    assert bea.get(f"{STATEMENTS}/{statement}/pages/0").status_code == 200
    assert millrace.as_("Tess").change(change="revoke", **VIEW).status_code == 200
    assert bea.get(f"{STATEMENTS}/{statement}/pages/1").status_code == 404
    assert bea.get(f"{STATEMENTS}/{statement}/download").status_code == 404
    shown = bea.get(f"{STATEMENTS}/{statement}").json()
    assert (shown["state"], shown["withheld"], shown["data"], shown["columns"]) == ("succeeded", True, None, None)
    table = millrace.id("table", REVENUE)
    denied = millrace.rows(
        f"SELECT count(*) FROM audit_events WHERE event = 'access.denied' AND resource_id = '{table}'"
    )
    assert denied == [(3,)]
    assert millrace.as_("Tess").change(change="grant", **VIEW).status_code == 200
    assert bea.get(f"{STATEMENTS}/{statement}/pages/1").status_code == 200


def test_rows_of_a_table_that_is_no_more_are_not_shown(millrace: Company) -> None:
    statement = ran(millrace, "Olga", *PAGES, reads=(REVENUE,))
    assert millrace.as_("Olga").get(f"{STATEMENTS}/{statement}/pages/0").status_code == 200
    millrace.database.write(
        lambda connection: connection.exec_driver_sql(
            f"DELETE FROM resources WHERE id = '{millrace.id('table', REVENUE)}'"
        )
    )
    assert millrace.as_("Olga").get(f"{STATEMENTS}/{statement}/pages/0").status_code == 404


def test_narrowed_tokens_stay_within_their_limits(millrace: Company) -> None:
    table = millrace.id("table", REVENUE)
    own = ran(millrace, "Bea", *PAGES, reads=(REVENUE,))
    listed = millrace.as_("Bea", only=[millrace.id("table", "raw.orders")])
    assert listed.get(STATEMENTS).json()["items"] == []
    assert listed.get(f"{STATEMENTS}/{own}").status_code == 404
    submitted = listed.post(STATEMENTS, {"sql": "SELECT 2"}).json()["id"]
    assert [one["id"] for one in listed.get(STATEMENTS).json()["items"]] == [submitted]
    assert listed.post(f"{STATEMENTS}/{submitted}/cancel", None).json()["state"] == "cancelled"
    read_only = millrace.as_("Bea", read_only=True)
    assert read_only.get(f"{STATEMENTS}/{own}").json()["data"] == [[1, "a"], [2, None]]
    assert read_only.request("DELETE", f"{STATEMENTS}/{own}").status_code == 403
    assert millrace.as_("Bea", only=[table]).get(f"{STATEMENTS}/{own}").status_code == 404


def test_results_expire_and_old_statements_are_forgotten(millrace: Company) -> None:
    statement = ran(millrace, "Ben", *PAGES)
    store = millrace.client.app.state.services.store  # type: ignore[attr-defined]
    folder = f"results/{statement}"
    assert len(list(store.files(folder))) == 1
    cleaning.purge(millrace.database, store, millrace.settings, now() + timedelta(hours=23))
    assert len(list(store.files(folder))) == 1
    cleaning.purge(millrace.database, store, millrace.settings, now() + timedelta(hours=25))
    assert list(store.files(folder)) == []
    assert millrace.as_("Ben").get(f"{STATEMENTS}/{statement}").json()["data"] is None
    gone = millrace.as_("Ben").get(f"{STATEMENTS}/{statement}/pages/0")
    assert (gone.status_code, gone.json()["code"]) == (410, "expired")
    cleaning.purge(millrace.database, store, millrace.settings, now() + timedelta(days=91))
    assert millrace.as_("Ben").get(f"{STATEMENTS}/{statement}").status_code == 404


def test_whoever_waits_is_answered_when_it_is_over(millrace: Company) -> None:
    statement, hand = submit(millrace, "Ben"), Hand(millrace)
    (job,) = hand.claim()
    found: list[Any] = []
    began = time.monotonic()
    waiter = threading.Thread(
        target=lambda: found.append(millrace.as_("Ben").get(f"{STATEMENTS}/{statement}", wait=20).json())
    )
    waiter.start()
    time.sleep(0.3)
    assert found == []
    hand.finish(job, "succeeded", PAGES[0])
    waiter.join(timeout=60)
    assert found[0]["state"] == "succeeded"
    assert time.monotonic() - began < 18


def test_strangers_do_not_wait(millrace: Company) -> None:
    """How long an answer takes tells nobody whether another's statement exists."""
    statement = submit(millrace, "Ben")
    for api, status in ((millrace.as_("Olga"), 404), (millrace.as_(None), 401)):
        began = time.monotonic()
        assert api.get(f"{STATEMENTS}/{statement}", wait=20).status_code == status
        assert time.monotonic() - began < 18


def test_too_many_who_wait_are_told_to_come_again(millrace_on_sqlite: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.platform.unit_of_work.watch.MOST", 0)
    statement = submit(millrace_on_sqlite, "Ben")
    refused = millrace_on_sqlite.as_("Ben").get(f"{STATEMENTS}/{statement}", wait=5)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert millrace_on_sqlite.as_("Ben").get(f"{STATEMENTS}/{statement}").status_code == 200


def test_the_server_bounds_the_rows_that_are_asked_for(database: Any, tmp_path: Any) -> None:
    with company(database, tmp_path, sql={"max_rows": 10}) as millrace:
        for asked, bound in ((None, 10), (5, 5), (100, 10)):
            submit(millrace, "Ben", max_rows=asked)
            (job,) = Hand(millrace).claim()
            assert job["max_rows"] == bound
