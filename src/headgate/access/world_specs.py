"""What a world holds, once it has been read: names only, no ids."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

ALL = "All"
GROUP = "group:"


@dataclass(frozen=True, slots=True)
class Unknown:
    """A name in a `with` that nothing in the world has: asking for it is denied, like asking for what is hidden."""

    name: str


@dataclass(slots=True)
class MemberSpec:
    """A member of a world."""

    name: str
    role: str
    scope: str = "entire"
    contexts: list[str] = field(default_factory=list)
    security_roles: list[str] = field(default_factory=list)


@dataclass(slots=True)
class ResourceSpec:
    """A resource of a world; fields hold names."""

    kind: str
    name: str
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class GrantSpec:
    """A grant; `to` is a member's name or group:NAME."""

    to: str
    kind: str
    name: str
    level: int
    expires: datetime | None = None


@dataclass(slots=True)
class TokenSpec:
    """How a token is narrowed."""

    read_only: bool = False
    only: list[str] | None = None
    expires: datetime | None = None


@dataclass(slots=True)
class Check:
    """What one member can or cannot do."""

    member: str | None
    actions: dict[str, bool]
    kind: str
    name: str | None
    state: dict[str, Any] | None
    token: TokenSpec | None
    line: int


@dataclass(slots=True)
class ListCheck:
    """Which resources of a kind a member has an action on."""

    member: str
    action: str
    kind: str
    expect: list[str]
    token: TokenSpec | None
    line: int


@dataclass(slots=True)
class WhoCheck:
    """Who has an action on a resource."""

    action: str
    kind: str
    name: str | None
    expect: list[str]
    line: int


@dataclass(slots=True)
class World:
    """An organization, and assertions about it."""

    file: str
    now: datetime | None = None
    plan: str = "growth"
    invites: str = "by-role"
    contexts: list[str] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)
    members: dict[str, MemberSpec] = field(default_factory=dict)
    resources: list[ResourceSpec] = field(default_factory=list)
    grants: list[GrantSpec] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    lists: list[ListCheck] = field(default_factory=list)
    who_can: list[WhoCheck] = field(default_factory=list)
