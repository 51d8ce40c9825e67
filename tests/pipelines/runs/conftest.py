"""The company behind a real server, with a worker that has runs, on a real Spark."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headgate.execution.spark.platform import PlatformSpark
from headgate.execution.spark.platform_environment import RUNS
from headgate.execution.worker.job_loop import JobLoop
from headgate.execution.worker.run_execution import RunHandler
from headgate.kit.database import Database
from tests.execution.worker.support import working
from tests.lakehouse.sql.conftest import Bench, KeptOpen, opened
from tests.support.installation import eventually
from tests.support.spark import SharedSpark

ENDED = {"succeeded", "failed", "cancelled", "blocked", "skipped"}


@dataclass
class PipelineBench(Bench):
    """The workbench, and pipelines."""

    folder: Path

    @contextmanager
    def running(self) -> Iterator[None]:
        """A worker that runs statements and pipelines."""
        spark = KeptOpen(self.spark)
        settings = self.millrace.settings
        with working(self.millrace, self.address, spark) as worker:
            platform = PlatformSpark(settings, self.spark.doorway.catalog_url)
            handler = RunHandler(worker.link, settings, settings.data_dir / RUNS, spark, platform)
            runs = JobLoop(worker.link, [handler], spark.state)
            runs.start()
            try:
                yield
            finally:
                runs.stop()
                platform.close()

    def make(self, member: str, name: str, **definition: Any) -> str:
        """A pipeline that is saved; its id."""
        answer = self.millrace.as_(member).post("/api/pipelines", {"name": name, "definition": definition})
        assert answer.status_code == 200, answer.text
        return self.saved(member, answer.json())

    def saved(self, member: str, answer: dict[str, Any]) -> str:
        """The id of a pipeline, when its save is done."""
        if answer["state"] == "saved":
            return str(answer["id"])
        found = self.done(member, answer["statement"])
        assert found["state"] == "succeeded", found["error"]
        return str(found["saved_query"])

    def start(self, member: str, pipeline: str, **how: Any) -> str:
        answer = self.millrace.as_(member).post(f"/api/pipelines/{pipeline}/runs", how)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["id"])

    def show(self, member: str, run: str) -> dict[str, Any]:
        answer = self.millrace.as_(member).get(f"/api/runs/{run}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def ended(self, member: str, run: str, seconds: float = 240) -> dict[str, Any]:
        """A run when it is over."""
        eventually(lambda: self.show(member, run)["state"] in ENDED, seconds)
        return self.show(member, run)

    def ran(self, member: str, pipeline: str, **how: Any) -> dict[str, Any]:
        """A run that is over."""
        return self.ended(member, self.start(member, pipeline, **how))

    def log(self, member: str, run: str) -> str:
        found = self.millrace.as_(member).get(f"/api/runs/{run}/log").json()
        return "\n".join(line["text"] for line in found["items"])


@pytest.fixture(scope="package")
def pipeline_bench(shared_spark: SharedSpark, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PipelineBench]:
    """The company's pipelines, on SQLite."""
    folder = tmp_path_factory.mktemp("plant")
    places = {"deliveries": {"folders": [str(folder / "out")]}, "outgoing": {"allow": ["127.0.0.1"]}}
    with opened(shared_spark, Database(f"sqlite:///{folder}/headgate.db"), folder, **places) as found:
        one = PipelineBench(found.millrace, found.spark, found.address, folder)
        with one.running():
            yield one
