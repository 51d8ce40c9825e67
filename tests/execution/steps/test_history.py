"""Histories on a real Spark: many random tables at once beside the oracle, and each promise by itself."""

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headgate.execution.statements import table_states as states
from headgate.execution.steps.context import StepFailed
from tests.execution.steps.history_oracle import Snapshot, Version, by_snapshot, by_time
from tests.execution.steps.support import Bench
from tests.support.steps import Workshop

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

BASE = datetime(2026, 1, 1, tzinfo=UTC)
FAR = datetime(2100, 1, 1, tzinfo=UTC)
CASES = 400


@pytest.fixture(scope="module")
def bench(shop: Workshop) -> Bench:
    return Bench(shop)


def scenario(seed: int, states: int, *, timed: bool) -> list[list[dict[str, Any]]]:
    """Rows of many small tables in one, which is told by the first key, in some states one after the other.

    Rows come and go, repeat, come late, are corrected, and may have a NULL for a key or a time in the future.
    """
    chance, found = random.Random(seed), []  # noqa: S311 - no secret
    for _ in range(states):
        rows: dict[Any, dict[str, Any]] = {}
        for case in range(CASES):
            for part in (1, 2, None):
                for _ in range(chance.choice([0, 1, 1, 1, 2, 3] if timed else [0, 1, 1, 1])):
                    at = FAR if chance.random() < 0.1 else BASE + timedelta(minutes=chance.randrange(6))
                    key = (case, part)
                    row = {"key": key, "at": at, "value": chance.choice(["a", "b", None])}
                    rows[(key, at) if timed else key] = row
        found.append(list(rows.values()))
    return found


def put(bench: Bench, table: str, rows: list[dict[str, Any]]) -> None:
    """Have the table hold these rows, and no others; as one literal, which Spark reads quicker than thousands."""
    columns = [(*row["key"], row["value"], f"{row['at']:%FT%TZ}") for row in rows]
    listed = json.dumps([dict(zip(("a", "b", "v", "at"), one, strict=True)) for one in columns])
    kinds = "array<struct<a: INT, b: INT, v: STRING, at: TIMESTAMP>>"
    bench.rows(f"INSERT OVERWRITE {table} SELECT inline(from_json('{listed}', '{kinds}'))")


def kept(bench: Bench, table: str) -> list[Version]:
    found = bench.shop.rows(f"SELECT * FROM {table}")
    assert all(row["_is_current"] is (row["_valid_to"] is None) for row in found)
    return ordered(
        Version((row["a"], row["b"]), row["_valid_from"], row["_valid_to"], row["v"], tuple(row.get("_seen_at") or ()))
        for row in found
    )


def ordered(versions: Any) -> list[Version]:
    return sorted(versions, key=lambda one: (one.key[0], str(one.key[1]), one.start))


@pytest.mark.parametrize(
    ("name", "timed", "deletions"),
    [("timed", True, "close"), ("timed_kept", True, "keep"), ("plain", False, "close"), ("plain_kept", False, "keep")],
)
def test_histories_are_what_the_oracle_says_however_runs_are_batched(
    bench: Bench, name: str, timed: bool, deletions: str
) -> None:
    source = f"raw.{name}"
    bench.rows(f"CREATE TABLE {source} (a INT, b INT, v STRING, at TIMESTAMP)")
    more: dict[str, Any] = {
        "keys": ["A", "b"],
        "deletions": deletions,
        **({"time_column": "At"} if timed else {"ignore": ["AT"]}),
    }
    rows = scenario(len(name), 4, timed=timed)
    for number, one in enumerate(rows):
        put(bench, source, one)
        if number in {0, 2} and deletions == "close":
            bench.keep(source, f"raw.{name}_often", **more)
    outputs = [f"raw.{name}_{how}" for how in (["often"] if deletions == "close" else []) + ["once"]]
    for output in outputs:
        bench.keep(source, output, **more)
    times = [row[0] for row in bench.rows(f"SELECT made_current_at FROM {source}.history")]
    snapshots: list[Snapshot] = list(zip(times, rows, strict=True))
    expected = ordered((by_time if timed else by_snapshot)(snapshots, closes=deletions == "close"))
    for output in outputs:
        assert kept(bench, output) == expected, output
    assert len(expected) > CASES * 3


def versions(bench: Bench, table: str, *columns: str) -> list[tuple[Any, ...]]:
    names = ", ".join(columns)
    return bench.rows(f"SELECT {names}, _is_current FROM {table} ORDER BY ALL")


