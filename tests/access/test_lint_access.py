"""The access lint reports every way to decide by a fact outside access/, and no ordinary code."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import lint_access

EVASIONS = {
    "attribute": "def f(member): return member.role == 'admin'",
    "truth of a toggle": "def f(mart, rows): return rows if mart.shared_for_use else []",
    "key of a row": "def f(row): return row['role'] == 'admin'",
    "get of a row": "def f(row): return row.get('role')",
    "column of a Core table": "def f(table, rows): return select(table).where(table.c.role != 'business')",
    "column by key": "def f(table): return select(table).where(table.c['shared_for_use'])",
    "table by name": "def f(metadata, me): return metadata.tables['space_members'].select()",
    "match on the role": "def f(member):\n    match member.role:\n        case 'owner':\n            return 1",
    "match on a parameter": "def f(kind):\n    match kind:\n        case 'technical':\n            return True",
    "match on a class": "def f(member):\n    match member:\n        case Member(role=kind):\n            return kind",
    "match on a mapping": "def f(row):\n    match row:\n        case {'role': kind}:\n            return kind",
    "alias": "def f(member):\n    kind = member.role\n    return kind[0] == 'a'",
    "walrus": "def f(member): return (kind := member.role) and len(kind) < 6",
    "getattr": "def f(member): return getattr(member, 'role')",
    "getattr with a computed name": "def f(member): return getattr(member, 'ro' + 'le') in WANTED",
    "getattr with an f-string": "def f(member): return getattr(member, f'ro{LE}') in WANTED",
    "getattr in a loop": "def f(member): return [getattr(member, name) for name in ('id', 'role')]",
    "attrgetter": "def f(members): return max(members, key=attrgetter('role'))",
    "itemgetter": "def f(rows): return sorted(rows, key=itemgetter('role'))[0]",
    "sorted key": "def f(members): return sorted(members, key=lambda one: RANKS[one.role])[0]",
    "enum under another name": "from headgate.x import Role as Kind\ndef f(kind): return kind is Kind.admin",
    "enum member in a set": "def f(kind): return kind in {Kind.owner, Kind.admin}",
    "dict keyed by role": "def f(role): return {'admin': 1, 'owner': 1}.get(role)",
    "table of roles": "def f(role): return ALLOWED[role]",
    "set of roles": "def f(kind): return kind in ('owner', 'admin')",
    "negated set": "def f(kind): return kind not in {'business'}",
    "helper function": "def is_admin(role): return role in PRIVILEGED",
    "constant of access": "from headgate.access.actions import ADMINS as P\ndef f(kind): return kind in P",
    "set algebra": "def f(member, need): return bool(member.security_roles & need)",
    "owner": "def f(call, space): return space.owner_id == call.caller.member",
    "owner's name": "def f(call, space): return space.owner == call.caller.member",
    "author": "def f(call, query): return query.author_id == call.caller.member",
    "grants": "def f(item, me): return any(grant.grantee == me for grant in item.grants)",
    "context": "def f(member, mart): return bool(member.contexts & mart.contexts)",
    "scope": "def f(member): return member.scope == 'entire'",
    "SQL": "QUERY = \"SELECT id FROM members WHERE role = 'admin'\"",
    "SQL over a fact table": "QUERY = 'SELECT resource_id FROM grants g WHERE g.level > 1'",
    "SQL in an f-string": "def f(m): return f\"SELECT 1 FROM {m} WHERE {m}.role IN ('owner')\"",
    "SQL in pieces": "QUERY = 'SELECT id FROM members' + ' m' + ' WHERE m' + '.role <> :x'",
    "SQL with the column elsewhere": "QUERY = 'SELECT id FROM members WHERE {c} = :x'.format(c='role')",
    "vars": "def f(member): return list(vars(member).values())[1] == WANTED",
    "__dict__": "def f(member): return member.__dict__[KEY]",
    "parts of rule tables": "from headgate.access.rules import marts",
    "rule tables under another name": "import headgate.access.atoms as a",
    "rule tables from the package": "from headgate.access import conditions as c",
}

LEGITIMATE = {
    "asks the rule tables": "def f(call): return call.decide('see', 'table', 'tbl_1').allowed",
    "writes a fact": "def f(c, id): c.execute(insert(table).values(id=id, role='business', owner_id=id))",
    "writes a fact by key": "def f(id): return {'id': id, 'role': 'business', 'owner_id': id}",
    "declares a column": "t = Table('members', M, Column('role', Word), CheckConstraint(\"role IN ('a', 'b')\"))",
    "declares a field": "class Out:\n    role: str = Field(examples=['technical'])",
    "declares a type": "Scope = Literal['entire', 'selected']",
    "a docstring": "def f():\n    'SELECT whom you like WHERE the role allows it'",
    "another scope": "def f(request): return request.scope['path']",
    "another level": "def f(settings, log): log.setLevel(settings.level)",
    "other values": "def f(run): return run.state in {'queued', 'running'}",
    "compares members": "def f(call, row): return row.member_id == call.caller.member",
    "its own methods": "def f(self, kind): return getattr(self, f'_{kind}')()",
    "SQL without facts": "QUERY = 'SELECT id FROM runs WHERE state = :state'",
    "imports the book": "from headgate.access.book import BOOK",
    "imports a remedy": "from headgate.access.rules import Remedy",
}


@pytest.mark.parametrize("text", EVASIONS.values(), ids=EVASIONS)
def test_every_way_to_decide_by_a_fact_is_reported(text: str) -> None:
    assert lint_access.unlisted("marts/some/service.py", text)


@pytest.mark.parametrize("text", LEGITIMATE.values(), ids=LEGITIMATE)
def test_ordinary_code_is_not_reported(text: str) -> None:
    assert lint_access.unlisted("marts/some/service.py", text) == []


def test_a_module_that_shows_a_fact_may_not_decide_by_it() -> None:
    shows = "organization/members/endpoints.py"
    assert lint_access.unlisted(shows, "def f(row): return {'role': row['role']}") == []
    for decides in ("row['role'] in KNOWN", "1 if row['role'] else 2", "RANKS[row['role']]", "not row['role']"):
        assert lint_access.unlisted(shows, f"def f(row): return {decides}"), decides
    assert lint_access.unlisted(shows, "def f(row):\n    kind = row['role']\n    if kind:\n        return 1")


def test_the_exceptions_allow_nothing_that_no_module_does() -> None:
    assert list(lint_access.idle(lint_access.modules())) == []


def test_an_exception_that_nothing_needs_is_reported() -> None:
    assert any("organization/members/endpoints.py" in said for said in lint_access.idle({}))


def test_every_exception_has_a_reason() -> None:
    assert all(len(reason.split()) >= 3 for _, _, reason in lint_access.EXCEPTIONS.values())


def test_the_tree_is_clean() -> None:
    assert lint_access.main() == 0
