"""Refuses permission checks and visibility queries outside access/: `make lint` runs it.

Outside access/, code asks the rule tables: decide, visible, who can. Code that never reads a role, an owner, a grant, a
membership or a sharing toggle cannot decide by one, however it is written. So this lint reports the read of a fact, not
the comparison: an attribute, key, column or string with the name of a fact, SQL text that names one, a comparison with
a role, the parts of rule tables, and reflection. EXCEPTIONS lists the modules that store, show or change facts, and
which. A fact may stand in a condition there, or key a lookup, only if it is listed for that too.

An import contract in pyproject.toml protects the tables of owners, grants and memberships.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from access_exceptions import ANY, EXCEPTIONS

from headgate.access.actions import LEVELS, PLANS, ROLES, SCOPES, SECURITY_ROLES, SPACE_ROLES

SOURCE = Path(__file__).parents[1] / "src/headgate"
RULE_PACKAGES = ("access", "migrations")
"""Packages that hold the rules, or no code of the product."""
WITHOUT_FACTS = ("cli", "client", "demo", "execution")
"""Packages on the other side of the API: they show what the server answers, and the server decides."""

TABLES = frozenset(
    {
        "former_owners",
        "grants",
        "group_members",
        "member_contexts",
        "member_security_roles",
        "owners",
        "resource_contexts",
        "space_members",
    }
)
COLUMNS = frozenset(
    {
        "author_id",
        "code_allowed_by_id",
        "grantee_id",
        "operator",
        "owner_id",
        "ownership",
        "personal",
        "principal_id",
        "published",
        "role",
        "security_role",
        "shared_for_maintenance",
        "shared_for_use",
        "space_role",
    }
)
FIELDS = frozenset(
    {
        "allows_code",
        "business_owners",
        "entire",
        "for_maintenance",
        "for_use",
        "grantee",
        "last_owner",
        "new_role",
        "security_roles",
        "shared_for_reporting",
        "space_roles",
        "technical_owners",
    }
)
FACTS = TABLES | COLUMNS | FIELDS
ATTRIBUTES = FACTS | {"contexts", "owner"}
"""Words that are facts as attributes. As strings they are also values, or names of pages."""

PARAMETERS = frozenset({"ownership", "role", "security_role", "space_role"})
"""Names of variables that hold a fact wherever it came from."""

VALUES = frozenset({*ROLES, *SECURITY_ROLES, *SPACE_ROLES, *LEVELS, *SCOPES, PLANS[0], "operator"})
VOCABULARY = tuple(f"headgate.access.{module}" for module in ("atoms", "audience_keys", "conditions", "rules"))
FREE = frozenset({"Remedy"})
"""What explains a refusal is no check."""
CONSTANTS = frozenset({"ADMINS"})
"""Constants of headgate.access.actions that exist for decisions alone."""

_SQL = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE|FROM|JOIN|WHERE)\b")
_NAMED = re.compile(rf"\b({'|'.join(sorted(TABLES | COLUMNS | {'audience', 'scope'}))})\b")
_DECLARATIONS = frozenset({"CheckConstraint", "Column", "Field", "Index", "Literal"})
"""Calls and subscripts that declare a name; they read nothing."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A read of a fact, or a decision by one."""

    line: int
    fact: str
    decides: bool = False

    def says(self, name: str) -> str:
        """The fault in a sentence."""
        what = "decides by" if self.decides else "reads"
        return f"{name}:{self.line}: {what} {self.fact}; ask headgate.platform.authorization instead"


def faults(text: str) -> set[Fault]:
    """Every read of a fact in a module, and every decision by one."""
    tree = ast.parse(text)
    declared = _declared(tree)
    nodes = [node for node in ast.walk(tree) if id(node) not in declared]
    reads = {Fault(node.lineno, fact) for node in nodes for fact in _reads(node)}
    aliases = {name for node in nodes for name in _aliases(node)}
    decisions = {
        Fault(part.lineno, fact, decides=True)
        for node in nodes
        for part in _conditions(node)
        for fact in _facts_in(part, aliases)
    }
    return reads | decisions


def _declared(tree: ast.AST) -> set[int]:
    """The nodes that only declare or write a name: docstrings, keys of dict displays, columns and fields."""
    found: set[int] = set()
    for node in ast.walk(tree):
        parts: Iterable[ast.AST | None] = ()
        match node:
            case ast.Dict():
                parts = node.keys
            case ast.Expr(value=ast.Constant()):
                parts = (node.value,)
            case ast.Call() if _called(node) in _DECLARATIONS:
                parts = (*node.args, *node.keywords)
            case ast.Subscript(value=ast.Name(id=name)) if name in _DECLARATIONS:
                parts = (node.slice,)
        found |= {id(inner) for part in parts if part is not None for inner in ast.walk(part)}
    return found


def _called(call: ast.Call) -> str:
    return getattr(call.func, "id", "") or getattr(call.func, "attr", "")


# Reads


