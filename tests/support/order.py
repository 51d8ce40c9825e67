"""The order of Spark's tests in two processes, which begin at the two ends of a list and meet in its middle.

So they end together, however long each file takes, and each has its own kind of Spark, which is warm after its first
tests: at the front the platform's, at the back that of members. What needs neither, or is short, is in the middle.
"""

from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

FRONT = (
    "pipelines/runs/test_kills.py",
    "execution/sources/test_databases.py",
    "execution/sources/test_csv.py",
    "execution/sources/test_typed.py",
    "execution/sources/test_writing.py",
    "execution/sources/test_json.py",
    "execution/sources/test_tls.py",
    "execution/worker/test_landing_outside.py",
    "execution/deliveries/test_tables_on_spark.py",
    "execution/worker/test_save_staged.py",
    "execution/spark/test_rest_source.py",
    "execution/worker/test_processes.py",
    "lakehouse/catalog/test_stock_clients.py",
    "lakehouse/catalog/test_spark_statements.py",
    "execution/spark/test_platform.py",
    "lakehouse/maintenance/test_on_spark.py",
)
BACK = (
    "demo/test_demo.py",
    "pipelines/runs/test_survival.py",
    "pipelines/runs/test_deliveries.py",
    "pipelines/runs/test_chain_on_spark.py",
    "pipelines/runs/test_on_spark.py",
    "execution/steps/test_history.py",
    "execution/steps/test_refine.py",
    "execution/steps/test_check.py",
    "security/test_revocation.py",
    "security/test_statements.py",
    "security/test_smuggling.py",
    "security/test_oracles.py",
    "security/test_work_tokens.py",
    "security/test_socket.py",
    "lakehouse/sql/test_on_spark.py",
    "lakehouse/sql/test_on_spark_and_postgres.py",
    "execution/spark/test_member.py",
    "execution/spark/test_failures.py",
    "execution/spark/test_sessions.py",
    "execution/spark/test_lifecycle.py",
    "security/test_notebook_escapes.py",
)
"""Files in the order in which the process at that end comes to them."""

_ROOT = Path(__file__).parents[1]
_PLACES = {_ROOT / name: place - len(FRONT) for place, name in enumerate(FRONT)}
_PLACES |= {_ROOT / name: len(BACK) - place for place, name in enumerate(BACK)}


def arrange(items: list[pytest.Item]) -> None:
    """Put the files of the front first and those of the back last; leave all else as it is."""
    items.sort(key=lambda item: _PLACES.get(item.path, 0))


class FromBothEnds(LoadFileScheduling):
    """Gives whole files to processes: to every other one from the end of the list."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _assign_work_unit(self, node: WorkerController) -> None:
        if self.nodes.index(node) % 2:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)
