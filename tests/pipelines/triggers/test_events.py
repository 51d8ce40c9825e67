"""Triggers that wait for pipelines to succeed, or for tables to change."""

from datetime import timedelta
from typing import Any

import pytest

from headgate.kit.clock import now
from headgate.pipelines.triggers.cycles import find_cycle
from headgate.platform.authorization.fact_tables import grant_table
from tests.pipelines.triggers.support import Yard

pytestmark = pytest.mark.both_databases


def after(*pipelines: str, **more: Any) -> dict[str, Any]:
    return {"kind": "pipelines", "pipelines": list(pipelines), **more}


def change_of(*tables: str, **more: Any) -> dict[str, Any]:
    return {"kind": "tables", "tables": list(tables), **more}


def test_any_success_fires_once(yard: Yard) -> None:
    trigger = yard.trigger(yard.refine, after(yard.land, yard.task))
    yard.round()
    assert yard.runs() == []
    yard.succeed(yard.task)
    assert [one["happened"] for one in yard.shown(trigger)["when"]["sources"]] == [False, True]
    yard.round()
    yard.round()
    assert [(run["state"], run["depth"]) for run in yard.runs()] == [("queued", 1)]
    assert not any(one["happened"] for one in yard.shown(trigger)["when"]["sources"])
    yard.end()
    yard.succeed(yard.land)
    yard.succeed(yard.task)
    yard.clock.advance(seconds=1)
    yard.round()
    yard.round()
    assert yard.states(yard.refine) == ["succeeded", "queued"]


def test_all_collects_one_success_of_each_since_the_last_fire(yard: Yard) -> None:
    yard.trigger(yard.refine, after(yard.land, yard.task, which="all"))
    for _ in range(2):
        yard.succeed(yard.land)
        yard.round()
    assert yard.runs() == []
    yard.succeed(yard.task)
    yard.round()
    yard.round()
    assert yard.states() == ["queued"]
    yard.end()
    yard.clock.advance(seconds=1)
    yard.succeed(yard.task)
    yard.round()
    assert yard.states() == ["succeeded"]
    yard.succeed(yard.land)
    yard.round()
    assert yard.states() == ["succeeded", "queued"]


def test_a_chain_is_as_deep_as_its_deepest_cause(yard: Yard) -> None:
    yard.trigger(yard.refine, after(yard.land, yard.task, which="all"))
    yard.succeed(yard.land, depth=4)
    yard.succeed(yard.land, depth=2)
    yard.succeed(yard.task, depth=1)
    yard.round()
    assert [run["depth"] for run in yard.runs()] == [5]


def test_no_sooner_than_its_pause_and_nothing_is_lost_meanwhile(yard: Yard) -> None:
    trigger = yard.trigger(yard.refine, after(yard.land, at_most_every="10 minutes"))
    yard.succeed(yard.land)
    yard.round()
    assert yard.states() == ["queued"]
    yard.end()
    fired = yard.clock()
    yard.clock.advance(minutes=3)
    yard.succeed(yard.land)
    yard.succeed(yard.land)
    yard.round()
    assert yard.states() == ["succeeded"]
    assert yard.row(trigger)["next_at"] == fired + timedelta(minutes=10)
    yard.clock.advance(minutes=7)
    yard.round()
    yard.round()
    assert yard.states() == ["succeeded", "queued"]


def test_what_happened_while_it_was_paused_does_not_count(yard: Yard) -> None:
    trigger, tess = yard.trigger(yard.refine, after(yard.land)), yard.as_("Tess")
    table = yard.trigger(yard.land, change_of("service.revenue"))
    for one in (trigger, table):
        tess.post(f"/api/triggers/{one}/pause", {}).raise_for_status()
    yard.succeed(yard.land)
    yard.commit("service.revenue")
    for one in (trigger, table):
        tess.post(f"/api/triggers/{one}/resume", {}).raise_for_status()
    yard.round()
    assert yard.runs() == []


