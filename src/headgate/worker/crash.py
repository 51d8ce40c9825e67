"""Named points at which a test ends a worker; see headgate.kit.crash."""

from headgate.kit.crash import VARIABLE, crash_point

__all__ = ["VARIABLE", "crash_point"]