def test_what_is_ignored_makes_no_version_and_new_columns_are_null_before(bench: Bench) -> None:
    bench.rows("CREATE TABLE raw.people (id INT, name STRING, seen INT)")
    more: dict[str, Any] = {"keys": ["id"], "ignore": ["seen"]}
    assert bench.keep("raw.people", "raw.people_history", **more).rows_out == 0
    bench.rows("INSERT INTO raw.people VALUES (1, 'a', 1), (2, 'b', 1)")
    bench.rows("INSERT OVERWRITE raw.people VALUES (1, 'a', 2), (2, 'b', 2)")
    found = bench.keep("raw.people", "raw.people_history", **more)
    assert (found.rows_in, found.rows_out, found.detail) == (4, 2, {"states": 2})
    bench.rows("ALTER TABLE raw.people ADD COLUMN tags MAP<STRING, INT>")
    bench.rows("ALTER TABLE raw.people ALTER COLUMN id TYPE BIGINT")
    bench.rows("INSERT OVERWRITE raw.people VALUES (1, 'a', 3, map('x', 1, 'y', 2)), (2, 'b', 3, NULL)")
    bench.keep("raw.people", "raw.people_history", **more)
    bench.rows("INSERT OVERWRITE raw.people VALUES (1, 'a', 4, map('y', 2, 'x', 1)), (2, 'b', 4, NULL)")
    assert bench.keep("raw.people", "raw.people_history", **more).rows_out == 0
    assert versions(bench, "raw.people_history", "id", "name", "seen", "map_keys(tags)") == [
        (1, "a", 1, None, False),
        (1, "a", 3, ["x", "y"], True),
        (2, "b", 1, None, True),
    ]
    before = bench.shop.company.rows("SELECT count(*) FROM commits")
    assert bench.keep("raw.people", "raw.people_history", **more).detail == {"states": 0}
    assert "has not changed" in bench.last.text
    assert bench.shop.company.rows("SELECT count(*) FROM commits") == before


def test_a_source_that_is_written_by_a_run_of_several_commits_has_no_state_between(bench: Bench) -> None:
    window: dict[str, Any] = {
        "write": "window",
        "time_column": "d",
        "window": "2 days",
        "moment": datetime(2026, 5, 3, tzinfo=UTC),
    }
    for value in ("a", "b", "b"):
        bench.refine(f"SELECT 1 AS id, DATE '2026-05-02' AS d, '{value}' AS v", "raw.daily", **window)
        bench.keep("raw.daily", "raw.daily_history", keys=["id"])
    assert versions(bench, "raw.daily_history", "id", "v") == [(1, "a", False), (1, "b", True)]
    times = bench.rows("SELECT _valid_to FROM raw.daily_history WHERE v = 'a'")
    assert times == bench.rows("SELECT _valid_from FROM raw.daily_history WHERE v = 'b'")


def test_what_cannot_be_kept_is_said_with_a_sample(bench: Bench) -> None:
    bench.rows("CREATE TABLE raw.wrong (id INT, part STRING, v STRING, at DATE)")
    bench.rows("INSERT INTO raw.wrong VALUES (1, 'x', 'a', DATE '2026-01-01'), (1, 'x', 'b', DATE '2026-01-01')")

    def refused(**more: Any) -> str:
        with pytest.raises(StepFailed) as failed:
            bench.keep("raw.wrong", "raw.wrong_history", **more)
        return failed.value.message

    assert "raw.wrong has several rows with the same id, part, such as id = 1, part = 'x'" in refused(
        keys=["id", "part"]
    )
    told = refused(keys=["id", "part"], time_column="at")
    assert "the same id, part and at, and different values, such as id = 1, part = 'x', at = '2026-01-01'" in told
    bench.rows("INSERT OVERWRITE raw.wrong VALUES (1, 'x', 'a', NULL)")
    assert "has a row whose at is NULL, such as id = 1, part = 'x'" in refused(keys=["id", "part"], time_column="at")
    assert "raw.wrong has no column nope; it has id, part, v, at" in refused(keys=["nope"])
    assert "time_column must be a date or a timestamp; v is STRING" in refused(keys=["id"], time_column="v")
    assert not bench.shop.company.rows("SELECT 1 FROM resources WHERE name = 'wrong_history'")
    bench.keep("raw.wrong", "raw.wrong_history", keys=["id"])
    assert ": raw.wrong has several rows with the same id, such as id = 1" in bench.last.text
    assert versions(bench, "raw.wrong_history", "v") == [("a", True)]
    assert "keys changed" in refused(keys=["id", "part"])
    assert "time_column" in refused(keys=["id"], time_column="at")
    bench.rows("ALTER TABLE raw.wrong ADD COLUMN _Is_Current INT")
    assert "has a column _Is_Current" in refused(keys=["id"])
    for name in ("ids", "no_history"):
        bench.rows(f"CREATE TABLE raw.{name} (id INT)")
    with pytest.raises(StepFailed, match=r"raw\.no_history is not a history with these settings"):
        bench.keep("raw.ids", "raw.no_history", keys=["id"])
    with pytest.raises(StepFailed, match=r"raw\.nowhere does not exist yet"):
        bench.keep("raw.nowhere", "raw.nowhere_history", keys=["id"])


def test_states_beyond_the_bound_are_left_out_and_a_full_refresh_begins_anew(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.rows("CREATE TABLE raw.often (id INT, v INT)")
    for value in range(4):
        bench.rows(f"INSERT OVERWRITE raw.often VALUES (1, {value})")
    monkeypatch.setattr(states, "MOST", 2)
    bench.keep("raw.often", "raw.often_history", keys=["id"])
    assert "has 4 new snapshots since the last run; the oldest 2 are skipped" in bench.last.text
    assert versions(bench, "raw.often_history", "v") == [(2, False), (3, True)]
    monkeypatch.setattr(states, "MOST", 50)
    bench.keep("raw.often", "raw.often_history", keys=["id"], full_refresh=True)
    whole = [(0, False), (1, False), (2, False), (3, True)]
    assert versions(bench, "raw.often_history", "v") == whole
    bench.states.clear()
    bench.keep("raw.often", "raw.often_history", keys=["id"])
    assert "snapshot of the last run is unknown" in bench.last.text
    assert versions(bench, "raw.often_history", "v") == whole
