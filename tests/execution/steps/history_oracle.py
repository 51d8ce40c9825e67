"""What a history is to be: a second, slow reading, in plain Python, a key and a moment at a time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

TICK = timedelta(microseconds=1)

Snapshot = tuple[datetime, list[dict[str, Any]]]
"""When it was, and its rows: `key`, `value`, and `at` if rows say when they changed."""


@dataclass(frozen=True, order=True)
class Version:
    """A version of a row."""

    key: Any
    start: datetime
    end: datetime | None
    value: Any
    seen: tuple[datetime, ...] = ()


def by_snapshot(snapshots: Iterable[Snapshot], *, closes: bool = True) -> list[Version]:
    """The versions of a table whose rows hold from the time of their snapshot on."""
    done: list[Version] = []
    now: dict[Any, tuple[datetime, Any]] = {}
    for time, rows in snapshots:
        given = {row["key"]: row["value"] for row in rows}
        for key in [*now]:
            if (key in given and given[key] != now[key][1]) or (key not in given and closes):
                start, value = now.pop(key)
                done.append(Version(key, start, time, value))
        for key, value in given.items():
            now.setdefault(key, (time, value))
    return done + [Version(key, start, None, value) for key, (start, value) in now.items()]


@dataclass
class Known:
    """All that is known of a key."""

    values: dict[datetime, Any] = field(default_factory=dict)
    gone: set[datetime] = field(default_factory=set)
    back: set[datetime] = field(default_factory=set)

    def is_there(self, moment: datetime) -> bool:
        """Whether the row was there: the latest word counts; at the same moment, being there does."""
        there = [time for time in (*self.values, *self.back) if time <= moment]
        away = [time for time in self.gone if time <= moment]
        return bool(there) and (not away or max(there) >= max(away))

    def value(self, moment: datetime) -> Any:
        """What the row was."""
        return self.values[max(time for time in self.values if time <= moment)]

    def moments(self) -> list[datetime]:
        """When anything happened."""
        return sorted({*self.values, *self.gone, *self.back})

    def versions(self, key: Any) -> list[Version]:
        """The stretches in which the row was there, and the same."""
        found: list[Version] = []
        for moment in self.moments():
            last = found[-1] if found and found[-1].end is None else None
            there = self.is_there(moment)
            same = last is not None and there and last.value == self.value(moment)
            if last is not None and not same:
                found[-1] = Version(key, last.start, moment, last.value, last.seen)
            if there and not same:
                found.append(Version(key, moment, None, self.value(moment)))
            elif same and moment in self.values:
                found[-1] = Version(key, last.start, None, last.value, (*last.seen, moment))
        return found


def by_time(snapshots: Sequence[Snapshot], *, closes: bool = True) -> list[Version]:
    """The versions of a table whose rows say when they changed."""
    known: dict[Any, Known] = {}
    for time, rows in snapshots:
        for row in rows:
            known.setdefault(row["key"], Known()).values[row["at"]] = row["value"]
        given = {row["key"] for row in rows}
        for key, facts in known.items():
            latest = facts.moments()[-1]
            if key in given and not facts.is_there(latest):
                facts.back.add(max(time, latest + TICK))
            if key not in given and closes and facts.is_there(latest):
                facts.gone.add(max(time, latest + TICK))
    return [version for key, facts in known.items() for version in facts.versions(key)]
