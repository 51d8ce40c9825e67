"""The records that the client returns: the fields of the API that programs use most. Other fields are dropped."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Named:
    """A member, group or context by id and name."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Me:
    """The member whose token the client has. `allowed`: their actions on the organization."""

    id: str
    name: str
    role: str
    scope: str
    token: str | None
    read_only: bool
    allowed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource. `allowed`: the member's actions on it; `via`: the paths that grant them."""

    id: str
    kind: str
    name: str
    created_at: datetime
    updated_at: datetime
    created_by: Named | None
    allowed: tuple[str, ...]
    via: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PathToAction:
    """A way to get an action: what is missing, how to change that, and who can."""

    path: str
    missing: tuple[str, ...]
    how: str | None
    who: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A decision of the access model, and the reasons."""

    member: str
    action: str
    resource: str | None
    allowed: bool
    via: tuple[str, ...]
    because: tuple[str, ...]
    ways: tuple[PathToAction, ...]


@dataclass(frozen=True, slots=True)
class ResourceActions:
    """A resource, and the actions that a member has on it."""

    id: str
    kind: str
    name: str
    actions: tuple[str, ...]
    via: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Effect:
    """The actions that a member would gain and lose on a resource."""

    member: str
    kind: str
    id: str
    name: str
    gains: tuple[str, ...]
    loses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Effects:
    """What a change would do: the first effects, and how many there are in all."""

    items: tuple[Effect, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Change:
    """A change of access that was made: the action that it needed, and the paths that granted it."""

    action: str
    via: list[str]
    before: dict[str, object]
    after: dict[str, object]


@dataclass(frozen=True, slots=True)
class Member:
    """A member. Fields that the caller may not see are None."""

    id: str
    name: str
    email: str | None
    role: str | None
    scope: str | None
    contexts: tuple[Named, ...] | None
    groups: tuple[Named, ...] | None
    status: str | None
    created_at: datetime | None
    last_seen_at: datetime | None


@dataclass(frozen=True, slots=True)
class Invitation:
    """An invitation. `link` is set if the server sends no mail."""

    id: str
    email: str
    role: str
    scope: str
    state: str
    created_at: datetime
    expires_at: datetime
    link: str | None


@dataclass(frozen=True, slots=True)
class Token:
    """A new token with its secret."""

    id: str
    token: str


@dataclass(frozen=True, slots=True)
class File:
    """A file of a volume."""

    id: str
    path: str
    size: int
    sha256: str
    media_type: str
    created_at: datetime
    created_by: Named | None
