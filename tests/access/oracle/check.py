"""The assertions of a world: checks, lists and who_can."""

from collections.abc import Iterator

from .engine import Oracle
from .names import fold

Entry = dict[str, object]


def check_world(world: dict[str, object]) -> list[str]:
    """Return a message for each assertion of the world that fails."""
    oracle = Oracle(world)
    messages: list[str] = []
    for entry in _entries(world, "checks"):
        messages += _failed_checks(oracle, entry)
    for entry in _entries(world, "lists"):
        member, action, kind = _text(entry, "member"), _text(entry, "action"), _text(entry, "kind")
        messages += _difference(entry, oracle.list(member, action, kind))
    for entry in _entries(world, "who_can"):
        messages += _difference(entry, oracle.who_can(_text(entry, "action"), _text(entry, "resource")))
    return messages


def _entries(world: dict[str, object], key: str) -> list[Entry]:
    """Return the assertions under a key of the world."""
    found = world.get(key)
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _text(entry: Entry, key: str) -> str:
    """Return the text under a key; what is not text names nothing."""
    value = entry.get(key)
    return value if isinstance(value, str) else ""


def _failed_checks(oracle: Oracle, entry: Entry) -> list[str]:
    """Return a message for each action of a check that is answered otherwise."""
    expected = list(_expected(entry))
    if not expected:
        return [f"asserts nothing: {entry}"]
    messages = []
    for action, allowed in expected:
        answer = oracle.decide(
            entry.get("member"),  # type: ignore[arg-type]
            action,
            entry.get("resource"),  # type: ignore[arg-type]
            entry.get("kind"),  # type: ignore[arg-type]
            entry.get("with"),  # type: ignore[arg-type]
            entry.get("token"),  # type: ignore[arg-type]
        )
        if answer is not allowed:
            messages.append(f"{action}: expected {allowed}, got {answer}: {entry}")
    return messages


def _expected(entry: Entry) -> Iterator[tuple[str, bool]]:
    """Yield each action that a check asks, and the answer that it expects."""
    action, allowed = entry.get("action"), entry.get("allowed")
    if isinstance(action, str) and isinstance(allowed, bool):
        yield action, allowed
    for key, answer in (("can", True), ("cannot", False)):
        actions = entry.get(key)
        for one in actions if isinstance(actions, list) else []:
            yield one, answer


def _difference(entry: Entry, answer: set[str]) -> list[str]:
    """Return a message when the names are not those expected."""
    expect = entry.get("expect")
    if not isinstance(expect, list):
        return [f"expects nothing: {entry}"]
    if {fold(str(name)) for name in expect} == {fold(name) for name in answer}:
        return []
    return [f"expected {sorted(map(str, expect))}, got {sorted(answer)}: {entry}"]
