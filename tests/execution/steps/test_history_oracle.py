"""The oracle of histories by itself: what it promises is what a history promises, tried on many small tables."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.execution.steps.history_oracle import Snapshot, Version, by_snapshot, by_time

BASE = datetime(2026, 1, 1, tzinfo=UTC)


def time(minutes: int) -> datetime:
    return BASE + timedelta(minutes=minutes)


observations = st.dictionaries(
    st.tuples(st.integers(1, 2), st.integers(0, 6)), st.sampled_from(["a", "b", None]), min_size=1, max_size=8
).map(lambda found: [{"key": key, "at": time(at), "value": value} for (key, at), value in found.items()])


def snapshots(batches: list[list[dict[str, Any]]]) -> list[Snapshot]:
    return [(time(100 + number), rows) for number, rows in enumerate(batches)]


@given(observations, st.data())
def test_neither_order_nor_batches_nor_repetition_matter(rows: list[dict[str, Any]], data: st.DataObject) -> None:
    whole = by_time(snapshots([rows]), closes=False)
    batches = data.draw(st.lists(st.lists(st.sampled_from(rows), max_size=5), max_size=4))
    rest = [[row] for row in data.draw(st.permutations(rows))]
    assert sorted(by_time(snapshots(batches + rest), closes=False), key=str) == sorted(whole, key=str)


@given(st.lists(observations, min_size=1, max_size=5), st.booleans())
def test_versions_do_not_overlap_and_change_something(batches: list[list[dict[str, Any]]], closes: bool) -> None:
    for found in (by_time(snapshots(batches), closes=closes), by_snapshot(snapshots(batches), closes=closes)):
        by_key: dict[Any, list[Version]] = {}
        for one in sorted(found, key=lambda one: one.start):
            by_key.setdefault(one.key, []).append(one)
        for versions in by_key.values():
            for one, other in pairwise(versions):
                assert one.end is not None
                assert one.start < one.end <= other.start
                assert one.end < other.start or one.value != other.value


@given(st.lists(observations, min_size=1, max_size=5))
def test_what_holds_now_is_what_the_source_says(batches: list[list[dict[str, Any]]]) -> None:
    last = {row["key"]: row["value"] for row in sorted(batches[-1], key=lambda row: row["at"])}
    once = [[*{row["key"]: row for row in rows}.values()] for rows in batches]
    now = {one.key: one.value for one in by_snapshot(snapshots(once)) if one.end is None}
    assert now == {row["key"]: row["value"] for row in once[-1]}
    there = {one.key for one in by_time(snapshots(batches)) if one.end is None}
    assert there == set(last)


def test_late_rows_go_between_and_rows_that_come_back_begin_anew() -> None:
    def row(at: int, value: str) -> dict[str, Any]:
        return {"key": 1, "at": time(at), "value": value}

    first = by_time([(time(100), [row(1, "a"), row(5, "a")])])
    assert first == [Version(1, time(1), None, "a", (time(5),))]
    late = by_time([(time(100), [row(1, "a"), row(5, "a")]), (time(101), [row(1, "a"), row(3, "b"), row(5, "a")])])
    assert late == [
        Version(1, time(1), time(3), "a"),
        Version(1, time(3), time(5), "b"),
        Version(1, time(5), None, "a"),
    ]
    back = by_time([(time(100), [row(1, "a")]), (time(101), []), (time(102), [row(1, "a")])])
    assert back == [Version(1, time(1), time(101), "a"), Version(1, time(102), None, "a")]
