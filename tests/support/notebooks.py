"""Notebooks run by their executor, for a run of the company that is made by hand."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import text

from headgate.contracts.pipelines.definitions import Cell
from headgate.contracts.pipelines.steps import LakeItem, RunNotebook
from headgate.execution.steps import notebook
from headgate.execution.steps.context import Context, Result, RunJob, StepFailed, VolumeFile
from headgate.execution.steps.volumes import StoredVolumes
from headgate.kit.clock import now
from headgate.lakehouse.catalog.work_tokens import open_reading, open_work
from headgate.platform.unit_of_work.work import DeclaredTable
from headgate.settings.settings import Settings
from tests.lakehouse.catalog.support import Lake


@dataclass
class Told:
    """What came of a notebook."""

    result: Result | None = None
    failed: StepFailed | None = None
    lines: list[str] = field(default_factory=list)
    artifacts: dict[str, tuple[str, bytes]] = field(default_factory=dict)

    @property
    def cells(self) -> list[dict[str, Any]]:
        return list(json.loads(self.artifacts["notebook.json"][1])["cells"])

    def printed(self, number: int = 1) -> str:
        """What a cell wrote to standard output."""
        [found] = [one["stdout"] for one in self.cells if one["number"] == number]
        return str(found)

    def values(self, number: int = 1) -> Any:
        """What a cell printed as JSON, in its last line."""
        return json.loads(self.printed(number).strip().splitlines()[-1])


class Notebooks:
    """Runs notebooks of Tess, who may do everything in the layers."""

    def __init__(self, lake: Lake, folder: Path, **settings: Any) -> None:
        self.lake, self.folder = lake, folder
        given = {"spark": {"memory": "1g"}, "notebooks": {"memory": "3g"}, **settings}
        self.settings = Settings(data_dir=folder / "worker", warehouse={"url": f"file://{lake.warehouse}"}, **given)
        self.fence = 0
        [(self.run,)] = lake.rows("SELECT id FROM runs LIMIT 1")

    def item(self, kind: str, name: str) -> LakeItem:
        layer, _, own = name.partition(".")
        return LakeItem(self.lake.company.id(kind, name), layer, own)

    def set_run(self, state: str) -> None:
        values = {"s": state, "f": self.fence, "id": self.run}
        statement = text("UPDATE runs SET state = :s, fence = :f WHERE id = :id")
        self.lake.company.database.write(lambda c: c.execute(statement, values))

    def tokens(self, reads: Sequence[LakeItem], writes: Sequence[LakeItem]) -> tuple[str, str]:
        """The token of a run that reads and writes these, and the one for its notebook."""
        member, until = self.lake.company.id("member", "Tess"), now() + timedelta(hours=1)
        layers = {one.layer: self.lake.company.id("layer", one.layer) for one in (*reads, *writes)}
        reach = [DeclaredTable(one.id, "read") for one in reads]
        reach += [DeclaredTable(one.id, "write", layers[one.layer], one.name) for one in writes]

        def work(connection: Any) -> tuple[str, str]:
            own, secret = open_work(
                connection,
                now(),
                purpose="run",
                member=member,
                run_id=self.run,
                fence=self.fence,
                reach=reach,
                expires=until,
            )
            asked = [one.id for one in reads]
            return secret, open_reading(connection, now(), own, asked, expires=until)[1]

        return self.lake.company.database.write(work)

    def listing(self, volume: str) -> list[VolumeFile]:
        rows = self.lake.rows(f"SELECT id, path, size FROM volume_files WHERE volume_id = '{volume}' ORDER BY path")
        return [VolumeFile(*row, created=datetime.now(UTC)) for row in rows]

    def context(self, step: RunNotebook, told: Told, **more: Any) -> Context:
        """What a step works with, in a new claim of the run."""
        self.fence += 1
        self.set_run("running")
        token, reading = self.tokens(step.inputs, step.outputs)
        job = RunJob(
            id=self.run,
            fence=self.fence,
            token=token,
            steps=[step],
            done=0,
            moment=now(),
            time_zone="UTC",
            seconds=more.pop("seconds", 300),
            full_refresh=False,
            states={},
            endpoints=more.pop("endpoints", {}),
            reading_token=reading,
        )
        return Context(
            job,
            self.settings,
            self.folder / "runs" / self.run / str(self.fence),
            open_member=lambda: None,  # type: ignore[arg-type,return-value]
            platform=more.pop("platform", None),
            tell=lambda level, line: told.lines.append(line),
            note=lambda progress: None,
            volumes=StoredVolumes(self.settings, self.listing),
            keep=lambda name, kind, content: told.artifacts.__setitem__(name, (kind, content)),
            catalog_url=f"{self.lake.url}/iceberg",
        )

    def step(self, *cells: str, **more: Any) -> RunNotebook:
        given: dict[str, Any] = {
            "inputs": (),
            "outputs": (),
            "volumes": (),
            "output_volumes": (),
            "wheels": (),
            "hosts": (),
            "secrets": (),
            "parameters": {},
        }
        return RunNotebook(cells=tuple(Cell(source=one) for one in cells), **{**given, **more})

    def go(self, step: RunNotebook, **more: Any) -> Told:
        """Run a notebook; what came of it, and also how it failed."""
        told = Told()
        try:
            told.result = notebook.run(step, self.context(step, told, **more))
        except StepFailed as error:
            told.failed = error
        return told
