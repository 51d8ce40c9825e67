"""Facts about what belongs to one member, and about requests for access. Questions describe them by their fields."""

from dataclasses import dataclass
from typing import Any, ClassVar

from headgate.access.facts import Thing


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnThing(Thing):
    """Something that belongs to one member, who is its holder, whatever their role."""

    holder: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Token(OwnThing):
    kind: ClassVar[str] = "token"


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation(OwnThing):
    """An invitation; its holder is the member who invited."""

    kind: ClassVar[str] = "invitation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile(OwnThing):
    kind: ClassVar[str] = "profile"


OWN_PATH = "own"
"""The path by which a holder has what is theirs. By a narrowed token, it is the only one."""

OWN_KINDS: dict[str, type[OwnThing]] = {kind.kind: kind for kind in (Token, Invitation, Profile)}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRequest(Thing):
    """A request for access: what it is about, who made it if they are still a member, and who answered it.

    `could_give` says whether a change that the member at hand may make gives what it asks for.
    """

    kind: ClassVar[str] = "access_request"
    about: Any = None
    asked_by: str | None = None
    answered_by: str | None = None
    could_give: bool = False


DESCRIBED_KINDS = frozenset({*OWN_KINDS, AccessRequest.kind})
"""Kinds that questions describe by their fields: no list and no name stands for one."""
