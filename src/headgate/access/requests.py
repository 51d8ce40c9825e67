"""Which access can be requested: what somebody could give."""

from headgate.access.book import BOOK, RuleBook
from headgate.access.sql import NOBODYS


def can_be_asked_for(action: str, kind: str, book: RuleBook = BOOK) -> bool:
    """Whether access can be given: to the organization, and to kinds of which others may ask who has access."""
    return action not in NOBODYS and (kind == "organization" or "see_access" in book.actions(kind))
