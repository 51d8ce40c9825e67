"""What was written by another between our look and our write is answered as a conflict, not as a fault.

Headgate's own writes are serializable and repeated; these stand for a program that writes to the database beside it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text

from headgate.kit.database import Database
from tests.organization.profile.support import changes
from tests.support.company import Company, company

pytestmark = pytest.mark.postgres


@pytest.fixture
def millrace(postgres_database: Database, tmp_path: Path) -> Iterator[Company]:
    with company(postgres_database, tmp_path) as found:
        yield found


@contextmanager
def just_before(millrace: Company, beginning: str, *statements: str) -> Iterator[None]:
    """Have another connection commit these just before a statement that begins like this is sent."""
    pending = list(statements)

    def meet(connection: Any, _: Any, statement: str, *__: Any) -> None:
        if statement.startswith(beginning) and pending:
            with millrace.database.engine.connect() as other, other.begin():
                while pending:
                    other.execute(text(pending.pop(0)))

    event.listen(millrace.database.engine, "before_cursor_execute", meet)
    try:
        yield
    finally:
        event.remove(millrace.database.engine, "before_cursor_execute", meet)
    assert not pending, "the moment never came"


def test_a_group_that_another_made_just_now(millrace: Company) -> None:
    before, other = changes(millrace), "grp_00000000000000000001"
    statements = (
        f"INSERT INTO principals (id) VALUES ('{other}')",
        f"INSERT INTO groups (id, name, name_key, created_at) VALUES ('{other}', 'Crew', 'crew', now())",
    )
    adam = millrace.as_("Adam")
    with just_before(millrace, "INSERT INTO groups", *statements):
        answer = adam.post("/api/groups", {"name": "CREW"})
    assert (answer.status_code, "already" in answer.json()["detail"]) == (409, True)
    assert millrace.rows("SELECT COUNT(*) FROM groups") == [(4,)]
    assert millrace.rows("SELECT COUNT(*) FROM principals") == [(12,)]
    assert changes(millrace) == before


def test_a_context_that_another_attached_just_now(millrace: Company) -> None:
    adam = millrace.as_("Adam")
    context = adam.post("/api/contexts", {"name": "north"}).json()["id"]
    before, mart = changes(millrace), millrace.id("data_mart", "Revenue")
    attach = f"INSERT INTO resource_contexts (resource_id, context_id) VALUES ('{mart}', '{context}')"
    with just_before(millrace, "DELETE FROM contexts", attach):
        answer = adam.request("DELETE", f"/api/contexts/{context}")
    assert (answer.status_code, "at the same moment" in answer.json()["detail"]) == (409, True)
    assert millrace.rows("SELECT COUNT(*) FROM contexts") == [(3,)]
    assert changes(millrace) == before
