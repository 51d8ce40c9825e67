"""Fires due triggers in a separate thread while its scheduler holds the lease."""

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
"""Polling interval, aligned with the clock, because schedules name whole seconds."""
PAUSE_AFTER_TROUBLE = 2.0
AT_ONCE = 200
"""Maximum number of due triggers per poll, newest first, so that catching up does not delay current fires."""
TOGETHER = 20
"""Maximum number of fires per transaction; larger transactions would block other writers."""
AIMED_AT_ONCE = 500
SHARE = 0.02
"""Maximum share of a core for polling changed tables."""
SET_BACK = timedelta(seconds=5)
"""A clock that loses more than this counts as set back."""
UNREADABLE = "The condition of this trigger cannot be read any more; save the trigger again"
FAULT = (
    "The trigger could not fire because of an internal error; see the scheduler's log, and resume the trigger to "
    "try again"
)

_triggers, _fires = trigger_table.c, trigger_fire_table.c
_log = get_logger("headgate.triggers")


class LeaseLost(Exception):
    """Another scheduler holds the lease."""


class Firer:
    """Fires due triggers."""

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
        """Start firing, while `is_ours` holds in the transaction of each fire."""
        self._is_ours = is_ours
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="triggers", daemon=True)
            self._thread.start()

    def rest(self) -> None:
        """Stop firing until the next nudge. Another scheduler may change due times meanwhile."""
        self._is_ours, self._aimed = None, ""

    def close(self) -> None:
        """Stop firing; due triggers stay due."""
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
        """Poll once and fire the due triggers; returns their number."""
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
        """Fire several triggers in one transaction, which saves disk syncs; one by one if that fails."""

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

    # Table events

    def _look_at_tables(self) -> None:
        """Set the due time of triggers whose tables have changed. The more tables there are, the less often
        this runs.
        """
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
        """Recompute the due times of schedules after the clock was set back."""
        moment, ticks = self._clock(), self._ticks()
        if self._seen is not None:
            passed = timedelta(seconds=ticks - self._seen[1])
            if moment - self._seen[0] < passed - SET_BACK:
                _log.warning("the clock was set back", seconds=(passed - (moment - self._seen[0])).total_seconds())
                self._aimed = ""
        self._seen = (moment, ticks)

    def _aim_some(self) -> None:
        """Compare some of the stored due times with their schedules, because clocks and time zone rules change."""
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
    """Delete old fires, except the last one of each trigger."""
    later = trigger_fire_table.alias("later")
    is_last = ~exists().where(later.c.trigger_id == _fires.trigger_id, later.c.due_at > _fires.due_at)
    connection.execute(delete(trigger_fire_table).where(_fires.due_at < before, ~is_last))
