"""The commit comes before the answer; two changes that meet leave the organization whole; a revoke holds at once."""

import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError
from starlette.testclient import TestClient

from headgate.kit.database import Database
from headgate.settings.settings import Settings
from tests.support.apps import app_for
from tests.support.company import Api, Company

pytestmark = pytest.mark.both_databases


def test_a_commit_that_fails_is_no_success(millrace: Company) -> None:
    def refuse(_: Any) -> None:
        raise OperationalError("COMMIT", {}, Exception("disk full"))

    before, adam, ben = millrace.rows("SELECT COUNT(*) FROM grants"), millrace.as_("Adam"), millrace.as_("Ben")
    event.listen(millrace.database.engine, "commit", refuse)
    try:
        answer = adam.change(change="grant", to="Ben", resource="layer:raw", level="viewer")
    finally:
        event.remove(millrace.database.engine, "commit", refuse)
    assert answer.status_code == 500
    assert millrace.rows("SELECT COUNT(*) FROM grants") == before
    assert not ben.may("see", "layer:raw")


def test_two_owners_who_demote_one_another_leave_one(millrace: Company) -> None:
    millrace.as_("Olga").change(change="set_role", member="Adam", role="owner").raise_for_status()
    pairs = (("Olga", "Adam"), ("Adam", "Olga"))
    barrier = threading.Barrier(2)
    answers: list[int] = []
    tokens = {name: millrace.as_(name) for name, _ in pairs}

    def demote(who: str, whom: str) -> None:
        barrier.wait()
        answers.append(tokens[who].change(change="set_role", member=whom, role="business").status_code)

    threads = [threading.Thread(target=demote, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200, 403]
    assert millrace.rows("SELECT COUNT(*) FROM members WHERE role = 'owner'") == [(1,)]


def test_many_changes_at_once_are_all_made(millrace: Company) -> None:
    api = millrace.as_("Adam")
    levels = [(who, level) for who in ("Tom", "Ana", "Ben", "Dora") for level in ("viewer", "editor", "manager")]
    answers: list[int] = []

    def grant(who: str, level: str) -> None:
        answers.append(api.change(change="grant", to=who, resource="volume:raw.invoices", level=level).status_code)

    threads = [threading.Thread(target=grant, args=pair) for pair in levels]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * len(levels)
    volume = millrace.id("volume", "raw.invoices")
    assert millrace.rows(f"SELECT COUNT(*) FROM grants WHERE resource_id = '{volume}'") == [(12,)]
    assert millrace.rows("SELECT COUNT(*) FROM audit_events WHERE event = 'access.changed'") == [(12,)]


def test_a_revoke_holds_for_the_next_statement_of_another_application(millrace: Company, tmp_path: Path) -> None:
    """Two applications on one database, as two server processes are; the process test is in tests/supervisor."""
    url = millrace.database.engine.url.render_as_string(hide_password=False)
    other = Database(url.replace("postgresql+psycopg", "postgresql"))
    with TestClient(app_for(Settings(data_dir=tmp_path), other)) as client:
        bea = Api(client, millrace.token("Bea"))
        for _ in range(10):
            assert bea.may("execute", "table:service.revenue")
            revoked = {"change": "revoke", "to": "Bea", "resource": "table:service.revenue", "level": "viewer"}
            millrace.as_("Tess").post("/api/access/changes", revoked).raise_for_status()
            assert not bea.may("execute", "table:service.revenue")
            assert bea.get("/api/resources", kind="table").json()["items"] == []
            granted = {**revoked, "change": "grant"}
            millrace.as_("Tess").post("/api/access/changes", granted).raise_for_status()


@pytest.mark.parametrize("narrowing", [{"read_only": True}, {"only": []}])
def test_a_narrowed_token_makes_no_change(millrace: Company, narrowing: dict[str, Any]) -> None:
    api = millrace.as_("Olga", **narrowing)
    answer = api.change(change="grant", to="Ben", resource="layer:raw", level="viewer")
    assert answer.status_code in (403, 404)
    assert not millrace.as_("Ben").may("see", "layer:raw")
