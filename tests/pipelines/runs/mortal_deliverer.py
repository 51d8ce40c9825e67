"""A worker in a process of its own, with both Sparks outside of it: `python -m tests.pipelines.runs.mortal_deliverer PLAN`.

The plan is JSON: server, secret, catalog, folder, settings, and the address of members' Spark; the platform's is in the
settings. It dies where HEADGATE_CRASH_AT says.
"""

import json
import sys
from pathlib import Path

from headgate.execution.spark.platform import PlatformSpark
from headgate.execution.spark.server import Address
from headgate.execution.worker.run_execution import RunHandler
from headgate.execution.worker.worker import Worker
from headgate.settings.settings import Settings
from tests.pipelines.runs.mortal_worker import Elsewhere


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    settings = Settings(**plan["settings"])
    spark = Elsewhere(Address(**plan["spark"]))
    worker = Worker(plan["server"], plan["secret"], spark, slots=1, prewarm=False)
    platform = PlatformSpark(settings, plan["catalog"])
    worker.handle([RunHandler(worker.link, settings, Path(plan["folder"]), spark, platform)])
    worker.run()


if __name__ == "__main__":
    main()
