"""Every kind of job that workers may claim."""

from headgate.platform.connection_checks.job import CONNECTION_CHECKS
from headgate.platform.jobs.kinds import register


def register_all() -> None:
    """Let workers claim jobs of every kind."""
    register(CONNECTION_CHECKS)
