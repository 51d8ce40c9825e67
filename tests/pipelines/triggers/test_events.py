"""Triggers that wait for pipelines to succeed, or for tables to change."""

from datetime import timedelta
from typing import Any

import pytest

from headgate.kit.clock import now
from headgate.pipelines.triggers.cycles import find_cycle
from headgate.platform.authorization.fact_tables import grant_table
from tests.pipelines.triggers.support import TriggerBench

pytestmark = pytest.mark.both_databases


def after(*pipelines: str, **more: Any) -> dict[str, Any]:
    return {"kind": "pipelines", "pipelines": list(pipelines), **more}


def change_of(*tables: str, **more: Any) -> dict[str, Any]:
    return {"kind": "tables", "tables": list(tables), **more}


def test_any_success_fires_once(trigger_bench: TriggerBench) -> None:
    trigger = trigger_bench.trigger(trigger_bench.refine, after(trigger_bench.land, trigger_bench.task))
    trigger_bench.round()
    assert trigger_bench.runs() == []
    trigger_bench.succeed(trigger_bench.task)
    assert [one["happened"] for one in trigger_bench.shown(trigger)["when"]["sources"]] == [False, True]
    trigger_bench.round()
    trigger_bench.round()
    assert [(run["state"], run["depth"]) for run in trigger_bench.runs()] == [("queued", 1)]
    assert not any(one["happened"] for one in trigger_bench.shown(trigger)["when"]["sources"])
    trigger_bench.end()
    trigger_bench.succeed(trigger_bench.land)
    trigger_bench.succeed(trigger_bench.task)
    trigger_bench.clock.advance(seconds=1)
    trigger_bench.round()
    trigger_bench.round()
    assert trigger_bench.states(trigger_bench.refine) == ["succeeded", "queued"]


def test_all_collects_one_success_of_each_since_the_last_fire(trigger_bench: TriggerBench) -> None:
    trigger_bench.trigger(trigger_bench.refine, after(trigger_bench.land, trigger_bench.task, which="all"))
    for _ in range(2):
        trigger_bench.succeed(trigger_bench.land)
        trigger_bench.round()
    assert trigger_bench.runs() == []
    trigger_bench.succeed(trigger_bench.task)
    trigger_bench.round()
    trigger_bench.round()
    assert trigger_bench.states() == ["queued"]
    trigger_bench.end()
    trigger_bench.clock.advance(seconds=1)
    trigger_bench.succeed(trigger_bench.task)
    trigger_bench.round()
    assert trigger_bench.states() == ["succeeded"]
    trigger_bench.succeed(trigger_bench.land)
    trigger_bench.round()
    assert trigger_bench.states() == ["succeeded", "queued"]


def test_a_chain_is_as_deep_as_its_deepest_cause(trigger_bench: TriggerBench) -> None:
    trigger_bench.trigger(trigger_bench.refine, after(trigger_bench.land, trigger_bench.task, which="all"))
    trigger_bench.succeed(trigger_bench.land, depth=4)
    trigger_bench.succeed(trigger_bench.land, depth=2)
    trigger_bench.succeed(trigger_bench.task, depth=1)
    trigger_bench.round()
    assert [run["depth"] for run in trigger_bench.runs()] == [5]


def test_no_sooner_than_its_pause_and_nothing_is_lost_meanwhile(trigger_bench: TriggerBench) -> None:
    trigger = trigger_bench.trigger(trigger_bench.refine, after(trigger_bench.land, at_most_every="10 minutes"))
    trigger_bench.succeed(trigger_bench.land)
    trigger_bench.round()
    assert trigger_bench.states() == ["queued"]
    trigger_bench.end()
    fired = trigger_bench.clock()
    trigger_bench.clock.advance(minutes=3)
    trigger_bench.succeed(trigger_bench.land)
    trigger_bench.succeed(trigger_bench.land)
    trigger_bench.round()
    assert trigger_bench.states() == ["succeeded"]
    assert trigger_bench.row(trigger)["next_at"] == fired + timedelta(minutes=10)
    trigger_bench.clock.advance(minutes=7)
    trigger_bench.round()
    trigger_bench.round()
    assert trigger_bench.states() == ["succeeded", "queued"]


def test_what_happened_while_it_was_paused_does_not_count(trigger_bench: TriggerBench) -> None:
    trigger, tess = trigger_bench.trigger(trigger_bench.refine, after(trigger_bench.land)), trigger_bench.as_("Tess")
    table = trigger_bench.trigger(trigger_bench.land, change_of("service.revenue"))
    for one in (trigger, table):
        tess.post(f"/api/triggers/{one}/pause", {}).raise_for_status()
    trigger_bench.succeed(trigger_bench.land)
    trigger_bench.commit("service.revenue")
    for one in (trigger, table):
        tess.post(f"/api/triggers/{one}/resume", {}).raise_for_status()
    trigger_bench.round()
    assert trigger_bench.runs() == []


# Tables


