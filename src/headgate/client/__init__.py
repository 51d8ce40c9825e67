"""The Python client: `from headgate.client import Headgate`."""

from headgate.client.api import Headgate
from headgate.client.errors import HeadgateError, StatementFailed, Unreachable

__all__ = ["Headgate", "HeadgateError", "StatementFailed", "Unreachable"]
