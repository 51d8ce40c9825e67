"""Places for workers to be asked about, and how they are asked."""

from pathlib import Path
from typing import Any

import pytest

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.contracts.external_systems.kinds import parse, stored
from headgate.execution.steps.context import StepFailed
from headgate.execution.worker.connection_checks import answer
from headgate.settings.settings import Settings


def settings(*allowed: str, **more: Any) -> Settings:
    """Settings under which these hosts and networks may be called."""
    return Settings(outgoing={"allow": list(allowed), "timeout_seconds": 3}, **more)


LOCAL = settings("127.0.0.1", "localhost")


def endpoint(kind: str, config: dict[str, Any], **secrets: str) -> Endpoint:
    """A place, as a worker gets it."""
    return Endpoint("con_00000000000000000000", kind, stored(parse(kind, config)), secrets)


def said(place: Endpoint, given: Settings = LOCAL, **question: Any) -> str:
    """What a test says."""
    return str(answer("test", place, question, given, seconds=60)["detail"])


def streams_of(place: Endpoint, given: Settings = LOCAL, **question: Any) -> dict[str, Any]:
    """What is there, by name."""
    found = answer("discover", place, question, given, seconds=60)
    return {one["name"]: one for one in found["streams"]}


def failure_of(
    place: Endpoint, given: Settings = LOCAL, *, operation: str = "test", seconds: float = 60, **question: Any
) -> StepFailed:
    """How it fails; no secret is in what is said of it."""
    with pytest.raises(StepFailed) as found:
        answer(operation, place, question, given, seconds=seconds)
    for secret in place.secrets.values():
        assert secret not in found.value.message
    return found.value


def folders(*allowed: Path) -> Settings:
    """Settings under which these folders may be read."""
    return settings(sources={"folders": [str(one) for one in allowed]})