def _reads(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Attribute(attr=name, ctx=ast.Load()) if name in ATTRIBUTES:
            yield name
        case ast.MatchClass(kwd_attrs=names):
            yield from ATTRIBUTES.intersection(names)
        case ast.Constant() | ast.JoinedStr() | ast.BinOp():
            yield from _in_text(_text(node))
        case ast.Compare():
            yield from (f"the value {value!r}" for part in (node.left, *node.comparators) for value in _values(part))
        case ast.MatchValue():
            yield from (f"the value {value!r}" for value in _values(node.value))
        case ast.Import() | ast.ImportFrom():
            yield from _imported(node)
        case ast.Attribute() | ast.Call():
            yield from _reflection(node)


def _in_text(text: str) -> Iterator[str]:
    """The facts that a string names: it is the name of one, or SQL."""
    if text in FACTS:
        yield text
    elif _SQL.search(text):
        yield from _NAMED.findall(text)


def _reflection(node: ast.Attribute | ast.Call) -> Iterator[str]:
    match node:
        case ast.Attribute(attr="__dict__" | "__getattribute__") | ast.Call(func=ast.Name(id="vars"), args=[_, *_]):
            yield "fields by reflection"
        case ast.Call(func=ast.Name(id="getattr"), args=[of, name, *_]) if _is_computed(name) and not _is_self(of):
            yield "a field with a computed name"


def _values(part: ast.AST) -> Iterator[str]:
    """The roles and scopes that something is compared with, as strings or as members of an enum."""
    for one in getattr(part, "elts", [part]):
        value = getattr(one, "value", None) if isinstance(one, ast.Constant) else getattr(one, "attr", None)
        if isinstance(value, str) and value in VALUES:
            yield value


def _is_computed(name: ast.AST) -> bool:
    return not isinstance(name, ast.Constant | ast.Name)


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """The parts of rule tables that a statement imports, in whatever form and under whatever name."""
    names = {alias.name for alias in node.names}
    if isinstance(node, ast.Import):
        modules = names
    else:
        modules = {f"{node.module}.{name}" for name in names} if names - FREE else set()
        yield from names & CONSTANTS
    yield from (module for module in modules if module.startswith(VOCABULARY))


def _text(node: ast.AST) -> str:
    """A string, as far as it is written out: f-strings and sums included, with a gap for each value."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_text(part) for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return f"{_text(left)}{_text(right)}"
    return " "


# Decisions


def _conditions(node: ast.AST) -> Iterator[ast.AST]:
    """The expressions on which something depends."""
    match node:
        case ast.If() | ast.IfExp() | ast.While() | ast.Assert():
            yield node.test
        case ast.Compare():
            yield from (node.left, *node.comparators)
        case ast.BoolOp():
            yield from node.values
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.comprehension():
            yield from node.ifs
        case ast.Match():
            yield node.subject
        case ast.match_case(guard=ast.AST() as guard):
            yield guard
        case ast.Subscript(slice=key):
            yield key
        case ast.Call(func=ast.Attribute(attr="get"), args=[key, *_]):
            yield key


def _facts_in(part: ast.AST, aliases: set[str]) -> Iterator[str]:
    for node in ast.walk(part):
        match node:
            case ast.Name(id=name) if name in PARAMETERS | aliases:
                yield name
            case ast.Attribute(attr=name, ctx=ast.Load()) if name in ATTRIBUTES:
                yield name
            case ast.Subscript(slice=ast.Constant(value=str() as name)) if name in FACTS:
                yield name


def _aliases(node: ast.AST) -> Iterator[str]:
    """Names that are bound to a fact."""
    match node:
        case ast.Assign(targets=[*targets], value=value):
            names = [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.NamedExpr() | ast.AnnAssign():
            names, value = [getattr(node.target, "id", "")], node.value
        case _:
            return
    if isinstance(value, ast.Attribute | ast.Subscript) and any(_facts_in(value, set())):
        yield from names


# The tree


def unlisted(name: str, text: str) -> list[Fault]:
    """The faults of a module that no exception allows it."""
    return sorted((fault for fault in faults(text) if not _is_listed(name, fault)), key=lambda fault: fault.line)


def _is_listed(name: str, fault: Fault) -> bool:
    reads, decides, _ = EXCEPTIONS.get(name, ("", "", ""))
    listed = decides if fault.decides else reads
    return listed == ANY or fault.fact in listed.split(", ")


def modules(source: Path = SOURCE) -> dict[str, str]:
    """The text of every module that is looked at, by its path."""
    paths = {str(path.relative_to(source)): path for path in sorted(source.rglob("*.py"))}
    return {
        name: path.read_text()
        for name, path in paths.items()
        if name.split("/")[0] not in RULE_PACKAGES + WITHOUT_FACTS
    }


def idle(texts: dict[str, str]) -> Iterator[str]:
    """What the exceptions allow, and no module does."""
    for name, (reads, decides, _) in EXCEPTIONS.items():
        known = faults(texts.get(name, ""))
        for listed, is_decision in ((reads, False), (decides, True)):
            done = {fault.fact for fault in known if fault.decides == is_decision}
            spare = set(filter(None, listed.split(", "))) - done - ({ANY} if done else set())
            yield from (f"tools/lint_access.py allows {name} what it does not do: {fact}" for fact in sorted(spare))


def main() -> int:
    """Print what is wrong; 1 if anything is."""
    texts = modules()
    messages = [fault.says(name) for name, text in texts.items() for fault in unlisted(name, text)]
    messages += idle(texts)
    for message in messages:
        print(message)
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
