"""A world, as the world format describes it, loaded into plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from .names import demanded_names, fold, instant, names, optional_name, words

ROLES = ("owner", "admin", "technical", "business")
LEVELS = {"viewer": 1, "editor": 2, "manager": 3}
GROUP_PREFIX = "group:"
ALL_GROUP = "all"


@dataclass(frozen=True)
class Member:
    """A member with one role, a scope, contexts and security roles."""

    name: str
    title: str
    role: str
    entire_scope: bool
    contexts: frozenset[str]
    security_roles: frozenset[str]

    @property
    def is_admin(self) -> bool:
        """Tell whether the member counts as admin, as owners do (section 1)."""
        return self.role in ("owner", "admin")


@dataclass(frozen=True)
class Resource:
    """A resource of a world, its fields as written there."""

    kind: str
    name: str
    title: str
    fields: Mapping[str, object] = field(default_factory=dict)

    def ref(self, key: str) -> str | None:
        """Return the folded name that a field refers to, or None when the field is left out."""
        return optional_name(self.fields.get(key))

    def people(self, key: str) -> tuple[str, ...]:
        """Return the folded names in a field that adds rights, such as owners or contexts."""
        return names(self.fields.get(key))

    def demands(self, key: str) -> tuple[str, ...]:
        """Return the folded names in a field that asks for rights, such as reads or connections."""
        return demanded_names(self.fields.get(key))

    def is_on(self, key: str) -> bool:
        """Tell whether a toggle that adds rights is on."""
        return self.fields.get(key) is True

    def is_marked(self, key: str) -> bool:
        """Tell whether a mark that takes rights away (deleted, personal) is set, or malformed."""
        return self.fields.get(key) not in (None, False)

    def after(self, change: Mapping[str, object]) -> "Resource":
        """Return the resource with the fields of the state after laid over its own."""
        return Resource(self.kind, self.name, self.title, {**self.fields, **change})


@dataclass(frozen=True)
class Grant:
    """A lakehouse grant to a member or to a group (one of the two is None)."""

    to_member: str | None
    to_group: str | None
    kind: str
    name: str
    level: int
    ends: datetime | None


class World:
    """The facts that every decision reads."""

    def __init__(self, source: Mapping[str, object]) -> None:
        organization = _mapping(source.get("organization"))
        self._now = source.get("now")
        self.plan = organization.get("plan")
        self.invites = organization.get("invites", "by-role")
        self.members = _load_members(_mapping(source.get("members")))
        self.groups = _load_groups(_mapping(source.get("groups")), frozenset(self.members))
        self.resources = _load_resources(source.get("resources"))
        self.grants = _load_grants(source.get("grants"))

    @property
    def starter(self) -> bool:
        """Tell whether the plan is Starter; every other or missing plan enforces grants."""
        return self.plan == "starter"

    def now(self) -> datetime:
        """Return the world's clock, or the current time when it has none."""
        if self._now is None:
            return datetime.now(UTC)
        try:
            return instant(self._now)
        except ValueError:
            return datetime.max.replace(tzinfo=UTC)  # malformed: everything that ends has ended

    def has_ended(self, end: datetime | None) -> bool:
        """Tell whether an end has come; its own instant is already past it."""
        return end is not None and self.now() >= end

    def member(self, name: str | None) -> Member | None:
        """Return the member of that name, or None when there is none."""
        return None if name is None else self.members.get(name)

    def find(self, kind: str, name: str | None) -> Resource | None:
        """Return the resource of that kind and name, or None when there is none."""
        return None if name is None else self.resources.get((kind, name))

    def in_group(self, member: Member, group: str) -> bool:
        """Tell whether a member belongs to a group; everyone belongs to All."""
        return member.name in self.groups.get(group, frozenset())


def _mapping(value: object) -> Mapping[str, object]:
    """Return the value when it is a mapping with text keys, else what of it is."""
    if not isinstance(value, Mapping):
        return {}
    return {key: item for key, item in value.items() if isinstance(key, str)}


def _load_members(source: Mapping[str, object]) -> dict[str, Member]:
    """Load the members that have a role; a member without a valid one does not exist."""
    members: dict[str, Member] = {}
    for title, entry in source.items():
        facts = _mapping(entry)
        role = facts.get("role")
        if not isinstance(role, str) or role not in ROLES:
            continue
        members[fold(title)] = Member(
            name=fold(title),
            title=title,
            role=role,
            entire_scope=facts.get("scope", "entire") == "entire",
            contexts=frozenset(names(facts.get("contexts"))),
            security_roles=words(facts.get("security_roles")),
        )
    return members


def _load_groups(source: Mapping[str, object], everyone: frozenset[str]) -> dict[str, frozenset[str]]:
    """Load the groups, and All, which holds everyone whatever a world says."""
    groups = {fold(title): frozenset(names(entry)) & everyone for title, entry in source.items()}
    groups[ALL_GROUP] = everyone
    return groups


def _load_resources(source: object) -> dict[tuple[str, str], Resource]:
    """Load the resources that have a kind and a name."""
    resources: dict[tuple[str, str], Resource] = {}
    for entry in source if isinstance(source, list) else []:
        fields = _mapping(entry)
        kind, title = fields.get("kind"), fields.get("name")
        if not isinstance(kind, str) or not isinstance(title, str):
            continue
        if _misnamed(kind, title):
            continue
        resources[(kind, fold(title))] = Resource(kind, fold(title), title, fields)
    return resources


def _misnamed(kind: str, title: str) -> bool:
    """Tell whether a layer has a dot in its name, or a table or volume has none."""
    if kind == "layer":
        return "." in title
    if kind in ("table", "volume"):
        return "." not in title
    return False


def _load_grants(source: object) -> list[Grant]:
    """Load the well-formed grants; a malformed one grants nothing."""
    loaded = [_load_grant(_mapping(entry)) for entry in (source if isinstance(source, list) else [])]
    return [grant for grant in loaded if grant is not None]


def _load_grant(entry: Mapping[str, object]) -> Grant | None:
    """Load one grant, or None when any part of it is malformed."""
    to, resource, level = entry.get("to"), entry.get("resource"), entry.get("level")
    if not isinstance(to, str) or not isinstance(resource, str) or not isinstance(level, str):
        return None
    if level not in LEVELS or ":" not in resource:
        return None
    try:
        ends = None if entry.get("expires") is None else instant(entry.get("expires"))
    except ValueError:
        return None
    kind, name = resource.split(":", 1)
    grantee = fold(to)
    if grantee.startswith(GROUP_PREFIX):
        return Grant(None, grantee.removeprefix(GROUP_PREFIX), kind, fold(name), LEVELS[level], ends)
    return Grant(grantee, None, kind, fold(name), LEVELS[level], ends)
