"""Every kind of job that workers may claim."""

from headgate.lakehouse.maintenance.rewrite_job import TABLE_REWRITES
from headgate.lakehouse.saved_queries.service import KIND as SAVED_QUERY
from headgate.lakehouse.saved_queries.service import save_query
from headgate.lakehouse.sql.job import STATEMENTS
from headgate.pipelines.probe import PIPELINE, save_probed
from headgate.pipelines.runs.job import RUNS
from headgate.platform.connection_checks.job import CONNECTION_CHECKS
from headgate.platform.jobs.kinds import register


def register_all() -> None:
    """Let workers claim jobs of every kind."""
    STATEMENTS.savers.update({SAVED_QUERY: save_query, PIPELINE: save_probed})
    register(STATEMENTS, RUNS, CONNECTION_CHECKS, TABLE_REWRITES)
