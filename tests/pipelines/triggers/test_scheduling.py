"""Nothing is fired twice and nothing is lost: when processes die, when there are two of them, and when clocks are set."""

import threading
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, update

from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.kit.leases import acquire
from headgate.pipelines.triggers.fire import fire
from headgate.pipelines.triggers.models import trigger_fire_table, trigger_table
from headgate.pipelines.triggers.scheduler import LeaseLost, forget
from headgate.supervisor import scheduler as schedulers
from headgate.supervisor.scheduler import Scheduler
from tests.pipelines.triggers.support import Clock, TriggerBench, define
from tests.support.installation import Installation, eventually, installed

pytestmark = pytest.mark.both_databases


class PowerCut(BaseException):
    """The process ends here."""


def _cut_at(database: Database, place: int) -> Callable[[], None]:
    """Have this thread die before its statement of this number; what takes that back."""
    seen, mine = 0, threading.get_ident()

    def trip(*_: Any) -> None:
        nonlocal seen
        seen += threading.get_ident() == mine
        if seen == place and threading.get_ident() == mine:
            raise PowerCut

    event.listen(database.engine, "before_cursor_execute", trip)
    return lambda: event.remove(database.engine, "before_cursor_execute", trip)


@pytest.mark.parametrize("kind", ["cron", "event", "blocked"])
def test_a_fire_that_is_cut_off_anywhere_happens_once_afterwards(trigger_bench: TriggerBench, kind: str) -> None:
    when: Any = "* * * * *" if kind != "event" else {"kind": "pipelines", "pipelines": [trigger_bench.land]}
    trigger = trigger_bench.trigger(trigger_bench.refine, when, by="Tess" if kind != "blocked" else "Adam")
    if kind == "blocked":
        trigger_bench.as_("Olga").change(change="remove_member", member="Adam").raise_for_status()
    if kind == "event":
        trigger_bench.succeed(trigger_bench.land)
    trigger_bench.clock.set(now() + timedelta(minutes=1))
    before = trigger_bench.row(trigger)
    place = 0
    while True:
        place += 1
        restore = _cut_at(trigger_bench.database, place)
        try:
            trigger_bench.database.write(lambda connection: fire(connection, trigger_bench.clock(), [trigger]))
            break
        except PowerCut:
            assert (trigger_bench.runs(), trigger_bench.fires()) == ([], [])
            assert dict(trigger_bench.row(trigger)) == dict(before)
        finally:
            restore()
    assert place > 7
    assert trigger_bench.states() == ["blocked" if kind == "blocked" else "queued"]
    assert [run for _, run in trigger_bench.fires()] == [trigger_bench.runs()[0]["id"]]
    trigger_bench.database.write(lambda connection: fire(connection, trigger_bench.clock(), [trigger]))
    trigger_bench.round()
    assert len(trigger_bench.runs()) == 1


def test_a_success_that_is_cut_off_is_heard_once_afterwards(trigger_bench: TriggerBench) -> None:
    trigger = trigger_bench.trigger(trigger_bench.refine, {"kind": "pipelines", "pipelines": [trigger_bench.land]})
    for place in range(1, 50):
        restore = _cut_at(trigger_bench.database, place)
        try:
            trigger_bench.succeed(trigger_bench.land)
            break
        except PowerCut:
            assert trigger_bench.row(trigger)["next_at"] is None
        finally:
            restore()
    trigger_bench.round()
    trigger_bench.round()
    assert trigger_bench.states() == ["queued"]


