"""Which ownerships count for more with a higher role, read from the rule tables."""

from headgate.access.atoms import owns
from headgate.access.book import BOOK, RuleBook
from headgate.access.conditions import AllOf, Atom

OWNERSHIPS = ("owner", "technical", "business")


def ownerships_bound_to_roles(book: RuleBook = BOOK) -> dict[str, str]:
    """By kind, the ownership that gives full control to owners of some roles, and less or nothing to the others."""
    return {
        kind: ownership
        for kind in book.tables
        for path in book.granting(kind, "manage_owners")
        for ownership in OWNERSHIPS
        if isinstance(path.condition, AllOf)
        and owns(ownership) in path.condition.parts
        and any(isinstance(part, Atom) and part.name.startswith("role:") for part in path.condition.parts)
    }
