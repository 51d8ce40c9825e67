"""Why a Manager may not make one grant though they may make others: access model, section 4."""

from datetime import UTC, datetime

from headgate.access.atoms import BELOW_MANAGER, NOT_TO_SELF, ends_with_own
from headgate.access.book import BOOK, RuleBook
from headgate.access.facts import GrantDraft, Item, Layer, Subject

MANAGER = 3


def why_not(maker: Subject, draft: GrantDraft, book: RuleBook = BOOK) -> tuple[str, ...]:
    """What is wrong with a grant that its maker would make by their own Manager grant; nothing if they have none."""
    if not book.decide(maker, "grant", draft.resource):
        return ()
    reasons = {
        NOT_TO_SELF: "a Manager grants to others, not to themselves",
        BELOW_MANAGER: "a Manager grants Viewer and Editor; Manager is granted by admins",
        ends_with_own(MANAGER): _end(own_end(maker, draft.resource)),
    }
    return tuple(text for atom, text in reasons.items() if not atom.check(book, draft.kind)(maker, draft))


def own_end(maker: Subject, resource: Layer | Item) -> datetime | None:
    """When the last of the Manager grants ends by which someone grants on a resource; None if one never does."""
    ends = [value.expires for value in resource.reach if value.level >= MANAGER and value.grantee in maker.keys]
    known = [end for end in ends if end is not None]
    return max(known) if known and len(known) == len(ends) else None


def _end(own: datetime | None) -> str:
    until = f" at {own.astimezone(UTC).isoformat().replace('+00:00', 'Z')}" if own else ""
    return f"your own Manager grant ends{until}, and no grant by it ends later; give `expires`, not after that"
