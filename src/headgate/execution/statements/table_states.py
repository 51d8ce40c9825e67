"""The snapshots of a table's log, and which of them a history has not processed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

MOST = 50
"""How many states a run takes up; if there are more, the oldest are left out."""

NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class State:
    """A snapshot that was the table from a time on."""

    snapshot: int
    logged: datetime
    """When it became the table, by the clock of who wrote it."""
    at: datetime
    """When it counts from: that time, but always after the state before."""

    def stored(self) -> dict[str, Any]:
        """The state as stored between runs."""
        return {"snapshot": self.snapshot, "logged": self.logged.isoformat(), "at": self.at.isoformat()}

    @classmethod
    def parse(cls, kept: dict[str, Any] | None) -> "State | None":
        """Parse a stored state."""
        if not kept:
            return None
        times = (datetime.fromisoformat(kept[name]).astimezone(UTC) for name in ("logged", "at"))
        return cls(int(kept["snapshot"]), *times)


def pending(log: Sequence[tuple[datetime, int]], last: State | None) -> list[State]:
    """The snapshots after the last processed one, in order, with distinct times."""
    since = _after(log, last)
    states: list[State] = []
    for logged, snapshot in log[since:]:
        before = states[-1] if states else last
        states.append(State(snapshot, logged, max(logged, before.at + _TICK) if before else logged))
    return states


def _after(log: Sequence[tuple[datetime, int]], last: State | None) -> int:
    """Where in the log the states begin that came after this one."""
    if last is None:
        return 0
    same = [place for place, moments in enumerate(log) if moments == (last.logged, last.snapshot)]
    if same:
        return same[-1] + 1
    later = [place for place, (logged, _) in enumerate(log) if logged > last.logged]
    return later[0] if later else len(log)
