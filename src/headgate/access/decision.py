"""The answer to an access question."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether an action is allowed; by which paths; and, if not, which paths would grant it."""

    allowed: bool
    via: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.allowed


DENIED = Decision(allowed=False)
