"""The states of a table that a history takes up: each once, in order, at times that grow."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from headgate.execution.statements.table_states import State, pending

BASE = datetime(2026, 1, 1, tzinfo=UTC)

logs = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 5)), max_size=12).map(
    lambda found: [(BASE + timedelta(milliseconds=at), snapshot) for at, snapshot in found]
)


@given(logs, st.data())
def test_runs_however_they_are_batched_take_up_the_same_states(
    log: list[tuple[datetime, int]], data: st.DataObject
) -> None:
    """Clocks may stand still or go back a little, and a table may come back to a snapshot that it was before."""
    log = list(dict.fromkeys(log))
    whole = pending(log, None)
    assert [(one.logged, one.snapshot) for one in whole] == log
    assert all(one.at < other.at for one, other in pairwise(whole))
    assert all(one.at >= one.logged for one in whole)
    found: list[State] = []
    last: State | None = None
    for end in [*sorted(data.draw(st.lists(st.integers(0, len(log)), max_size=4))), len(log)]:
        new = pending(log[:end], last)
        found += new
        last = State.parse(found[-1].stored()) if found else None
    assert found == whole


def test_a_log_whose_beginning_is_gone_goes_on_after_the_last_time() -> None:
    log = [(BASE + timedelta(seconds=n), n) for n in range(5)]
    last = pending(log[:3], None)[-1]
    assert [one.snapshot for one in pending(log[3:], last)] == [3, 4]
    assert pending(log[:2], last) == []
    assert State.parse(None) is None


def test_clocks_that_go_back_do_not_turn_the_order() -> None:
    log = [(BASE + timedelta(seconds=5), 1), (BASE, 2), (BASE + timedelta(seconds=5), 3)]
    assert [one.at for one in pending(log, None)] == [
        BASE + timedelta(seconds=5),
        BASE + timedelta(seconds=5, microseconds=1),
        BASE + timedelta(seconds=5, microseconds=2),
    ]
