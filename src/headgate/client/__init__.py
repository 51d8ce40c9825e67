"""The Python client: `from headgate.client import Headgate`."""

from headgate.client.api import Headgate

__all__ = ["Headgate"]
