"""A company whose pipelines have definitions, a clock that is set by hand, and the scheduler's hand on its triggers."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, insert, select

from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.kit.ids import new_id
from headgate.lakehouse.catalog.models import commit_table
from headgate.pipelines.models import pipeline_definition_table
from headgate.pipelines.runs.models import run_table
from headgate.pipelines.triggers.events import note_success
from headgate.pipelines.triggers.models import trigger_fire_table, trigger_table
from headgate.pipelines.triggers.scheduler import Firer
from tests.support.company import Api, Company

QUERY = {"kind": "query", "sql": "SELECT 1 AS one", "output": "trusted.orders"}


def define(database: Database, pipeline: str, **values: Any) -> None:
    """Give a pipeline of the company a definition."""
    row = {"definition": QUERY, "version": 1, "active": True, "failures": 0, "place_versions": {}, "saved_at": now()}
    wanted = insert(pipeline_definition_table).values(pipeline_id=pipeline, **{**row, **values})
    database.write(lambda connection: connection.execute(wanted).rowcount)


class Clock:
    """A clock, and ticks that only go on."""

    def __init__(self, moment: datetime | None = None) -> None:
        self.moment, self._ticks = moment or now(), 0.0

    def __call__(self) -> datetime:
        return self.moment

    def ticks(self) -> float:
        return self._ticks

    def advance(self, **how: float) -> None:
        """Let time pass."""
        self.moment += timedelta(**how)
        self._ticks += timedelta(**how).total_seconds()

    def set(self, moment: datetime) -> None:
        """Set the clock; hardly any time passes by that."""
        self.moment = moment
        self._ticks += 1


class TriggerBench:
    """The company's pipelines and triggers."""

    def __init__(self, company: Company) -> None:
        self.company, self.database = company, company.database
        self.clock = Clock()
        self.firer = self.another()
        self.land, self.refine = (company.id("pipeline", one) for one in ("Land payments", "Refine orders"))
        self.task = company.id("pipeline", "Land shop orders")
        for one in (self.land, self.refine, self.task):
            define(self.database, one)

    def another(self) -> Firer:
        """One more that fires."""
        return Firer(self.database, self.clock, self.clock.ticks)

    def as_(self, member: str, **narrowing: Any) -> Api:
        return self.company.as_(member, **narrowing)

    def trigger(self, pipeline: str, when: dict[str, Any] | str, by: str = "Tess", **more: Any) -> str:
        """Make a trigger; a text is a cron text. Its id."""
        said = {"kind": "cron", "cron": when} if isinstance(when, str) else when
        if said["kind"] == "cron":
            _let_a_minute_end()
        body = {"name": new_id("pipeline_trigger"), "when": said, **more}
        answer = self.as_(by).post(f"/api/pipelines/{pipeline}/triggers", body)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["id"])

    def shown(self, trigger: str, by: str = "Tess") -> dict[str, Any]:
        answer = self.as_(by).get(f"/api/triggers/{trigger}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def row(self, trigger: str) -> Any:
        with self.database.read() as connection:
            return connection.execute(select(trigger_table).where(trigger_table.c.id == trigger)).mappings().one()

    def runs(self, pipeline: str | None = None) -> list[Any]:
        """The runs that triggers started, the oldest first."""
        query = select(run_table).where(run_table.c.trigger_id.is_not(None))
        if pipeline:
            query = query.where(run_table.c.parent_id == pipeline)
        with self.database.read() as connection:
            return list(connection.execute(query.order_by(run_table.c.due_at, run_table.c.id)).mappings())

    def states(self, pipeline: str | None = None) -> list[str]:
        return [run["state"] for run in self.runs(pipeline)]

    def fires(self) -> list[tuple[datetime, str | None]]:
        query = select(trigger_fire_table.c.due_at, trigger_fire_table.c.run_id).order_by(trigger_fire_table.c.due_at)
        with self.database.read() as connection:
            return [(row.due_at, row.run_id) for row in connection.execute(query)]

    def minute(self) -> None:
        """Let a minute pass, after which whatever is due every minute is, and fire it."""
        behind = now() - self.clock()
        self.clock.advance(seconds=60 + max(0.0, behind.total_seconds()))
        self.round()

    def round(self) -> None:
        """Look once, and fire what is due."""
        self.firer.round()

    def end(self, state: str = "succeeded") -> None:
        """Have the runs that wait ended, with all that follows from their success."""

        def work(connection: Connection) -> None:
            waiting = connection.execute(select(run_table).where(run_table.c.state == "queued")).mappings().all()
            for run in waiting:
                mine = run_table.c.id == run["id"]
                connection.execute(run_table.update().where(mine).values(state=state, ended_at=self.clock()))
                if state == "succeeded":
                    note_success(connection, self.clock(), run["parent_id"], run["id"], run["depth"])

        self.database.write(work)

    def succeed(self, pipeline: str, depth: int = 0) -> None:
        """Tell that a run of a pipeline has succeeded."""
        run = new_id("run")
        self.database.write(lambda connection: note_success(connection, self.clock(), pipeline, run, depth))

    def commit(self, table: str, operation: str = "append", run: str | None = None, **values: Any) -> None:
        """Enter a commit into the ledger."""
        item = self.company.id("table", table)

        def work(connection: Connection) -> None:
            versions = select(commit_table.c.version).where(commit_table.c.table_id == item)
            version = max(connection.execute(versions).scalars(), default=0) + 1
            row = {
                "id": new_id("commit"),
                "group_id": new_id("commit"),
                "table_id": item,
                "version": version,
                "operation": operation,
                "at": self.clock(),
                "run_id": run,
                "snapshot_id": version,
                "parent_snapshot_id": version - 1 or None,
                "metadata_file": "m.json",
            }
            connection.execute(insert(commit_table).values({**row, **values}))

        self.database.write(work)


def _let_a_minute_end() -> None:
    """Not begin in the last seconds of a minute: what is due at its end would be past before a test has looked."""
    left = 60 - now().second
    if left <= 2:
        time.sleep(left)


def iso(text: str) -> datetime:
    """An instant of an answer."""
    return datetime.fromisoformat(text).astimezone(UTC)
