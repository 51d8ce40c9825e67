"""Fires what is due, in a thread of its own, for as long as its scheduler holds the lease."""

import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, delete, exists, or_, select, update

from headgate.kit.clock import now
from headgate.kit.database import Database, passes
from headgate.kit.log import get_logger
from headgate.pipelines.triggers import events, repository
from headgate.pipelines.triggers.fire import fire
from headgate.pipelines.triggers.models import trigger_fire_table, trigger_table

INTERVAL = 0.25
"""What is due is looked for at the quarters of each second of the clock: schedules name whole ones."""
PAUSE_AFTER_TROUBLE = 2.0
AT_ONCE = 200
"""How many due triggers one look finds; the newest first, so that what is caught up holds up nothing else."""
TOGETHER = 20
"""How many fires share a transaction; more would keep other writers waiting."""
AIMED_AT_ONCE = 500
SHARE = 0.02
"""The share of a core that looking for changed tables may take."""
SET_BACK = timedelta(seconds=5)
"""A clock that lost more than this was set back."""
UNREADABLE = "The condition of this trigger cannot be read any more; save the trigger again"
FAULT = (
    "The trigger could not fire because of an internal error; see the scheduler's log, and resume the trigger to "
    "try again"
)

_triggers, _fires = trigger_table.c, trigger_fire_table.c
_log = get_logger("headgate.triggers")


class LeaseLost(Exception):
    """Another scheduler fires by now."""


class Firer:
    """Fires what is due."""

    def __init__(
        self,
        database: Database,
        clock: Callable[[], datetime] = now,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database, self._clock, self._ticks = database, clock, ticks
        self._is_ours: Callable[[Connection], bool] | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._seen: tuple[datetime, float] | None = None
        self._aimed: str | None = ""
        self._look_again = 0.0

    def nudge(self, is_ours: Callable[[Connection], bool]) -> None:
        """Fire from now on, for as long as this holds in the transaction of each fire."""
        self._is_ours = is_ours
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="triggers", daemon=True)
            self._thread.start()

    def rest(self) -> None:
        """Fire nothing until nudged; whoever fires meanwhile may leave other times behind."""
        self._is_ours, self._aimed = None, ""

    def close(self) -> None:
        """Fire nothing any more; what was due stays due."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _work(self) -> None:
        pause = self._to_the_next_look()
        while not self._stopping.wait(pause):
            try:
                result = self.round() if self._is_ours is not None else 0
                pause = 0.0 if result >= AT_ONCE else self._to_the_next_look()
            except LeaseLost:
                self.rest()
                pause = INTERVAL
            except Exception as error:  # noqa: BLE001 - it must not end this thread; what is due stays due
                pause = PAUSE_AFTER_TROUBLE
                _log.warning("cannot fire triggers; trying again", error=str(error).splitlines()[:1], seconds=pause)

    def _to_the_next_look(self) -> float:
        return INTERVAL - self._clock().timestamp() % INTERVAL

    def round(self) -> int:
        """Look once, and fire what is due; how many that were."""
        self._note_clock()
        self._look_at_tables()
        due = self._due()
        for start in range(0, len(due), TOGETHER):
            if self._stopping.is_set():
                break
            self._fire(due[start : start + TOGETHER])
        self._aim_some()
        return len(due)

    def _due(self) -> Sequence[str]:
        query = select(_triggers.id).where(_triggers.next_at <= self._clock())
        query = query.order_by(_triggers.next_at.desc(), _triggers.id).limit(AT_ONCE)
        with self._database.read() as connection:
            return connection.execute(query).scalars().all()

    def _fire(self, triggers: Sequence[str]) -> None:
        """Fire some in one transaction, which saves the disk work; one by one if any of them cannot."""

        def work(connection: Connection) -> None:
            self._check(connection)
            fire(connection, self._clock(), triggers)

        try:
            self._database.write(work)
        except Exception as error:
            if isinstance(error, LeaseLost) or passes(error):
                raise
            if len(triggers) > 1:
                for trigger in triggers:
                    self._fire([trigger])
                return
            _log.exception("a trigger cannot fire; it is paused", trigger=triggers[0])
            why = UNREADABLE if isinstance(error, ValidationError) else FAULT
            values = {"enabled": False, "paused_because": why, "next_at": None}
            self._database.write(lambda connection: repository.save(connection, triggers[0], **values))

    def _check(self, connection: Connection) -> None:
        if self._is_ours is not None and not self._is_ours(connection):
            raise LeaseLost

    # Events of tables

    def _look_at_tables(self) -> None:
        """Have triggers fire whose tables have changed; the more there is to look at, the more seldom."""
        begun = self._ticks()
        if begun < self._look_again:
            return
        moment = self._clock()
        with self._database.read() as connection:
            results = events.with_changed_tables(connection, moment)
        for trigger in results:
            self._database.write(lambda connection, value=trigger: events.aim(connection, moment, value))  # type: ignore[misc]
        ended = self._ticks()
        self._look_again = ended + (ended - begun) / SHARE

    # Clocks

    def _note_clock(self) -> None:
        """Aim anew at the times of schedules after the clock was set back: those of its future do not hold any more."""
        moment, ticks = self._clock(), self._ticks()
        if self._seen is not None:
            passed = timedelta(seconds=ticks - self._seen[1])
            if moment - self._seen[0] < passed - SET_BACK:
                _log.warning("the clock was set back", seconds=(passed - (moment - self._seen[0])).total_seconds())
                self._aimed = ""
        self._seen = (moment, ticks)

    def _aim_some(self) -> None:
        """Compare some of the stored times with what their schedules say now: clocks and the rules of zones change."""
        if self._aimed is None:
            return
        moment = self._clock()
        later = or_(_triggers.next_at.is_(None), _triggers.next_at > moment)
        query = select(_triggers.id, _triggers.spec, _triggers.next_at).where(
            _triggers.id > self._aimed, _triggers.enabled, _triggers.sort == "cron", later
        )
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(_triggers.id).limit(AIMED_AT_ONCE)).all()
        for identifier, spec, stored in rows:
            self._aim(identifier, spec, stored, moment)
        self._aimed = rows[-1].id if len(rows) == AIMED_AT_ONCE else None

    def _aim(self, trigger: str, spec: dict[str, Any], stored: datetime | None, moment: datetime) -> None:
        try:
            wanted = repository.next_at(spec, moment)
        except ValidationError:
            _log.warning("a schedule cannot be read", trigger=trigger)
            return
        if wanted != stored:
            same = _triggers.next_at.is_(None) if stored is None else _triggers.next_at == stored
            mine = (_triggers.id == trigger, _triggers.enabled, same)
            change = update(trigger_table).where(*mine).values(next_at=wanted)
            self._database.write(lambda connection: connection.execute(change).rowcount)


def forget(connection: Connection, before: datetime) -> None:
    """Forget fires that were over long ago, but the last of each trigger."""
    later = trigger_fire_table.alias("later")
    is_last = ~exists().where(later.c.trigger_id == _fires.trigger_id, later.c.due_at > _fires.due_at)
    connection.execute(delete(trigger_fire_table).where(_fires.due_at < before, ~is_last))
