"""An external system for a worker, with its secrets."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A connection or destination with its secrets. Never logged."""

    id: str
    kind: str
    config: dict[str, Any]
    secrets: dict[str, str] = field(default_factory=dict, repr=False)
