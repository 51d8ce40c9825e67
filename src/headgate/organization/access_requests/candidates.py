"""Candidate changes that might give a member an action on a resource. They are not decided here, but tried later."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, select

from headgate.access.actions import LEVELS, SPACE_ROLES
from headgate.access.book import BOOK
from headgate.access.explain import reasons
from headgate.access.facts import Subject
from headgate.kit.ids import ALL_GROUP, kind_of
from headgate.organization.access.changes import schemas as s
from headgate.organization.contexts.models import context_table
from headgate.organization.groups.models import group_table
from headgate.platform.authorization.facts import Facts

MAX_TARGETS = 16
MAX_NAMED = 4
MAX_CONTEXTS = 5
MAX_GROUPS = 8
MAX_CANDIDATES = 80

ABOUT_RESOURCE, ABOUT_MEMBER, ABOUT_ROLE = range(3)
"""How far a candidate exceeds the request: it concerns the resource, the member's reach, or their role."""

_RELATED = ("data_mart", "parent", "project", "space", "layer", "output_layer")
_LAKE = frozenset({"layer", "table", "volume"})
_SHAREABLE = frozenset({"storage", "data_mart", "destination"})


@dataclass(frozen=True, slots=True)
class Candidate:
    """A change to try. Among candidates of one ladder, the lowest sufficient one is used."""

    change: Any
    sentence: str
    breadth: int = ABOUT_RESOURCE
    ladder: str | None = None
    context: str | None = None
    """A context of the member that the candidate reveals to its reader."""


def candidates(facts: Facts, member: Subject, action: str, thing: Any) -> list[Candidate]:
    """The candidate changes, narrowest first; at most MAX_CANDIDATES."""
    candidates = _Candidates(facts, member)
    targets = _targets(facts, member, action, thing)
    made = [candidate for target in targets for candidate in candidates.on(target)]
    return [*made, *candidates.of_member(targets), *candidates.of_role(thing)][:MAX_CANDIDATES]


def _targets(facts: Facts, member: Subject, action: str, thing: Any) -> list[Any]:
    """The resource, those it depends on, and those named by explanations; lakehouse tables before their layers."""
    values: dict[str, Any] = {}
    pending: list[tuple[Any, tuple[str, ...]]] = [(thing, (action,))]
    while pending and len(values) < MAX_TARGETS:
        value, actions = pending.pop(0)
        if value is None or value.id in values:
            continue
        values[value.id] = value
        pending += [(_stored(facts, other), ()) for other in _lacking(member, value, actions)]
        pending += [(other, BOOK.actions(other.kind)) for other in _above(value)]
        pending += [(_stored(facts, other), ()) for other in _listed(value)]
    return sorted(values.values(), key=lambda entry: entry.kind == "layer")


def _lacking(member: Subject, thing: Any, actions: Iterable[str]) -> list[Any]:
    """The first missing items of the explanations, and the layers of all; a single change cannot fix more."""
    about = [entry for action in actions for reason in reasons(member, action, thing, _all) for entry in reason.about]
    layers = {layer.id: layer for thing in about if (layer := getattr(thing, "layer", None)) is not None}
    return [*about[:MAX_NAMED], *list(layers.values())[:MAX_NAMED]]


def _all(_: Any) -> bool:
    return True


def _above(thing: Any) -> list[Any]:
    return [value for name in _RELATED if (value := getattr(thing, name, None)) is not None]


def _listed(thing: Any) -> list[Any]:
    """The first tables that a resource names, whether missing access or not."""
    return [*getattr(thing, "outputs", ())[:MAX_NAMED], *getattr(thing, "counted", ())[:MAX_NAMED]]


def _stored(facts: Facts, thing: Any) -> Any:
    """The resource with this name, or its layer if the resource does not exist yet."""
    return facts.thing(thing.id) if thing.id else getattr(thing, "layer", None)