def test_a_change_of_a_table_fires_once(trigger_bench: TriggerBench) -> None:
    trigger_bench.commit("raw.orders")
    trigger = trigger_bench.trigger(trigger_bench.refine, change_of("raw.orders"))
    trigger_bench.round()
    assert trigger_bench.runs() == []
    trigger_bench.clock.advance(seconds=1)
    trigger_bench.commit("raw.orders", "overwrite")
    trigger_bench.commit("raw.orders")
    assert trigger_bench.shown(trigger)["when"]["sources"][0] == {
        "id": trigger_bench.company.id("table", "raw.orders"),
        "name": "raw.orders",
        "happened": True,
    }
    trigger_bench.round()
    trigger_bench.round()
    assert [(run["state"], run["depth"]) for run in trigger_bench.runs()] == [("queued", 1)]
    trigger_bench.end()
    trigger_bench.clock.advance(seconds=1)
    trigger_bench.commit("raw.orders", "delete")
    trigger_bench.round()
    assert trigger_bench.states() == ["succeeded", "queued"]


@pytest.mark.parametrize(
    ("operation", "values", "fires"),
    [
        ("append", {}, True),
        ("publish", {}, True),
        ("create", {"parent_snapshot_id": None}, True),
        ("create", {"snapshot_id": None, "parent_snapshot_id": None}, False),
        ("rollback", {}, True),
        ("expire", {"snapshot_id": 1, "parent_snapshot_id": 1}, False),
        ("change", {"snapshot_id": 1, "parent_snapshot_id": 1}, False),
        ("replace", {"added_rows": 10, "deleted_rows": 10}, False),
        ("replace", {"added_rows": 10, "deleted_rows": 7}, True),
        ("replace", {}, True),
    ],
)
def test_only_rows_count_as_a_change(
    yard_on_sqlite: TriggerBench, operation: str, values: dict[str, Any], fires: bool
) -> None:
    trigger_bench = yard_on_sqlite
    trigger_bench.trigger(trigger_bench.refine, change_of("raw.orders"))
    trigger_bench.clock.advance(seconds=1)
    trigger_bench.commit("raw.orders", operation, **values)
    trigger_bench.round()
    assert trigger_bench.states() == (["queued"] if fires else [])


def test_all_of_some_tables(trigger_bench: TriggerBench) -> None:
    trigger_bench.trigger(trigger_bench.refine, change_of("raw.orders", "raw.payments", which="all"))
    trigger_bench.commit("raw.orders")
    for _ in range(3):
        trigger_bench.clock.advance(seconds=1)
        trigger_bench.round()
    assert trigger_bench.runs() == []
    trigger_bench.commit("raw.payments")
    trigger_bench.clock.advance(seconds=1)
    trigger_bench.round()
    assert trigger_bench.states() == ["queued"]


def test_a_commit_of_a_run_goes_on_with_its_chain(trigger_bench: TriggerBench) -> None:
    trigger_bench.trigger(trigger_bench.task, after(trigger_bench.land))
    trigger_bench.trigger(trigger_bench.refine, change_of("raw.payments"))
    trigger_bench.succeed(trigger_bench.land, depth=2)
    trigger_bench.round()
    [run] = trigger_bench.runs(trigger_bench.task)
    assert run["depth"] == 3
    trigger_bench.clock.advance(seconds=1)
    trigger_bench.commit("raw.payments", "publish", run=run["id"])
    trigger_bench.round()
    assert [one["depth"] for one in trigger_bench.runs(trigger_bench.refine)] == [4]


# Judged when they fire


def test_an_author_who_may_not_see_the_cause_any_more_blocks_it(trigger_bench: TriggerBench) -> None:
    trigger = trigger_bench.trigger(trigger_bench.land, change_of("service.revenue"))
    mine = grant_table.c.grantee_id == trigger_bench.company.id("member", "Tess")
    layer = trigger_bench.company.id("layer", "service")
    gone = grant_table.delete().where(mine, grant_table.c.resource_id == layer)
    trigger_bench.database.write(lambda connection: connection.execute(gone).rowcount)
    trigger_bench.clock.advance(seconds=1)
    trigger_bench.commit("service.revenue")
    trigger_bench.round()
    [run] = trigger_bench.runs()
    assert run["state"] == "blocked"
    assert "may no longer see" in run["error"]
    assert "revenue" not in run["error"]
    shown = trigger_bench.shown(trigger)
    assert (shown["when"]["sources"], shown["when"]["hidden"], shown["enabled"]) == ([], 1, False)
    refused = trigger_bench.as_("Tess").post(f"/api/triggers/{trigger}/resume", {})
    assert (refused.status_code, "that you may see" in refused.json()["detail"]) == (422, True)
    assert trigger_bench.as_("Adam").post(f"/api/triggers/{trigger}/resume", {}).status_code == 200


# Without an end


def _saved(trigger_bench: TriggerBench, pipeline: str, when: dict[str, Any], by: str = "Tess") -> tuple[int, str]:
    answer = trigger_bench.as_(by).post(f"/api/pipelines/{pipeline}/triggers", {"name": "n", "when": when})
    return answer.status_code, answer.json().get("detail", "")


