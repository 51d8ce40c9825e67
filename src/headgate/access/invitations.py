"""How far an invitation reaches: access model, section 3. Nobody who is not an admin invites beyond their own scope."""

from collections.abc import Iterable
from dataclasses import dataclass

from headgate.access.actions import ADMINS
from headgate.access.book import BOOK, RuleBook
from headgate.access.facts import Organization, Subject


@dataclass(frozen=True, slots=True)
class MemberScope:
    """The scope of a member, and the contexts in which they work if it is selected."""

    entire: bool
    contexts: frozenset[str] = frozenset()

    @property
    def scope(self) -> str:
        """The scope by its word."""
        return "entire" if self.entire else "selected"

    def is_within(self, other: "MemberScope") -> bool:
        """Whether this reaches nothing that the other does not."""
        return other.entire or (not self.entire and self.contexts <= other.contexts)


def reach_of(inviter: Subject) -> MemberScope:
    """The widest that someone can give to an invitee."""
    if inviter.operator or inviter.role in ADMINS:
        return MemberScope(entire=True)
    return MemberScope(entire=inviter.entire, contexts=frozenset() if inviter.entire else inviter.contexts)


def reach_for(inviter: Subject, role: str, scope: str | None, contexts: Iterable[str]) -> MemberScope | None:
    """What an invitee of this role gets: what was asked for, or the inviter's own; None if it is more than that."""
    chosen = frozenset(contexts)
    if role in ADMINS:
        wanted = MemberScope(entire=True)
    elif scope is None and not chosen:
        wanted = reach_of(inviter)
    else:
        wanted = MemberScope(entire=scope == "entire", contexts=chosen)
    return wanted if wanted.is_within(reach_of(inviter)) else None


def may_invite(
    inviter: Subject | None, role: str, reach: MemberScope, organization: Organization, book: RuleBook = BOOK
) -> bool:
    """Whether an invitation stands: its inviter is still a member, and could give the same today."""
    if inviter is None:
        return False
    return bool(book.decide(inviter, f"invite_{role}", organization)) and reach.is_within(reach_of(inviter))


def is_subscribed_on_joining(role: str) -> bool:
    """Whether a new member receives every channel of notifications from the start."""
    return role != "business"
