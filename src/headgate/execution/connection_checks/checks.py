"""What every kind of place is asked with, and how its failures are told."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.execution.sources.rest.failures import ApiFailed, hidden
from headgate.execution.steps.context import StepFailed
from headgate.execution.steps.files import matches
from headgate.kit.call_errors import CallRefused, OutgoingError, TooLarge
from headgate.settings.settings import Settings


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """A question about a place."""

    endpoint: Endpoint
    settings: Settings
    deadline: float
    pattern: str = ""
    path: str = ""
    limit: int = 500
    writes: bool = False

    @property
    def config(self) -> dict[str, Any]:
        """Where the place is."""
        return self.endpoint.config

    @property
    def left(self) -> float:
        """The seconds that are left; StepFailed if there are none."""
        seconds = self.deadline - time.monotonic()
        if seconds <= 0:
            raise StepFailed("TIMEOUT", "It took too long to answer; ask for less, by a pattern", passing=True)
        return seconds

    def check_time(self) -> None:
        """StepFailed if the time is over."""
        self.left  # noqa: B018 - it raises

    def secret(self, name: str) -> str:
        """A secret that the place needs; StepFailed if it is not set."""
        response = self.endpoint.secrets.get(name)
        if response is None:
            words = name.replace("_", " ")
            raise StepFailed(
                "MISSING_SECRET", f"The {words} is not set, or was cleared when the place changed; give it"
            )
        return response

    def wants(self, name: str) -> bool:
        """Whether something of this name was asked for."""
        return not self.pattern or matches(self.pattern, name)

    def plain(self, text: str) -> str:
        """A text of the other side, without secrets, in one line and not too long."""
        return " ".join(hidden(text, self.endpoint.secrets.values()).split())[:500]


@dataclass(slots=True)
class Streams:
    """What was found, up to a limit."""

    limit: int
    found: list[dict[str, Any]] = field(default_factory=list)
    truncated: bool = False

    def add(self, name: str, sort: str, **more: Any) -> bool:
        """Add one; False if there is no room for it."""
        if len(self.found) >= self.limit:
            self.truncated = True
            return False
        self.found.append({"name": name, "sort": sort, **more})
        return True


@contextmanager
def outgoing() -> Iterator[None]:
    """Tell what went wrong with a call as a failure of the errand."""
    try:
        yield
    except CallRefused as error:
        raise StepFailed("ADDRESS_REFUSED", f"We do not go there: {error}") from None
    except TooLarge as error:
        raise StepFailed("TOO_LARGE", f"{_sentence(error)}; ask for less, by a pattern") from None
    except OutgoingError as error:
        raise StepFailed(
            "UNREACHABLE", f"{_sentence(error)}; check host and port, and that it runs", passing=True
        ) from None
    except ApiFailed as error:
        raise StepFailed(error.code, error.message, passing=error.passing) from None


def _sentence(error: Exception) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}"
