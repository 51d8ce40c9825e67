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
from tests.pipelines.triggers.support import Clock, Yard, define
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
def test_a_fire_that_is_cut_off_anywhere_happens_once_afterwards(yard: Yard, kind: str) -> None:
    when: Any = "* * * * *" if kind != "event" else {"kind": "pipelines", "pipelines": [yard.land]}
    trigger = yard.trigger(yard.refine, when, by="Tess" if kind != "blocked" else "Adam")
    if kind == "blocked":
        yard.as_("Olga").change(change="remove_member", member="Adam").raise_for_status()
    if kind == "event":
        yard.succeed(yard.land)
    yard.clock.set(now() + timedelta(minutes=1))
    before = yard.row(trigger)
    place = 0
    while True:
        place += 1
        restore = _cut_at(yard.database, place)
        try:
            yard.database.write(lambda connection: fire(connection, yard.clock(), [trigger]))
            break
        except PowerCut:
            assert (yard.runs(), yard.fires()) == ([], [])
            assert dict(yard.row(trigger)) == dict(before)
        finally:
            restore()
    assert place > 7
    assert yard.states() == ["blocked" if kind == "blocked" else "queued"]
    assert [run for _, run in yard.fires()] == [yard.runs()[0]["id"]]
    yard.database.write(lambda connection: fire(connection, yard.clock(), [trigger]))
    yard.round()
    assert len(yard.runs()) == 1


def test_a_success_that_is_cut_off_is_heard_once_afterwards(yard: Yard) -> None:
    trigger = yard.trigger(yard.refine, {"kind": "pipelines", "pipelines": [yard.land]})
    for place in range(1, 50):
        restore = _cut_at(yard.database, place)
        try:
            yard.succeed(yard.land)
            break
        except PowerCut:
            assert yard.row(trigger)["next_at"] is None
        finally:
            restore()
    yard.round()
    yard.round()
    assert yard.states() == ["queued"]


