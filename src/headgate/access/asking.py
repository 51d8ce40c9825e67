"""Which access can be asked for: what somebody could give, and of what others may know."""

from headgate.access.sql import NOBODYS

UNASKABLE = frozenset({"member", "saved_query"})
"""Kinds of which nobody is asked for access: a member is no resource, and a saved query is its author's alone."""


def can_be_asked_for(action: str, kind: str) -> bool:
    """Whether a request for this action on a resource of this kind makes sense."""
    return kind not in UNASKABLE and action not in NOBODYS
