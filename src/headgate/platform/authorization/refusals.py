"""The text of a refusal: what is refused, what is missing, and who could grant it. The same in all responses of
Headgate.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from headgate.access.actions import words
from headgate.access.facts import Thing
from headgate.platform.authorization.explanations import PathToAction

NAMELESS = frozenset({"organization", "member"})
"""Kinds without a name in a refusal: there is one organization, and the caller names the member."""


def refusal(action: str, thing: Thing | None, ways: Sequence[PathToAction]) -> str:
    """The sentence for a refused action on a visible resource, with remedies."""
    return ". ".join(value for value in (f"You may not {asked(action, thing)}", missing(ways)) if value)


def asked(action: str, thing: Thing | None) -> str:
    """An action and its target."""
    if thing is None or thing.kind in NAMELESS or not thing.name:
        return words(action, thing.kind if thing else "")
    return words(action, thing.kind, f"{thing.kind.replace('_', ' ')} {thing.name}")


def missing(ways: Sequence[PathToAction]) -> str:
    """What is missing: on the paths that somebody could open, otherwise on all."""
    helped = [way for way in ways if way.how and way.who]
    told = [f"{', '.join(way.missing)} ({either(way.who)} could {way.how})" for way in helped]
    told = told or [", ".join(way.missing) for way in ways]
    return f"Missing: {'; or '.join(told)}" if told else ""


def either(names: Iterable[str]) -> str:
    """Names joined by "or"."""
    results = list(names)
    return " or ".join([", ".join(results[:-1]), results[-1]] if len(results) > 1 else results)


def listed(ways: Sequence[PathToAction]) -> list[dict[str, Any]]:
    """Paths as data for programs."""
    return [{"path": way.path, "missing": list(way.missing), "how": way.how, "who": list(way.who)} for way in ways]