class _Candidates:
    """Builds candidate changes for one member."""

    def __init__(self, facts: Facts, member: Subject) -> None:
        self.facts, self.member = facts, member

    def on(self, target: Any) -> Iterator[Candidate]:
        """Changes of one resource for the member."""
        if target.kind in _LAKE:
            yield from self._grants(target)
        if target.kind in _SHAREABLE or target.kind == "report":
            yield from self._owners(target)
        if target.kind in _SHAREABLE:
            yield from self._sharing(target)
            yield from self._contexts(target)
        if target.kind == "space":
            yield from self._space_roles(target)
        if target.kind == "connection":
            change = s.ChangeOwner(resource=target.id, owner=self.member.id)
            sentence = f"Make {self.member.name} the owner of the connection {target.name}, in place of its owner now"
            yield Candidate(change, sentence, ABOUT_MEMBER)

    def _grants(self, target: Any) -> Iterator[Candidate]:
        for level in LEVELS:
            change = s.Grant(to=self.member.id, resource=target.id, level=level)
            sentence = f"Grant {self.member.name} {level.capitalize()} on the {target.kind} {target.name}"
            yield Candidate(change, sentence, ladder=f"grant {target.id}")

    def _owners(self, target: Any) -> Iterator[Candidate]:
        for ownership in ("business", "technical") if target.kind == "data_mart" else ("owner",):
            change = s.AddOwner(resource=target.id, member=self.member.id, ownership=ownership)
            word = "an owner" if ownership == "owner" else f"a {ownership} owner"
            sentence = f"Make {self.member.name} {word} of the {_titled(target)}"
            yield Candidate(change, sentence, ladder=f"owner {target.id}")

    def _sharing(self, target: Any) -> Iterator[Candidate]:
        use = "reporting" if target.kind == "data_mart" else "use"
        for words, toggle in ((use, {"for_use": True}), ("maintenance", {"for_maintenance": True})):
            change = s.Share(resource=target.id, **toggle)
            yield Candidate(change, f"Share the {_titled(target)} for {words}", ladder=f"share {target.id}")

    def _contexts(self, target: Any) -> Iterator[Candidate]:
        wanted = sorted(self.member.contexts - target.contexts)[:MAX_CONTEXTS]
        for context, name in _names(self.facts.connection, context_table, wanted):
            change = s.AttachContext(resource=target.id, context=context)
            sentence = f"Attach the context {name}, in which {self.member.name} works, to the {_titled(target)}"
            yield Candidate(change, sentence, context=context)

    def _space_roles(self, target: Any) -> Iterator[Candidate]:
        for role in SPACE_ROLES:
            change = s.GiveSpaceRole(space=target.id, to=self.member.id, space_role=role)
            words = role.replace("_", " ").capitalize()
            yield Candidate(change, f"Give {self.member.name} the role {words} in the space {target.name}")

    def of_member(self, targets: list[Any]) -> Iterator[Candidate]:
        """Changes of the member's groups and scope."""
        groups = dict.fromkeys(group for target in targets for group in _groups(target) if group != ALL_GROUP)
        for group, name in _names(self.facts.connection, group_table, list(groups)[:MAX_GROUPS]):
            change = s.JoinGroup(group=group, member=self.member.id)
            yield Candidate(change, f"Put {self.member.name} into the group {name}", ABOUT_MEMBER)
        yield from self._scope(targets)

    def _scope(self, targets: list[Any]) -> Iterator[Candidate]:
        theirs = {context for target in targets if target.kind in _SHAREABLE for context in target.contexts}
        wanted = sorted(theirs - self.member.contexts)[:MAX_CONTEXTS]
        for context, name in _names(self.facts.connection, context_table, wanted):
            contexts = [*sorted(self.member.contexts), context]
            change = s.SetScope(member=self.member.id, scope="selected", contexts=contexts)
            yield Candidate(change, f"Let {self.member.name} work in the context {name} too", ABOUT_MEMBER)
        if any(target.kind in _SHAREABLE for target in targets):
            change = s.SetScope(member=self.member.id, scope="entire")
            sentence = f"Let {self.member.name} reach what is shared in every context: the entire scope"
            yield Candidate(change, sentence, ABOUT_ROLE)

    def of_role(self, thing: Any) -> Iterator[Candidate]:
        """Changes of the member's role in the organization."""
        if thing.kind == "organization":
            creator = s.GiveSecurityRole(member=self.member.id, security_role="space_creator")
            yield Candidate(creator, f"Make {self.member.name} a creator of spaces", ABOUT_MEMBER)
        roles = {"technical": "a technical member", "admin": "an admin", "owner": "an owner of the organization"}
        for role, words in roles.items():
            if role != "owner" or thing.kind == "organization":
                change = s.SetRole(member=self.member.id, role=role)
                yield Candidate(change, f"Make {self.member.name} {words}", ABOUT_ROLE, ladder="role")


def _groups(target: Any) -> list[str]:
    """The groups with access to a resource."""
    holders = [grant.grantee for grant in getattr(target, "grants", ())]
    return [value for value in (*holders, *getattr(target, "roles", ())) if kind_of(value) == "group"]


def _titled(target: Any) -> str:
    return f"{target.kind.replace('_', ' ')} {target.name}"


def _names(connection: Connection, table: Table, ids: list[str]) -> list[tuple[str, str]]:
    """These groups or contexts with their names, ordered by name."""
    if not ids:
        return []
    query = select(table.c.id, table.c.name).where(table.c.id.in_(ids)).order_by(table.c.name_key)
    return [(row.id, row.name) for row in connection.execute(query)]