# Tables


def test_a_change_of_a_table_fires_once(yard: Yard) -> None:
    yard.commit("raw.orders")
    trigger = yard.trigger(yard.refine, change_of("raw.orders"))
    yard.round()
    assert yard.runs() == []
    yard.clock.advance(seconds=1)
    yard.commit("raw.orders", "overwrite")
    yard.commit("raw.orders")
    assert yard.shown(trigger)["when"]["sources"][0] == {
        "id": yard.company.id("table", "raw.orders"),
        "name": "raw.orders",
        "happened": True,
    }
    yard.round()
    yard.round()
    assert [(run["state"], run["depth"]) for run in yard.runs()] == [("queued", 1)]
    yard.end()
    yard.clock.advance(seconds=1)
    yard.commit("raw.orders", "delete")
    yard.round()
    assert yard.states() == ["succeeded", "queued"]


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
def test_only_rows_count_as_a_change(yard_on_sqlite: Yard, operation: str, values: dict[str, Any], fires: bool) -> None:
    yard = yard_on_sqlite
    yard.trigger(yard.refine, change_of("raw.orders"))
    yard.clock.advance(seconds=1)
    yard.commit("raw.orders", operation, **values)
    yard.round()
    assert yard.states() == (["queued"] if fires else [])


def test_all_of_some_tables(yard: Yard) -> None:
    yard.trigger(yard.refine, change_of("raw.orders", "raw.payments", which="all"))
    yard.commit("raw.orders")
    for _ in range(3):
        yard.clock.advance(seconds=1)
        yard.round()
    assert yard.runs() == []
    yard.commit("raw.payments")
    yard.clock.advance(seconds=1)
    yard.round()
    assert yard.states() == ["queued"]


def test_a_commit_of_a_run_goes_on_with_its_chain(yard: Yard) -> None:
    yard.trigger(yard.task, after(yard.land))
    yard.trigger(yard.refine, change_of("raw.payments"))
    yard.succeed(yard.land, depth=2)
    yard.round()
    [run] = yard.runs(yard.task)
    assert run["depth"] == 3
    yard.clock.advance(seconds=1)
    yard.commit("raw.payments", "publish", run=run["id"])
    yard.round()
    assert [one["depth"] for one in yard.runs(yard.refine)] == [4]


# Judged when they fire


def test_an_author_who_may_not_see_the_cause_any_more_blocks_it(yard: Yard) -> None:
    trigger = yard.trigger(yard.land, change_of("service.revenue"))
    mine = grant_table.c.grantee_id == yard.company.id("member", "Tess")
    layer = yard.company.id("layer", "service")
    gone = grant_table.delete().where(mine, grant_table.c.resource_id == layer)
    yard.database.write(lambda connection: connection.execute(gone).rowcount)
    yard.clock.advance(seconds=1)
    yard.commit("service.revenue")
    yard.round()
    [run] = yard.runs()
    assert run["state"] == "blocked"
    assert "may no longer see" in run["error"]
    assert "revenue" not in run["error"]
    shown = yard.shown(trigger)
    assert (shown["when"]["sources"], shown["when"]["hidden"], shown["enabled"]) == ([], 1, False)
    refused = yard.as_("Tess").post(f"/api/triggers/{trigger}/resume", {})
    assert (refused.status_code, "that you may see" in refused.json()["detail"]) == (422, True)
    assert yard.as_("Adam").post(f"/api/triggers/{trigger}/resume", {}).status_code == 200


# Without an end


def _saved(yard: Yard, pipeline: str, when: dict[str, Any], by: str = "Tess") -> tuple[int, str]:
    answer = yard.as_(by).post(f"/api/pipelines/{pipeline}/triggers", {"name": "n", "when": when})
    return answer.status_code, answer.json().get("detail", "")


