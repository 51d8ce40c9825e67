"""Every kind of job that workers may claim."""

from headgate.lakehouse.maintenance.rewrite_job import TABLE_REWRITES
from headgate.lakehouse.sql.job import STATEMENTS
from headgate.pipelines.probe import PIPELINE, save_probed
from headgate.pipelines.runs import queue as runs
from headgate.platform.connection_checks.job import CONNECTION_CHECKS
from headgate.platform.jobs.kinds import register
from headgate.platform.jobs.replacement import RELEASES


def register_all() -> None:
    """Let workers claim jobs of every kind."""
    STATEMENTS.savers[PIPELINE] = save_probed
    RELEASES["run"] = runs.release
    register(STATEMENTS, CONNECTION_CHECKS, TABLE_REWRITES)
