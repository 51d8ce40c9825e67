"""Every kind of job that workers may claim."""

from headgate.lakehouse.maintenance.rewrite_job import TABLE_REWRITES
from headgate.platform.connection_checks.job import CONNECTION_CHECKS
from headgate.platform.jobs.kinds import register


def register_all() -> None:
    """Let workers claim jobs of every kind."""
    register(CONNECTION_CHECKS, TABLE_REWRITES)
