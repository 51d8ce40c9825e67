"""An independent oracle for the access model of Headgate, for tests only."""

from .check import check_world
from .engine import Oracle

__all__ = ["Oracle", "check_world"]