def test_a_pipeline_does_not_wait_for_itself_or_its_own_output(yard: Yard) -> None:
    assert _saved(yard, yard.land, after(yard.land))[0] == 409
    status, detail = _saved(yard, yard.land, change_of("raw.payments"))
    assert (status, "would trigger itself endlessly" in detail) == (409, True)
    assert yard.company.rows("SELECT id FROM triggers WHERE sort IS NOT NULL") == []


def test_pipelines_do_not_wait_for_one_another_in_a_circle(yard: Yard) -> None:
    yard.trigger(yard.refine, after(yard.land))
    yard.trigger(yard.task, change_of("trusted.orders"))
    status, detail = _saved(yard, yard.land, after(yard.task))
    assert status == 409
    assert detail.endswith("Land payments → Refine orders → Land shop orders → Land payments")
    status, detail = _saved(yard, yard.land, change_of("raw.orders"))
    assert (status, "endlessly" in detail) == (409, True)
    assert _saved(yard, yard.land, change_of("service.revenue"))[0] == 200


def test_a_circle_names_nothing_that_its_reader_may_not_see(yard: Yard) -> None:
    yard.trigger(yard.refine, after(yard.land))
    yard.trigger(yard.task, after(yard.refine))
    status, detail = _saved(yard, yard.land, after(yard.task), by="Tom")
    assert status == 409
    assert detail.endswith("Land payments → a pipeline that you may not see → Land shop orders → Land payments")


def test_a_change_is_compared_with_the_other_triggers_alone(yard: Yard) -> None:
    trigger = yard.trigger(yard.refine, after(yard.land))
    with yard.database.read() as connection:
        assert find_cycle(connection, yard.land, [yard.refine]) == [yard.land, yard.refine]
        assert find_cycle(connection, yard.land, [yard.refine], without=trigger) is None
    path = f"/api/triggers/{trigger}"
    body = {"when": after(yard.land, yard.task)}
    assert yard.as_("Tess").request("PATCH", path, json=body).status_code == 200
    circle = yard.as_("Tess").request("PATCH", path, json={"when": after(yard.refine)})
    assert circle.status_code == 409


def test_a_pipeline_is_not_saved_into_a_circle(yard: Yard) -> None:
    tess = yard.as_("Tess")
    definition = {"kind": "history", "table": "raw.orders", "output": "trusted.versions", "keys": ["id"]}
    made = tess.post("/api/pipelines", {"name": "Versions", "definition": definition})
    assert made.status_code == 200, made.text
    versions = made.json()["id"]
    yard.trigger(versions, after(yard.land))
    yard.trigger(yard.land, change_of("service.revenue"))

    def saved(output: str) -> Any:
        body = {"definition": {**definition, "output": output}}
        return tess.request("PATCH", f"/api/pipelines/{versions}", json=body)

    refused = saved("service.revenue")
    assert refused.status_code == 409, refused.text
    assert refused.json()["detail"].endswith("Versions → Land payments → Versions")
    assert tess.get(f"/api/pipelines/{versions}").json()["writes"] == ["trusted.versions"]
    assert saved("trusted.others").status_code == 200


def test_a_source_that_was_deleted_never_happens_and_is_not_named(yard: Yard) -> None:
    trigger = yard.trigger(yard.refine, after(yard.land, yard.task, which="all"))
    yard.as_("Olga").request("DELETE", f"/api/pipelines/{yard.land}").raise_for_status()
    yard.succeed(yard.task)
    yard.round()
    assert yard.runs() == []
    when = yard.shown(trigger)["when"]
    assert ([one["id"] for one in when["sources"]], when["hidden"]) == ([yard.task], 1)


def test_a_deleted_pipeline_takes_its_triggers_along(yard: Yard) -> None:
    trigger = yard.trigger(yard.land, "* * * * *")
    yard.as_("Olga").request("DELETE", f"/api/pipelines/{yard.land}").raise_for_status()
    assert yard.company.rows(f"SELECT id FROM resources WHERE id = '{trigger}'") == []
    yard.minute()
    assert yard.runs() == []
    assert yard.clock() > now()
