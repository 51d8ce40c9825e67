"""The request and results that all connection checks share, and the mapping of network errors to step failures."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.execution.sources.rest.failures import ApiFailed, redact
from headgate.execution.steps.context import StepFailed
from headgate.execution.steps.files import matches
from headgate.kit.call_errors import CallRefused, OutgoingError, TooLarge
from headgate.settings.settings import Settings


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """A connection check: the configuration and secrets of the system, a time limit, and a pattern for discovery."""

    endpoint: Endpoint
    settings: Settings
    deadline: float
    pattern: str = ""
    path: str = ""
    limit: int = 500
    writes: bool = False

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of the connection or destination."""
        return self.endpoint.config

    @property
    def left(self) -> float:
        """The seconds until the timeout; StepFailed if it has passed."""
        seconds = self.deadline - time.monotonic()
        if seconds <= 0:
            raise StepFailed("TIMEOUT", "The connection check timed out; narrow it with a pattern", passing=True)
        return seconds

    def check_time(self) -> None:
        """Raise StepFailed if the timeout has passed."""
        self.left  # noqa: B018 - it raises

    def secret(self, name: str) -> str:
        """A required secret; StepFailed if it is not set."""
        response = self.endpoint.secrets.get(name)
        if response is None:
            words = name.replace("_", " ")
            raise StepFailed(
                "MISSING_SECRET", f"The {words} is not set, or was cleared when the host changed; set it again"
            )
        return response

    def wants(self, name: str) -> bool:
        """Whether a name matches the requested pattern."""
        return not self.pattern or matches(self.pattern, name)

    def plain(self, text: str) -> str:
        """A text from the remote system without secrets, in one line and truncated."""
        return " ".join(redact(text, self.endpoint.secrets.values()).split())[:500]


@dataclass(slots=True)
class Streams:
    """The discovered tables or files, up to a limit."""

    limit: int
    found: list[dict[str, Any]] = field(default_factory=list)
    truncated: bool = False

    def add(self, name: str, sort: str, **more: Any) -> bool:
        """Add an item; False if the limit is reached."""
        if len(self.found) >= self.limit:
            self.truncated = True
            return False
        self.found.append({"name": name, "sort": sort, **more})
        return True


@contextmanager
def outgoing() -> Iterator[None]:
    """Map the errors of an outgoing call to StepFailed."""
    try:
        yield
    except CallRefused as error:
        raise StepFailed("ADDRESS_REFUSED", f"The address is not allowed for outgoing calls: {error}") from None
    except TooLarge as error:
        raise StepFailed("TOO_LARGE", f"{_sentence(error)}; narrow the request with a pattern") from None
    except OutgoingError as error:
        raise StepFailed(
            "UNREACHABLE", f"{_sentence(error)}; check the host and port, and that the service is running", passing=True
        ) from None
    except ApiFailed as error:
        raise StepFailed(error.code, error.message, passing=error.passing) from None


def _sentence(error: Exception) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}"
