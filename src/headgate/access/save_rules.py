"""What saving a resource needs: its state is judged before, and, where the save changes the definition, after."""

from collections.abc import Collection
from dataclasses import dataclass

from headgate.access.book import BOOK, RuleBook
from headgate.access.decision import DENIED, Decision
from headgate.access.facts import Subject, Thing

ATTRIBUTES = frozenset({"name", "description", "active", "schedule", "published"})
"""What can change without a new definition; owners, sharing and contexts have actions of their own."""

OWN_ACTIONS: dict[tuple[str, str], str] = {
    **{
        (kind, toggle): "configure_sharing"
        for kind in ("storage", "data_mart", "destination")
        for toggle in ("shared_for_use", "shared_for_reporting", "shared_for_maintenance")
    },
    **{
        (kind, field): "manage_owners"
        for kind in ("storage", "data_mart", "destination", "report")
        for field in ("owners", "technical_owners", "business_owners", "contexts")
    },
    ("space", "members"): "manage_members",
    **{(kind, "owner"): "change_owner" for kind in ("space", "project", "task", "connection")},
    ("connection", "space"): "change_space",
}
"""Fields that another action changes: a save that changes one needs that action too."""

FIXED = frozenset(
    {
        ("task", "project"),
        ("pipeline", "project"),
        ("project", "space"),
        ("gateway", "space"),
        ("space", "personal"),
        ("destination", "deleted"),
        ("data_mart", "acts_for"),
        ("report", "acts_for"),
        ("pipeline", "acts_for"),
        ("task", "acts_for"),
    }
)
"""Fields that no save changes."""


@dataclass(frozen=True, slots=True)
class Save:
    """How the save of a kind is judged: the action asked for, what is needed before, and of the state after."""

    asked: str
    before: str
    after: tuple[str, ...] = ()


SAVES = {
    "storage": Save("edit", "edit"),
    "destination": Save("edit", "edit"),
    "data_mart": Save("edit", "edit", ("retarget", "save")),
    "report": Save("edit", "edit", ("retarget",)),
    "pipeline": Save("edit", "edit", ("edit", "save")),
    "task": Save("update", "edit_attributes", ("update",)),
    "connection": Save("edit", "edit", ("edit",)),
    "space": Save("update", "update"),
    "project": Save("update", "update"),
}


def decide_save(
    subject: Subject,
    stored: Thing,
    after: Thing,
    changed: Collection[str],
    given: Collection[str],
    book: RuleBook = BOOK,
) -> Decision:
    """Decide about a save. `given` are the fields it names, `changed` those that differ from what is stored."""
    save = SAVES.get(stored.kind)
    if save is None or any((stored.kind, field) in FIXED for field in changed):
        return DENIED
    before = book.decide(subject, save.before, stored)
    needed = {OWN_ACTIONS[stored.kind, field] for field in changed if (stored.kind, field) in OWN_ACTIONS}
    if not before or not all(book.decide(subject, action, stored) for action in needed):
        return book.decision(stored.kind, save.asked, 0)
    if is_definition(stored.kind, given) and not all(
        book.allows(after.kind, action)(subject, after) for action in save.after
    ):
        return book.decision(stored.kind, save.asked, 0)
    return before


def is_definition(kind: str, given: Collection[str]) -> bool:
    """Whether a save that names these fields saves the definition; one that names none saves it as it is."""
    attributes = {field for field in given if field in ATTRIBUTES or (kind, field) in OWN_ACTIONS}
    return not given or bool(set(given) - attributes)
