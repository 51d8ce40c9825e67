"""Refuses permission checks and visibility queries outside access/: `make lint` runs it.

Outside access/, code asks the book (decide, visible, who can) and never looks at roles, owners, toggles, levels or
grants to draw a conclusion of its own. Files that move those facts, without concluding anything, are named here.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src/headgate"

FACTS = {
    "role",
    "security_roles",
    "entire",
    "groups",
    "owners",
    "technical_owners",
    "business_owners",
    "shared_for_use",
    "shared_for_maintenance",
    "published",
    "personal",
    "grants",
    "level",
    "operator",
}
TABLES = re.compile(
    r"\b(FROM|JOIN)\s+(grants|owners|space_members|member_contexts|resource_contexts|member_security_roles|"
    r"group_members|audience)\b",
    re.IGNORECASE,
)
VOCABULARY = (
    "headgate.access.atoms",
    "headgate.access.conditions",
    "headgate.access.rules",
    "headgate.access.meetings",
)

MAY_IMPORT = {"Remedy"}
"""What explains a refusal is no check."""

MAY_READ_TABLES = {
    "platform/authorization/facts.py": "loads facts for decisions in memory",
    "worlds/exporter.py": "writes all facts out as a world",
    "organization/access/changes/reach.py": "finds whom a change may concern; decides nothing",
    "organization/access/changes/removal.py": "ends what a removed member holds",
    "organization/members/holdings.py": "lists what a removal leaves without an owner; decides nothing",
    "organization/members/repository.py": "shows members with their contexts, groups and security roles",
    "platform/authorization/list_index.py": "fills the index from statements that access/ writes",
    "platform/authorization/repository.py": "reads the index by keys that access/ gives",
}
MAY_COMPARE = {
    "organization/access/changes/plans.py": "what a change does to the rows, after the book has decided",
    "organization/invitations/service.py": "an installation without an owner gets one; nobody is asked",
    "platform/authorization/facts.py": "loads facts for decisions in memory",
    "worlds/loader.py": "writes a world's facts",
    "organization/access/what_if.py": "no conclusion is drawn",
    "platform/http/call.py": "the operator of the machine is no member, and has a path of their own in the book",
    "platform/http/guards.py": "the operator of the machine is no member",
    "organization/access/service.py": "the operator of the machine is no member",
    "organization/access/authzen.py": "the operator of the machine is no member",
    "organization/access/endpoints.py": "the operator of the machine is no member",
    "organization/access/changes/targets.py": "the operator of the machine is no member",
}


def faults(path: Path) -> Iterator[str]:
    """What a file does that only access/ may do."""
    name = str(path.relative_to(SOURCE))
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.ImportFrom) and _forbidden(node):
            yield f"{name}:{line}: imports {node.module}; ask headgate.access.book instead"
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and name not in MAY_READ_TABLES:
            found = TABLES.search(node.value)
            if found:
                yield f"{name}:{line}: reads the table {found[2]}; ask headgate.access instead"
        if isinstance(node, ast.Compare | ast.If | ast.IfExp | ast.BoolOp) and name not in MAY_COMPARE:
            for fact in _facts(node):
                yield f"{name}:{line}: draws a conclusion from .{fact}; ask headgate.access instead"


def _forbidden(node: ast.ImportFrom) -> bool:
    return (node.module or "").startswith(VOCABULARY) and bool({alias.name for alias in node.names} - MAY_IMPORT)


def _facts(node: ast.AST) -> Iterator[str]:
    parts: list[ast.AST]
    match node:
        case ast.Compare():
            parts = [node.left, *node.comparators]
        case ast.If() | ast.IfExp():
            parts = [node.test]
        case ast.BoolOp():
            parts = list(node.values)
        case _:
            parts = []
    for part in parts:
        if isinstance(part, ast.Attribute) and part.attr in FACTS:
            yield part.attr


def main() -> int:
    """Print what is wrong; 1 if anything is."""
    files = [path for path in sorted(SOURCE.rglob("*.py")) if not path.is_relative_to(SOURCE / "access")]
    found = [fault for path in files if "migrations" not in path.parts for fault in faults(path)]
    for fault in found:
        print(fault)
    for name in (*MAY_READ_TABLES, *MAY_COMPARE):
        if not (SOURCE / name).exists():
            found.append(name)
            print(f"tools/lint_access.py names {name}, which does not exist")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