def test_many_at_once_fire_each_due_time_once(trigger_bench: TriggerBench) -> None:
    triggers = [
        trigger_bench.trigger(pipeline, "* * * * *")
        for pipeline in (trigger_bench.land, trigger_bench.refine)
        for _ in range(4)
    ]
    trigger_bench.clock.set(now() + timedelta(minutes=1))
    firers = [trigger_bench.another() for _ in range(3)]
    gate = threading.Barrier(len(firers))

    def work(firer: Any) -> None:
        gate.wait()
        firer.round()

    threads = [threading.Thread(target=work, args=(firer,)) for firer in firers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(run["trigger_id"] for run in trigger_bench.runs()) == sorted(triggers)
    assert len(trigger_bench.fires()) == len(triggers)


def test_those_of_one_moment_fire_in_the_order_they_were_made(trigger_bench: TriggerBench) -> None:
    triggers = [trigger_bench.trigger(trigger_bench.land, "* * * * *") for _ in range(3)]
    same = update(trigger_table).where(trigger_table.c.id.in_(triggers)).values(next_at=now())
    trigger_bench.database.write(lambda connection: connection.execute(same).rowcount)
    trigger_bench.clock.set(now() + timedelta(minutes=1))
    assert list(trigger_bench.firer._due()) == triggers


def test_only_who_holds_the_lease_fires(trigger_bench: TriggerBench) -> None:
    trigger_bench.trigger(trigger_bench.land, "* * * * *")
    trigger_bench.clock.set(now() + timedelta(minutes=1))
    late = trigger_bench.another()
    late._is_ours = lambda _: False
    with pytest.raises(LeaseLost):
        late.round()
    assert trigger_bench.runs() == []
    trigger_bench.round()
    assert trigger_bench.states() == ["queued"]


def test_of_two_schedulers_one_fires(trigger_bench: TriggerBench, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = trigger_bench.company.settings.model_copy(update={"database": {"url": None}})
    url = trigger_bench.database.engine.url.render_as_string(hide_password=False)
    monkeypatch.setattr(type(settings), "database_url", property(lambda _: url))
    trigger = trigger_bench.trigger(trigger_bench.land, "* * * * *")
    overdue = update(trigger_table).values(next_at=now() - timedelta(minutes=5))
    trigger_bench.database.write(lambda connection: connection.execute(overdue).rowcount)
    with closing(Scheduler(settings)) as first, closing(Scheduler(settings)) as second:
        second._holder = "elsewhere:1"
        assert (first.tick(), second.tick()) == (True, False)
        eventually(trigger_bench.runs)
        assert second._firer._thread is None
        assert [run["trigger_id"] for run in trigger_bench.runs()] == [trigger]


def test_a_lease_that_a_wrong_clock_took_is_taken_over(database: Database) -> None:
    moment, length = now(), schedulers.LENGTH

    def take(holder: str, at: datetime) -> int | None:
        return database.write(lambda connection: acquire(connection, "scheduler", holder, at, length))

    assert take("a", moment) == 1
    assert take("b", moment) is None
    assert take("a", moment + timedelta(days=900)) == 2
    assert take("b", moment) == 3
    assert take("a", moment) is None


# Clocks


def test_a_clock_that_is_set_forward_is_caught_up(trigger_bench: TriggerBench) -> None:
    trigger = trigger_bench.trigger(trigger_bench.land, "0 * * * *")
    trigger_bench.round()
    trigger_bench.clock.set(now() + timedelta(days=3))
    trigger_bench.round()
    trigger_bench.round()
    assert trigger_bench.states() == ["queued"]
    assert trigger_bench.clock() < trigger_bench.row(trigger)["next_at"] <= trigger_bench.clock() + timedelta(hours=1)


def test_a_clock_that_is_set_back_fires_nothing_again_and_goes_on(trigger_bench: TriggerBench) -> None:
    trigger = trigger_bench.trigger(trigger_bench.land, "* * * * *")
    trigger_bench.minute()
    right = trigger_bench.clock()
    trigger_bench.clock.set(right + timedelta(days=800))
    trigger_bench.round()
    trigger_bench.end()
    assert trigger_bench.states() == ["succeeded", "skipped"]
    trigger_bench.clock.set(right)
    trigger_bench.round()
    assert trigger_bench.row(trigger)["next_at"] <= right + timedelta(minutes=1)
    dues = [due for due, _ in trigger_bench.fires()]
    trigger_bench.clock.advance(minutes=1)
    trigger_bench.round()
    assert trigger_bench.states().count("queued") == 1
    assert len(set(dues)) == len(dues)


def test_what_fired_before_a_clock_was_set_back_is_not_fired_again(trigger_bench: TriggerBench) -> None:
    trigger = trigger_bench.trigger(trigger_bench.land, "* * * * *")
    trigger_bench.minute()
    first = trigger_bench.runs()
    trigger_bench.end()
    trigger_bench.clock.set(trigger_bench.clock() - timedelta(minutes=2))
    trigger_bench.round()
    assert trigger_bench.row(trigger)["next_at"] <= first[0]["due_at"]
    trigger_bench.clock.set(first[0]["due_at"])
    trigger_bench.round()
    dues = [due for due, _ in trigger_bench.fires()]
    assert len(set(dues)) == len(dues) == len(trigger_bench.runs())


def test_a_scheduler_that_begins_aims_anew(trigger_bench: TriggerBench) -> None:
    trigger = trigger_bench.trigger(trigger_bench.land, "0 6 * * *")
    right = trigger_bench.row(trigger)["next_at"]
    for wrong in (right + timedelta(days=700), None):
        spoil = update(trigger_table).where(trigger_table.c.id == trigger).values(next_at=wrong)
        trigger_bench.database.write(lambda connection, one=spoil: connection.execute(one).rowcount)
        trigger_bench.another().round()
        assert trigger_bench.row(trigger)["next_at"] == right


def test_events_at_one_instant_are_fires_of_their_own(trigger_bench: TriggerBench) -> None:
    trigger_bench.trigger(trigger_bench.refine, {"kind": "pipelines", "pipelines": [trigger_bench.land]})
    for _ in range(2):
        trigger_bench.succeed(trigger_bench.land)
        trigger_bench.round()
        trigger_bench.end()
    assert trigger_bench.states() == ["succeeded", "succeeded"]


def test_old_fires_are_forgotten_but_the_last(trigger_bench: TriggerBench) -> None:
    trigger, other = (
        trigger_bench.trigger(trigger_bench.land, "@yearly"),
        trigger_bench.trigger(trigger_bench.land, "@yearly"),
    )
    moment = now()
    ages = {trigger: (400, 300, 5), other: (500, 450)}
    rows = [
        {"trigger_id": one, "due_at": moment - timedelta(days=days), "at": moment}
        for one, every in ages.items()
        for days in every
    ]
    trigger_bench.database.write(lambda connection: connection.execute(trigger_fire_table.insert(), rows).rowcount)
    trigger_bench.database.write(lambda connection: forget(connection, moment - timedelta(days=90)))
    assert [round((moment - due).days) for due, _ in trigger_bench.fires()] == [450, 5]


def test_looking_at_tables_takes_a_bounded_share(yard_on_sqlite: TriggerBench) -> None:
    trigger_bench, clock = yard_on_sqlite, Clock()
    looks = 0

    def ticks() -> float:
        nonlocal looks
        looks += 1
        return looks * 0.1

    firer = trigger_bench.another()
    firer._ticks = ticks
    firer._look_at_tables()
    assert firer._look_again >= 0.2 + 0.1 / 0.02 - 1e-9
    assert clock() <= now()


# As a process


@pytest.mark.processes
def test_headgate_up_fires_what_is_due(tmp_path: Path) -> None:
    with installed(tmp_path) as one:
        one.fill()
        _overdue(one)
        one.up()
        database = Database(one.url)
        try:
            eventually(lambda: _states(database), seconds=20)
        finally:
            database.close()
        assert one.stop() == 0


def _overdue(one: Installation) -> None:
    """Give the company's trigger a schedule that is overdue."""
    database = Database(one.url)
    with database.read() as connection:
        row = connection.execute(trigger_table.select().where(trigger_table.c.kind == "pipeline_trigger")).one()
    define(database, row.parent_id)
    spec = {"when": {"kind": "cron", "cron": "0 0 1 1 *", "time_zone": "UTC", "catch_up": "latest"}}
    values = {"sort": "cron", "spec": spec, "enabled": True, "next_at": datetime(now().year, 1, 1, tzinfo=UTC)}
    change = update(trigger_table).where(trigger_table.c.id == row.id).values(values)
    database.write(lambda connection: connection.execute(change).rowcount)
    database.close()


def _states(database: Database) -> list[str]:
    with database.read() as connection:
        found = connection.exec_driver_sql("SELECT state FROM runs WHERE trigger_id IS NOT NULL")
        return [row[0] for row in found]