def test_a_pipeline_does_not_wait_for_itself_or_its_own_output(trigger_bench: TriggerBench) -> None:
    assert _saved(trigger_bench, trigger_bench.land, after(trigger_bench.land))[0] == 409
    status, detail = _saved(trigger_bench, trigger_bench.land, change_of("raw.payments"))
    assert (status, "would trigger itself endlessly" in detail) == (409, True)
    assert trigger_bench.company.rows("SELECT id FROM triggers WHERE sort IS NOT NULL") == []


def test_pipelines_do_not_wait_for_one_another_in_a_circle(trigger_bench: TriggerBench) -> None:
    trigger_bench.trigger(trigger_bench.refine, after(trigger_bench.land))
    trigger_bench.trigger(trigger_bench.task, change_of("trusted.orders"))
    status, detail = _saved(trigger_bench, trigger_bench.land, after(trigger_bench.task))
    assert status == 409
    assert detail.endswith("Land payments → Refine orders → Land shop orders → Land payments")
    status, detail = _saved(trigger_bench, trigger_bench.land, change_of("raw.orders"))
    assert (status, "endlessly" in detail) == (409, True)
    assert _saved(trigger_bench, trigger_bench.land, change_of("service.revenue"))[0] == 200


def test_a_circle_names_nothing_that_its_reader_may_not_see(trigger_bench: TriggerBench) -> None:
    trigger_bench.trigger(trigger_bench.refine, after(trigger_bench.land))
    trigger_bench.trigger(trigger_bench.task, after(trigger_bench.refine))
    status, detail = _saved(trigger_bench, trigger_bench.land, after(trigger_bench.task), by="Tom")
    assert status == 409
    assert detail.endswith("Land payments → a pipeline that you may not see → Land shop orders → Land payments")


def test_a_change_is_compared_with_the_other_triggers_alone(trigger_bench: TriggerBench) -> None:
    trigger = trigger_bench.trigger(trigger_bench.refine, after(trigger_bench.land))
    with trigger_bench.database.read() as connection:
        assert find_cycle(connection, trigger_bench.land, [trigger_bench.refine]) == [
            trigger_bench.land,
            trigger_bench.refine,
        ]
        assert find_cycle(connection, trigger_bench.land, [trigger_bench.refine], without=trigger) is None
    path = f"/api/triggers/{trigger}"
    body = {"when": after(trigger_bench.land, trigger_bench.task)}
    assert trigger_bench.as_("Tess").request("PATCH", path, json=body).status_code == 200
    circle = trigger_bench.as_("Tess").request("PATCH", path, json={"when": after(trigger_bench.refine)})
    assert circle.status_code == 409


def test_a_pipeline_is_not_saved_into_a_circle(trigger_bench: TriggerBench) -> None:
    tess = trigger_bench.as_("Tess")
    definition = {"kind": "history", "table": "raw.orders", "output": "trusted.versions", "keys": ["id"]}
    made = tess.post("/api/pipelines", {"name": "Versions", "definition": definition})
    assert made.status_code == 200, made.text
    versions = made.json()["id"]
    trigger_bench.trigger(versions, after(trigger_bench.land))
    trigger_bench.trigger(trigger_bench.land, change_of("service.revenue"))

    def saved(output: str) -> Any:
        body = {"definition": {**definition, "output": output}}
        return tess.request("PATCH", f"/api/pipelines/{versions}", json=body)

    refused = saved("service.revenue")
    assert refused.status_code == 409, refused.text
    assert refused.json()["detail"].endswith("Versions → Land payments → Versions")
    assert tess.get(f"/api/pipelines/{versions}").json()["writes"] == ["trusted.versions"]
    assert saved("trusted.others").status_code == 200


def test_a_source_that_was_deleted_never_happens_and_is_not_named(trigger_bench: TriggerBench) -> None:
    trigger = trigger_bench.trigger(trigger_bench.refine, after(trigger_bench.land, trigger_bench.task, which="all"))
    trigger_bench.as_("Olga").request("DELETE", f"/api/pipelines/{trigger_bench.land}").raise_for_status()
    trigger_bench.succeed(trigger_bench.task)
    trigger_bench.round()
    assert trigger_bench.runs() == []
    when = trigger_bench.shown(trigger)["when"]
    assert ([one["id"] for one in when["sources"]], when["hidden"]) == ([trigger_bench.task], 1)


def test_a_deleted_pipeline_takes_its_triggers_along(trigger_bench: TriggerBench) -> None:
    trigger = trigger_bench.trigger(trigger_bench.land, "* * * * *")
    trigger_bench.as_("Olga").request("DELETE", f"/api/pipelines/{trigger_bench.land}").raise_for_status()
    assert trigger_bench.company.rows(f"SELECT id FROM resources WHERE id = '{trigger}'") == []
    trigger_bench.minute()
    assert trigger_bench.runs() == []
    assert trigger_bench.clock() > now()
