"""The rule tables as SQL over a member's row `m` and a resource's row `r`. The text is the same on both databases."""

from dataclasses import dataclass
from functools import cache

from headgate.access.actions import DRAFT_ACTIONS
from headgate.access.book import BOOK, RuleBook
from headgate.access.conditions import book_sql
from headgate.access.kinds import KINDS

NOBODYS = frozenset({"fire"})
"""Actions that no member does: they are decided in memory, for those whom the resource names."""

ACTIVE = "m.removed_at IS NULL"


def condition(action: str, kind: str, book: RuleBook = BOOK) -> str:
    """SQL that holds where member `m` has the action on resource `r` of this kind; FALSE for an unknown action."""
    if action not in book.actions(kind) or action in NOBODYS:
        return "FALSE"
    return book_sql(book.at(kind), action)


def mask(kind: str, book: RuleBook = BOOK, actions: frozenset[str] | None = None) -> str:
    """SQL for the paths that are open to `m` on `r`, as bits in the order of the table.

    Only the paths that grant one of `actions` are looked at, if given.
    """
    rules = book.tables[kind]
    wanted = (actions or frozenset(rules.actions)) - DRAFT_ACTIONS - NOBODYS - rules.internal
    terms = [
        f"CASE WHEN {path.condition.sql(book.at(kind))} THEN {1 << bit} ELSE 0 END"
        for bit, path in enumerate(rules.paths)
        if not wanted.isdisjoint(path.grants)
    ]
    return "(" + " + ".join(terms) + ")" if terms else "0"


def rows(kind: str) -> str:
    """What follows FROM when every active member meets every resource of a kind."""
    return f"{KINDS[kind].table} r CROSS JOIN members m"


def where(kind: str) -> str:
    """Which of those rows are of this kind, with active members."""
    return f"{ACTIVE} AND {KINDS[kind].where.format(t='r')}"


@dataclass(frozen=True, slots=True)
class Decider:
    """A statement that gives the open paths for `:member` and `:id`."""

    kind: str
    text: str


@cache
def decider(kind: str, action: str | None = None) -> Decider:
    """The statement that decides one action, or all, on one resource."""
    bits = mask(kind, BOOK, frozenset({action}) if action else None)
    text = f"SELECT {bits} FROM {rows(kind)} WHERE m.id = :member AND r.id = :id AND {where(kind)}"
    return Decider(kind, text)
