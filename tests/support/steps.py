"""Steps by themselves: a run of the company that is running, and a context for an executor, made by hand."""

import itertools
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import text

from headgate.app import create_app
from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.contracts.pipelines.steps import LakeItem
from headgate.execution.spark.platform import PlatformSpark
from headgate.execution.spark.platform_environment import RUNS
from headgate.execution.steps.context import Context, RunJob, VolumeFile
from headgate.execution.steps.volumes import StoredVolumes
from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.kit.ids import new_id
from headgate.lakehouse.catalog.work_tokens import open_work
from headgate.pipelines.runs.publish import publish
from headgate.platform.unit_of_work.work import DeclaredTable
from headgate.schema import METADATA
from headgate.settings.settings import Settings
from tests.support.company import Company, company
from tests.support.serving import served
from tests.support.spark import Doorway

_fences = itertools.count(1)


@dataclass
class Running:
    """A run that acts for Tess, with what it told."""

    context: Context
    company: Company
    fence: int
    lines: list[tuple[str, str]] = field(default_factory=list)
    told: list[Any] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Its log."""
        return "\n".join(line for _, line in self.lines)

    def publish(self) -> list[Any]:
        """Publish what it wrote, and end it."""
        member, services = self.company.id("member", "Tess"), self.company.services
        run = self.context.job.id
        return self.company.database.write(lambda c: publish(services, c, now(), run, self.fence, member=member))


class Workshop:
    """The company behind a real server, and the platform's Spark."""

    def __init__(self, found: Company, platform: PlatformSpark, folder: Path) -> None:
        self.company, self.platform, self.folder = found, platform, folder
        self._items: dict[str, LakeItem] = {}

    def item(self, name: str) -> LakeItem:
        """A table by its name, `layer.table`; one that is not there yet gets its future id."""
        layer, _, table = name.partition(".")
        found = self.company.rows(
            "SELECT li.id FROM lake_items li JOIN layers l ON l.id = li.layer_id JOIN resources lr ON lr.id = l.id "
            f"JOIN resources r ON r.id = li.id WHERE lr.name = '{layer}' AND r.name = '{table}'"
        )
        known = self._items.setdefault(name, LakeItem(new_id("table"), layer, table))
        return LakeItem(found[0][0], layer, table) if found else known

    def run(
        self,
        *outputs: str,
        reads: tuple[str, ...] = (),
        states: dict[str, Any] | None = None,
        full_refresh: bool = False,
        time_zone: str = "UTC",
        endpoints: dict[str, Endpoint] | None = None,
    ) -> Running:
        """A run that may write these tables, and read those."""
        [(run,)] = self.company.rows("SELECT id FROM runs ORDER BY id LIMIT 1")
        fence = next(_fences)
        self.company.database.write(
            lambda c: c.execute(
                text("UPDATE runs SET state = 'running', fence = :fence WHERE id = :run"), {"fence": fence, "run": run}
            )
        )
        reach = [self._reach(name, "write") for name in outputs] + [self._reach(name, "read") for name in reads]
        member = self.company.id("member", "Tess")
        secret = self.company.database.write(
            lambda c: open_work(
                c,
                now(),
                purpose="run",
                member=member,
                run_id=run,
                fence=fence,
                reach=reach,
                expires=now() + timedelta(hours=1),
            )
        )[1]
        job = RunJob(
            id=run,
            fence=fence,
            token=secret,
            steps=[],
            done=0,
            moment=datetime.now(UTC),
            time_zone=time_zone,
            seconds=600,
            full_refresh=full_refresh,
            states=states or {},
            endpoints=endpoints or {},
        )
        folder = self.folder / f"run-{fence}"
        folder.mkdir()
        lines: list[tuple[str, str]] = []
        told: list[Any] = []

        def open_session() -> Any:
            return self.platform.open(secret, time_zone=time_zone)

        context = Context(
            job,
            self.company.settings,
            folder,
            open_member=open_session,
            platform=self.platform,
            tell=lambda level, line: lines.append((level, line)),
            note=told.append,
            volumes=StoredVolumes(self.company.settings, self._files),
        )
        return Running(context, self.company, fence, lines, told)

    def _files(self, volume: str) -> list[VolumeFile]:
        found = self.company.rows(
            f"SELECT id, path, size, created_at FROM volume_files WHERE volume_id = '{volume}' ORDER BY path"
        )
        return [
            VolumeFile(id_, path, size, datetime.fromisoformat(str(at)).replace(tzinfo=UTC))
            for id_, path, size, at in found
        ]

    def _reach(self, name: str, mode: str) -> DeclaredTable:
        item = self.item(name)
        return DeclaredTable(item.id, mode, self.company.id("layer", item.layer), item.name)

    def rows(self, sql: str, running: Running | None = None) -> list[dict[str, Any]]:
        """What a statement gives; for a run, as it sees its tables, else for Tess."""
        token = running.context.job.token if running else self._work()
        session = self.platform.open(token)
        try:
            return [row for batch in session.run(sql).batches for row in batch.to_pylist()]
        finally:
            session.close()

    def _work(self) -> str:
        member = self.company.id("member", "Tess")
        ends = now() + timedelta(hours=1)
        return self.company.database.write(
            lambda c: open_work(c, now(), purpose="statement", member=member, expires=ends)
        )[1]


@contextmanager
def workshop(folder: Path, **settings: Any) -> Iterator[Workshop]:
    """The company, served, and a platform's Spark that asks its catalog."""
    database = Database(f"sqlite:///{folder}/headgate.db")
    METADATA.create_all(database.engine)
    doorway = Doorway()
    spark = {"memory": "1g", **settings.pop("spark", {})}
    with company(database, folder, spark=spark, **settings) as found:
        own: Settings = found.settings
        again = Database(f"sqlite:///{folder}/headgate.db")
        platform = PlatformSpark(own, doorway.catalog_url)
        with served(create_app(own, again)) as port, doorway.leads_to(port):
            runs = folder / RUNS
            runs.mkdir(parents=True)
            try:
                yield Workshop(found, platform, runs)
            finally:
                platform.close()
                shutil.rmtree(runs)
    doorway.close()
