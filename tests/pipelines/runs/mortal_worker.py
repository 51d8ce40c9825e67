"""A worker in a process of its own, on a Spark that outlives it: `python -m tests.pipelines.runs.mortal_worker PLAN`.

The plan is JSON: server, secret, folder, settings, and the Spark's address. It dies where HEADGATE_CRASH_AT says.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headgate.execution.spark import conf
from headgate.execution.spark.connect import Connection
from headgate.execution.spark.server import Address
from headgate.execution.spark.session import SqlSession
from headgate.execution.worker.run_execution import RunHandler
from headgate.execution.worker.worker import Worker
from headgate.settings.settings import Settings


class Elsewhere:
    """A Spark that another process started."""

    def __init__(self, address: Address) -> None:
        self._connection = Connection.to(address)
        self.isolated = self
        """Runs that a dying worker gave up are begun again here: there is no other Spark."""

    @contextmanager
    def alone(self) -> Iterator["Elsewhere"]:
        yield self

    def ensure(self) -> None:
        """It is up."""

    def state(self) -> dict[str, Any]:
        return {"up": True}

    def open(self, token: str, *, user: str = "", time_zone: str = "UTC", layer: str | None = None) -> SqlSession:
        session = SqlSession(self._connection, 1000)
        session.configure(conf.acting(token, time_zone, user, layer))
        return session

    def close(self) -> None:
        """It goes on."""


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    settings = Settings(**plan["settings"])
    spark = Elsewhere(Address(**plan["spark"]))
    worker = Worker(plan["server"], plan["secret"], spark, slots=1, prewarm=False)
    worker.handle([RunHandler(worker.link, settings, Path(plan["folder"]), spark, spark)])
    worker.run()


if __name__ == "__main__":
    main()