def test_many_at_once_fire_each_due_time_once(yard: Yard) -> None:
    triggers = [yard.trigger(pipeline, "* * * * *") for pipeline in (yard.land, yard.refine) for _ in range(4)]
    yard.clock.set(now() + timedelta(minutes=1))
    firers = [yard.another() for _ in range(3)]
    gate = threading.Barrier(len(firers))

    def work(firer: Any) -> None:
        gate.wait()
        firer.round()

    threads = [threading.Thread(target=work, args=(firer,)) for firer in firers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(run["trigger_id"] for run in yard.runs()) == sorted(triggers)
    assert len(yard.fires()) == len(triggers)


def test_those_of_one_moment_fire_in_the_order_they_were_made(yard: Yard) -> None:
    triggers = [yard.trigger(yard.land, "* * * * *") for _ in range(3)]
    same = update(trigger_table).where(trigger_table.c.id.in_(triggers)).values(next_at=now())
    yard.database.write(lambda connection: connection.execute(same).rowcount)
    yard.clock.set(now() + timedelta(minutes=1))
    assert list(yard.firer._due()) == triggers


def test_only_who_holds_the_lease_fires(yard: Yard) -> None:
    yard.trigger(yard.land, "* * * * *")
    yard.clock.set(now() + timedelta(minutes=1))
    late = yard.another()
    late._is_ours = lambda _: False
    with pytest.raises(LeaseLost):
        late.round()
    assert yard.runs() == []
    yard.round()
    assert yard.states() == ["queued"]


def test_of_two_schedulers_one_fires(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = yard.company.settings.model_copy(update={"database": {"url": None}})
    url = yard.database.engine.url.render_as_string(hide_password=False)
    monkeypatch.setattr(type(settings), "database_url", property(lambda _: url))
    trigger = yard.trigger(yard.land, "* * * * *")
    overdue = update(trigger_table).values(next_at=now() - timedelta(minutes=5))
    yard.database.write(lambda connection: connection.execute(overdue).rowcount)
    with closing(Scheduler(settings)) as first, closing(Scheduler(settings)) as second:
        second._holder = "elsewhere:1"
        assert (first.tick(), second.tick()) == (True, False)
        eventually(yard.runs)
        assert second._firer._thread is None
        assert [run["trigger_id"] for run in yard.runs()] == [trigger]


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


def test_a_clock_that_is_set_forward_is_caught_up(yard: Yard) -> None:
    trigger = yard.trigger(yard.land, "0 * * * *")
    yard.round()
    yard.clock.set(now() + timedelta(days=3))
    yard.round()
    yard.round()
    assert yard.states() == ["queued"]
    assert yard.clock() < yard.row(trigger)["next_at"] <= yard.clock() + timedelta(hours=1)


def test_a_clock_that_is_set_back_fires_nothing_again_and_goes_on(yard: Yard) -> None:
    trigger = yard.trigger(yard.land, "* * * * *")
    yard.minute()
    right = yard.clock()
    yard.clock.set(right + timedelta(days=800))
    yard.round()
    yard.end()
    assert yard.states() == ["succeeded", "skipped"]
    yard.clock.set(right)
    yard.round()
    assert yard.row(trigger)["next_at"] <= right + timedelta(minutes=1)
    dues = [due for due, _ in yard.fires()]
    yard.clock.advance(minutes=1)
    yard.round()
    assert yard.states().count("queued") == 1
    assert len(set(dues)) == len(dues)


def test_what_fired_before_a_clock_was_set_back_is_not_fired_again(yard: Yard) -> None:
    trigger = yard.trigger(yard.land, "* * * * *")
    yard.minute()
    first = yard.runs()
    yard.end()
    yard.clock.set(yard.clock() - timedelta(minutes=2))
    yard.round()
    assert yard.row(trigger)["next_at"] <= first[0]["due_at"]
    yard.clock.set(first[0]["due_at"])
    yard.round()
    dues = [due for due, _ in yard.fires()]
    assert len(set(dues)) == len(dues) == len(yard.runs())


def test_a_scheduler_that_begins_aims_anew(yard: Yard) -> None:
    trigger = yard.trigger(yard.land, "0 6 * * *")
    right = yard.row(trigger)["next_at"]
    for wrong in (right + timedelta(days=700), None):
        spoil = update(trigger_table).where(trigger_table.c.id == trigger).values(next_at=wrong)
        yard.database.write(lambda connection, one=spoil: connection.execute(one).rowcount)
        yard.another().round()
        assert yard.row(trigger)["next_at"] == right


def test_events_at_one_instant_are_fires_of_their_own(yard: Yard) -> None:
    yard.trigger(yard.refine, {"kind": "pipelines", "pipelines": [yard.land]})
    for _ in range(2):
        yard.succeed(yard.land)
        yard.round()
        yard.end()
    assert yard.states() == ["succeeded", "succeeded"]


def test_old_fires_are_forgotten_but_the_last(yard: Yard) -> None:
    trigger, other = yard.trigger(yard.land, "@yearly"), yard.trigger(yard.land, "@yearly")
    moment = now()
    ages = {trigger: (400, 300, 5), other: (500, 450)}
    rows = [
        {"trigger_id": one, "due_at": moment - timedelta(days=days), "at": moment}
        for one, every in ages.items()
        for days in every
    ]
    yard.database.write(lambda connection: connection.execute(trigger_fire_table.insert(), rows).rowcount)
    yard.database.write(lambda connection: forget(connection, moment - timedelta(days=90)))
    assert [round((moment - due).days) for due, _ in yard.fires()] == [450, 5]


def test_looking_at_tables_takes_a_bounded_share(yard_on_sqlite: Yard) -> None:
    yard, clock = yard_on_sqlite, Clock()
    looks = 0

    def ticks() -> float:
        nonlocal looks
        looks += 1
        return looks * 0.1

    firer = yard.another()
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
