"""Worlds: access cases as files. This reads and checks one; it knows no database.

The result holds names only; every reference has been found to exist, but for what `with` names, and for tables in
`reads`, `writes`, `disabled` and `only`, which need not.
"""

from collections.abc import Callable, Iterator
from typing import Any, cast

from headgate.access.actions import (
    DESCRIPTIONS,
    DRAFT_ACTIONS,
    INVITES,
    LEVELS,
    PLANS,
    ROLES,
    SCOPES,
    SECURITY_ROLES,
    SPACE_ROLES,
)
from headgate.access.own import DESCRIBED_KINDS
from headgate.access.world_fields import FIELDS, GRANT_STATE, ONE_OF, STATE, Field
from headgate.access.world_specs import (
    ALL,
    GROUP,
    Check,
    GrantSpec,
    ListCheck,
    MemberSpec,
    ResourceSpec,
    TokenSpec,
    Unknown,
    WhoCheck,
    World,
)
from headgate.access.yaml_nodes import Node, parse
from headgate.kit.names import BadName, check_name, check_sql_name, name_key


def read_world(text: str, file: str, *, need_assertions: bool = True) -> World:
    """A world from its text, or WorldError."""
    return _Reader(parse(text, file)).read(need_assertions=need_assertions)


class _Reader:
    """Reads one document, in the order in which its parts refer to each other."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self.world = World(root.file)
        self.sections: dict[str, Node] = {}
        self.lenient = False
        self.granted: set[tuple[str, str, str, int]] = set()
        self.names: dict[str, dict[str, str]] = {"context": {}, "group": {name_key(ALL): ALL}, "member": {}}

    def read(self, *, need_assertions: bool) -> World:
        known = (
            "now organization contexts groups members resources grants checks lists who_can".split()  # noqa: SIM905
        )
        for name, node in self.root.items():
            if name not in known:
                node.fail(f"{name!r} is not a part of a world; the parts are {', '.join(known)}")
            self.sections[name] = node
        for name in ("members", "resources"):
            if name not in self.sections:
                self.root.fail(f"a world needs {name!r}")
        if need_assertions and not {"checks", "lists", "who_can"} & set(self.sections):
            self.root.fail("a world needs at least one of checks, lists, who_can")
        self._people()
        self._resources()
        self._assertions()
        return self.world

    def _section(self, name: str) -> Node | None:
        node = self.sections.get(name)
        return None if node is None or node.is_null else node

    def _elements(self, name: str) -> Iterator[Node]:
        node = self._section(name)
        return iter(()) if node is None else node.elements()

    # People

    def _people(self) -> None:
        world = self.world
        if node := self._section("now"):
            world.now = node.instant()
        if node := self._section("organization"):
            values = _fields(node, {"plan": PLANS, "invites": INVITES})
            world.plan = values["plan"].word(PLANS) if "plan" in values else world.plan
            world.invites = values["invites"].word(INVITES) if "invites" in values else world.invites
        if node := self._section("contexts"):
            world.contexts = [self._declare("context", element, element.text()) for element in node.elements()]
        if node := self._section("members"):
            for name, value in node.items():
                self._member(self._declare("member", value, name), value)
        if node := self._section("groups"):
            for name, value in node.items():
                if name_key(name) == name_key(ALL):
                    value.fail("the group All exists by itself: every member is in it")
                group = self._declare("group", value, name)
                world.groups[group] = self._names(value, self._find_member)

    def _declare(self, kind: str, node: Node, name: str) -> str:
        try:
            checked = check_name(name)
        except BadName as error:
            node.fail(str(error))
        known = self.names.setdefault(kind, {})
        if name_key(checked) in known:
            node.fail(f"there is already a {kind} called {known[name_key(checked)]!r}; names differ by more than case")
        known[name_key(checked)] = checked
        return checked

    def _member(self, name: str, node: Node) -> None:
        values = _fields(node, {"role", "scope", "contexts", "security_roles"})
        if "role" not in values:
            node.fail("a member needs a role: owner, admin, technical or business")
        spec = MemberSpec(name, values["role"].word(ROLES))
        if "scope" in values:
            spec.scope = values["scope"].word(SCOPES)
        if "contexts" in values:
            spec.contexts = self._names(values["contexts"], self._find_context)
        if "security_roles" in values:
            spec.security_roles = _unique([e.word(SECURITY_ROLES) for e in values["security_roles"].elements()])
        self.world.members[name] = spec

    def _names(self, node: Node, find: Callable[[Node], str]) -> list[str]:
        return _unique([find(element) for element in node.elements()])

    def _find(self, kind: str, node: Node, name: str) -> str:
        response = self.names.get(kind, {}).get(name_key(name))
        if response is None:
            if self.lenient:
                return cast("str", Unknown(name))
            node.fail(f"there is no {kind} called {name!r} in this world")
        return response

    def _find_member(self, node: Node) -> str:
        return self._find("member", node, node.text())

    def _find_context(self, node: Node) -> str:
        return self._find("context", node, node.text())

    def _find_principal(self, node: Node) -> str:
        text = node.text()
        if text.startswith(GROUP):
            return GROUP + self._find("group", node, text.removeprefix(GROUP).strip())
        return self._find("member", node, text)

    # Resources and grants

    def _resources(self) -> None:
        declared = [self._resource(node) for node in self._elements("resources")]
        for spec, node, values in declared:
            spec.fields = {name: self._value(values[name], FIELDS[spec.kind][name]) for name in values}
            _check_complete(spec, node)
        for node in self._elements("grants"):
            self.world.grants.append(self._grant(node))

    def _resource(self, node: Node) -> tuple[ResourceSpec, Node, dict[str, Node]]:
        values = dict(node.items())
        if "kind" not in values or "name" not in values:
            node.fail("a resource needs a kind and a name")
        kind = values.pop("kind").word(tuple(FIELDS))
        name_node = values.pop("name")
        for field_name, value in values.items():
            if field_name not in FIELDS[kind]:
                known = ", ".join(("kind", "name", *FIELDS[kind]))
                value.fail(f"a {kind} has no {field_name!r}; it has {known}")
        spec = ResourceSpec(kind, self._declare_resource(kind, name_node))
        self.world.resources.append(spec)
        return spec, node, {name: value for name, value in values.items() if not value.is_null}

    def _declare_resource(self, kind: str, node: Node) -> str:
        name = node.text()
        if kind == "layer":
            return self._declare("layer", node, _sql_name(node, name))
        if kind in {"table", "volume"}:
            name = _table_name(node, name)
            other = "volume" if kind == "table" else "table"
            if name_key(name) in self.names.get(other, {}):
                node.fail(f"there is already a {other} called {name!r}; tables and volumes share names")
        return self._declare(kind, node, name)

    def _value(self, node: Node, spec: Field) -> Any:
        readers: dict[str, Callable[[], Any]] = {
            "flag": node.flag,
            "text": node.text,
            "instant": node.instant,
            "word": lambda: node.word(spec.words),
            "member": lambda: self._find_member(node),
            "members": lambda: self._names(node, self._find_member),
            "contexts": lambda: self._names(node, self._find_context),
            "principal": lambda: self._find_principal(node),
            "target": lambda: self._target(node) and node.text(),
            "ref": lambda: self._find(spec.of, node, node.text()),
            "refs": lambda: self._names(node, lambda n: self._find(spec.of, n, n.text())),
            "tables": lambda: self._names(node, table_ref),
            "roles": lambda: {
                self._find_principal_key(name, value): _unique([e.word(SPACE_ROLES) for e in value.elements()])
                for name, value in node.items()
            },
        }
        return readers[spec.holds]()

    def _find_principal_key(self, name: str, node: Node) -> str:
        if name.startswith(GROUP):
            return GROUP + self._find("group", node, name.removeprefix(GROUP).strip())
        return self._find("member", node, name)

    def _grant(self, node: Node) -> GrantSpec:
        values = _fields(node, {"to", "resource", "level", "expires"})
        for name in ("to", "resource", "level"):
            if name not in values:
                node.fail(f"a grant needs {name!r}")
        kind, resource = self._target(values["resource"])
        if kind not in {"layer", "table", "volume"} or resource is None:
            values["resource"].fail("a grant is on a layer, a table or a volume")
        level = LEVELS[values["level"].word(tuple(LEVELS))]
        expires = values["expires"].instant() if "expires" in values else None
        to = self._find_principal(values["to"])
        key = (to, kind, resource, level)
        if key in self.granted:
            node.fail(f"{to} has this level on {kind}:{resource} already; there is one grant for each level")
        self.granted.add(key)
        return GrantSpec(to, kind, resource, level, expires)

    # Assertions

    def _assertions(self) -> None:
        for name, read in (("checks", self._check), ("lists", self._list), ("who_can", self._who)):
            for node in self._elements(name):
                getattr(self.world, name).append(read(node))

    def _target(self, node: Node) -> tuple[str, str | None]:
        text = node.text()
        if text == "organization":
            return "organization", None
        kind, colon, name = text.partition(":")
        if not colon or (kind not in FIELDS and kind != "member"):
            node.fail(f"{text!r} is not a resource; write kind:name, organization, or member:NAME")
        return kind, self._find(kind, node, name.strip())

    def _check(self, node: Node) -> Check:
        values = _fields(node, {"member", "action", "can", "cannot", "resource", "kind", "with", "token", "allowed"})
        actions = _asked(node, values)
        if ("resource" in values) == ("kind" in values):
            node.fail("a check names either a resource, or, to create or add one, a kind")
        kind, name = self._target(values["resource"]) if "resource" in values else (_kind(values["kind"]), None)
        _check_draft(node, values, actions)
        member = self._find_member(values["member"]) if "member" in values else None
        if ("fire" in actions) != (member is None):
            node.fail("a check names a member; only fire leaves it out, and it is asked alone")
        return Check(member, actions, kind, name, self._state(values, kind, actions), self._token(values), node.line)

    def _state(self, result: dict[str, Node], kind: str, actions: dict[str, bool]) -> dict[str, Any] | None:
        if "with" not in result:
            return None
        is_grant = {"grant", "grant_manager"} & set(actions)
        fields = GRANT_STATE if is_grant else STATE.get(kind, {})
        state: dict[str, Any] = {}
        for name, node in result["with"].items():
            if name not in fields:
                node.fail(f"`with` of a {kind} has no {name!r}; it has {', '.join(fields) or 'nothing'}")
            self.lenient = True
            state[name] = None if node.is_null else self._value(node, fields[name])
            self.lenient = False
        return state

    def _token(self, result: dict[str, Node]) -> TokenSpec | None:
        if "token" not in result:
            return None
        given = _fields(result["token"], {"read_only", "only", "expires"})
        return TokenSpec(
            given["read_only"].flag() if "read_only" in given else False,
            self._names(given["only"], table_ref) if "only" in given else None,
            given["expires"].instant() if "expires" in given else None,
        )

    def _list(self, node: Node) -> ListCheck:
        values = _fields(node, {"member", "action", "kind", "expect", "token"})
        for name in ("member", "action", "kind", "expect"):
            if name not in values:
                node.fail(f"a list needs {name!r}")
        kind = _kind(values["kind"])
        stored = "pipeline" if kind == "task" else kind
        expect = self._names(values["expect"], lambda n: self._find(stored, n, n.text()))
        action = _action(values["action"])
        return ListCheck(self._find_member(values["member"]), action, kind, expect, self._token(values), node.line)

    def _who(self, node: Node) -> WhoCheck:
        values = _fields(node, {"action", "resource", "expect"})
        for name in ("action", "resource", "expect"):
            if name not in values:
                node.fail(f"a who_can needs {name!r}")
        kind, resource = self._target(values["resource"])
        expect = self._names(values["expect"], self._find_member)
        return WhoCheck(_action(values["action"]), kind, resource, expect, node.line)


def _fields(node: Node, known: Any) -> dict[str, Node]:
    values = dict(node.items())
    for name, value in values.items():
        if name not in known:
            value.fail(f"{name!r} is not known here; the keys are {', '.join(sorted(known))}")
    return {name: value for name, value in values.items() if not value.is_null}


def _unique(values: list[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _sql_name(node: Node, name: str) -> str:
    try:
        return check_sql_name(name)
    except BadName as error:
        node.fail(str(error))


def _table_name(node: Node, name: str) -> str:
    layer, dot, table = name.partition(".")
    if not dot:
        node.fail(f"{name!r} has no layer; a table or volume is called layer.name")
    return f"{_sql_name(node, layer)}.{_sql_name(node, table)}"


def table_ref(node: Node) -> str:
    """A table, volume or layer by name, whether it exists or not."""
    name = node.text()
    return _table_name(node, name) if "." in name else _sql_name(node, name)


def _check_complete(spec: ResourceSpec, node: Node) -> None:
    for name, wanted in FIELDS[spec.kind].items():
        if wanted.required and name not in spec.fields:
            node.fail(f"a {spec.kind} needs {name!r}")
    one_of = ONE_OF.get(spec.kind)
    if one_of and len(set(one_of) & set(spec.fields)) != 1:
        node.fail(f"a {spec.kind} needs exactly one of {', '.join(one_of)}")


def _kind(node: Node) -> str:
    return node.word((*FIELDS, "task", "member", *sorted(DESCRIBED_KINDS)))


def _action(node: Node) -> str:
    return node.word(tuple(sorted(DESCRIPTIONS)))


def _asked(node: Node, result: dict[str, Node]) -> dict[str, bool]:
    """The actions that a check asks about, with what it expects."""
    if "action" in result:
        if "allowed" not in result:
            node.fail("a check of one action needs 'allowed: true' or 'allowed: false'")
        if "can" in result or "cannot" in result:
            node.fail("a check has either action and allowed, or can and cannot")
        return {_action(result["action"]): result["allowed"].flag()}
    if "allowed" in result:
        node.fail("'allowed' goes with 'action'; can and cannot say it themselves")
    actions = {_action(e): True for e in (result["can"].elements() if "can" in result else ())}
    for element in result["cannot"].elements() if "cannot" in result else ():
        action = _action(element)
        if action in actions:
            element.fail(f"{action!r} is expected both to be allowed and not")
        actions[action] = False
    if not actions:
        node.fail("a check needs action and allowed, or can, or cannot")
    return actions


def _check_draft(node: Node, result: dict[str, Node], actions: dict[str, bool]) -> None:
    if "kind" not in result or set(actions) <= DRAFT_ACTIONS or result["kind"].text() in DESCRIBED_KINDS:
        return
    node.fail("only create and add are asked of a kind; other actions need a resource")
