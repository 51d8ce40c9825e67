"""Connection checks: asked by a member, judged again when a worker takes them, answered by a worker in the end."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from sqlalchemy import text, update

from headgate.execution.worker.connection_checks import CheckHandler, fitting
from headgate.execution.worker.job_loop import JobLoop
from headgate.execution.worker.server_link import Link
from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.kit.ids import new_id
from headgate.platform.connection_checks.job import CONNECTION_CHECKS, KEPT, LEASE
from headgate.platform.connection_checks.models import connection_check_table
from headgate.platform.jobs.cleanup import LeaseSweeper
from headgate.schema import METADATA
from tests.execution.worker.support import served
from tests.spaces.connections.support import PLACE, SECRET, added, patch
from tests.support import api as apis
from tests.support.company import Api, Company, company
from tests.support.installation import eventually

pytestmark = pytest.mark.both_databases

WORKER = new_id("worker")


def ask(api: Api, about: str, **question: Any) -> Any:
    kind = "connections" if about.startswith("con_") else "destinations"
    return api.post(f"/api/{kind}/{about}/checks", {"operation": "test", **question})


def asked(millrace: Company, member: str, about: str, **question: Any) -> str:
    answer = ask(millrace.as_(member), about, **question)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


WORK = "/api/worker/jobs/connection_check"


def by_worker(millrace: Company, path: str, **body: Any) -> Any:
    secret = millrace.client.app.state.services.worker_secret  # type: ignore[attr-defined]
    about = {"worker": WORKER, "name": "by hand", "version": "1", "state": {}}
    return Api(millrace.client, secret).post(f"{WORK}/{path}", about | body)


def claimed(millrace: Company, slots: int = 4, **by: Any) -> list[Any]:
    """The checks that a worker by hand gets, each with its payload."""
    answer = by_worker(millrace, "claim", slots=slots, **by)
    assert answer.status_code == 200, answer.text
    return [{**job, **job["payload"]} for job in answer.json()["jobs"]]


def finish(millrace: Company, job: Any, state: str = "succeeded", **told: Any) -> Any:
    return by_worker(millrace, f"{job['id']}/finish", fence=job["fence"], state=state, **told)


def finished(millrace: Company, job: Any, state: str = "succeeded", **told: Any) -> str:
    """The state of a check after its worker has reported."""
    return str(finish(millrace, job, state, **told).json()["state"])


def sweep(millrace: Company, moment: datetime) -> None:
    """What the scheduler does, at a moment."""
    LeaseSweeper(CONNECTION_CHECKS, millrace.settings, millrace.database).sweep(moment)


def state_of(millrace: Company, member: str, check: str) -> Any:
    return millrace.as_(member).get(f"/api/connection-checks/{check}").json()


def test_a_worker_gets_the_secrets_and_the_member_gets_the_answer(millrace: Company) -> None:
    found = added(millrace)
    check = asked(millrace, "Tom", found["id"], operation="discover", pattern="shop.*")
    [job] = claimed(millrace)
    assert job["endpoint"]["secrets"] == {"password": SECRET}
    assert job["question"] == {"pattern": "shop.*", "path": "", "limit": 500}
    assert not job["writes"]
    assert claimed(millrace) == []
    result = {"detail": "fine", "milliseconds": 3, "streams": [{"name": "shop.orders", "sort": "table"}]}
    assert finished(millrace, job, result=result) == "succeeded"
    shown = state_of(millrace, "Tom", check)
    assert (shown["state"], shown["about"], shown["error"]) == ("succeeded", found["id"], None)
    assert shown["result"]["streams"][0]["name"] == "shop.orders"
    assert SECRET not in str(millrace.rows("SELECT * FROM connection_checks"))


def test_asking_needs_consume_edit_or_manage_in_the_space(millrace: Company) -> None:
    found = added(millrace)["id"]
    answers = {
        who: ask(millrace.as_(who), found).status_code for who in ("Olga", "Adam", "Tess", "Tom", "Bea", "Ben", "Dora")
    }
    assert answers == {
        "Olga": 200, "Adam": 200, "Tess": 200, "Tom": 200, "Bea": 403, "Ben": 403, "Dora": 403,
    }  # fmt: skip
    hidden = added(millrace, "Tom", space="Tom's own")["id"]
    assert ask(millrace.as_("Tess"), hidden).status_code == 404
    assert ask(millrace.as_("Tess", read_only=True), found).status_code == 403


def test_a_destination_is_tested_by_who_may_edit_it(millrace: Company) -> None:
    found = millrace.as_("Ben").post("/api/destinations", {"name": "Out", "place": PLACE}).json()["id"]
    assert ask(millrace.as_("Tess"), found).status_code == 404
    share = {"change": "share", "resource": found, "for_use": True}
    millrace.as_("Ben").change(**share).raise_for_status()
    for question in ({"operation": "test"}, {"operation": "discover"}):
        assert ask(millrace.as_("Tess"), found, **question).status_code == 403
    asked(millrace, "Ben", found)
    [job] = claimed(millrace)
    assert job["writes"]


ELSEWHERE = {**PLACE, "host": "elsewhere.example.com"}


def test_a_stored_secret_goes_to_the_stored_place_alone(millrace: Company) -> None:
    found = added(millrace)["id"]
    for place, secrets, expected in (
        (None, {}, {"password": SECRET}),
        ({**PLACE, "user": "writer"}, {}, {"password": SECRET}),
        (ELSEWHERE, {}, {}),
        (ELSEWHERE, {"password": "own"}, {"password": "own"}),
        ({**PLACE, "tls": "off"}, {}, {}),
        (None, {"password": "own"}, {"password": "own"}),
    ):
        asked(millrace, "Tess", found, place=place, secrets=secrets)
        [job] = claimed(millrace)
        wanted = place or PLACE
        assert job["endpoint"]["secrets"] == expected, (place, secrets)
        assert {name: job["endpoint"]["config"][name] for name in ("host", "user")} == {
            name: wanted[name] for name in ("host", "user")
        }
        finish(millrace, job, result={"detail": "fine", "milliseconds": 1})
    assert millrace.as_("Tess").get(f"/api/connections/{found}").json()["place"]["version"] == 1


def test_a_changed_place_is_tested_by_who_could_save_it(millrace: Company) -> None:
    found = added(millrace)["id"]
    assert ask(millrace.as_("Tom"), found).status_code == 200
    for more in ({"place": ELSEWHERE}, {"secrets": {"password": "guess"}}):
        assert ask(millrace.as_("Tom"), found, **more).status_code == 403
    tess = millrace.as_("Tess")
    assert ask(tess, found, place={**PLACE, "host": "169.254.169.254"}).status_code == 422
    assert ask(tess, found, place={"kind": "folder", "path": "/etc"}).status_code == 409
    assert ask(tess, found, secrets={"token": "x"}).status_code == 422
    check = asked(millrace, "Tess", found, place=ELSEWHERE, secrets={"password": "own"})
    millrace.as_("Olga").change(change="change_owner", resource=found, owner="Tom").raise_for_status()
    [toms] = claimed(millrace)
    assert toms["id"] != check
    assert state_of(millrace, "Tess", check)["error"]["code"] == "DENIED"


def test_secrets_given_with_a_check_are_sealed_and_forgotten_at_its_end(millrace: Company) -> None:
    asked(millrace, "Tess", added(millrace)["id"], secrets={"password": "slow tame otter"})
    [(sealed,)] = millrace.rows("SELECT sealed FROM connection_checks")
    assert sealed.startswith("v1.")
    assert "otter" not in str(millrace.rows("SELECT * FROM connection_checks"))
    assert "otter" not in str(millrace.rows("SELECT * FROM audit_events"))
    [job] = claimed(millrace)
    finish(millrace, job, result={"detail": "fine", "milliseconds": 1})
    assert millrace.rows("SELECT sealed FROM connection_checks") == [(None,)]


def test_a_check_is_its_askers_own(millrace: Company) -> None:
    check = asked(millrace, "Tess", added(millrace)["id"])
    for who in ("Olga", "Tom"):
        assert millrace.as_(who).get(f"/api/connection-checks/{check}").status_code == 404
    assert by_worker(millrace, f"{check}/finish", fence=0, state="failed").status_code == 409


def test_who_lost_the_right_gets_neither_the_worker_nor_the_answer(millrace: Company) -> None:
    found = added(millrace)["id"]
    early, late = asked(millrace, "Tom", found), asked(millrace, "Tom", found)
    [job] = claimed(millrace, slots=1)
    assert job["id"] == early
    taken = {"change": "take_space_role", "space": "Sales data", "to": "Tom", "space_role": "can_edit"}
    millrace.as_("Tess").change(**taken).raise_for_status()
    assert claimed(millrace) == []
    finish(millrace, job, result={"detail": "what is there", "milliseconds": 1})
    assert millrace.as_("Tom").get(f"/api/connection-checks/{early}").status_code == 404
    assert millrace.rows(f"SELECT state, error_code FROM connection_checks WHERE id = '{late}'") == [
        ("failed", "DENIED")
    ]


def test_a_check_is_about_the_place_that_there_was_when_it_was_asked(millrace: Company) -> None:
    found = added(millrace)["id"]
    check = asked(millrace, "Tom", found)
    patch(millrace.as_("Tess"), found, place={**PLACE, "host": "elsewhere.example.com"}).raise_for_status()
    assert claimed(millrace) == []
    assert state_of(millrace, "Tom", check)["error"]["code"] == "MOVED"


def test_what_points_nowhere_or_goes_by_a_gateway_is_said_so(millrace: Company) -> None:
    nowhere = millrace.id("connection", "Shop database")
    assert "no host configured" in ask(millrace.as_("Tess"), nowhere).json()["detail"]
    patch(millrace.as_("Tess"), nowhere, place=PLACE).raise_for_status()
    check = asked(millrace, "Tess", nowhere)
    assert claimed(millrace) == []
    assert "gateway" in state_of(millrace, "Tess", check)["error"]["message"]


def test_a_member_has_so_many_checks_at_a_time(millrace: Company) -> None:
    found = added(millrace)["id"]
    for _ in range(10):
        asked(millrace, "Tess", found)
    too_many = ask(millrace.as_("Tess"), found)
    assert too_many.status_code == 429
    assert "wait until one has ended" in too_many.json()["detail"]
    assert ask(millrace.as_("Tom"), found).status_code == 200


def test_a_worker_that_was_lost_is_followed_by_another_and_refused_afterwards(millrace: Company) -> None:
    check = asked(millrace, "Tess", added(millrace)["id"])
    [first] = claimed(millrace)
    later = now() + LEASE + timedelta(seconds=1)
    sweep(millrace, later)
    [second] = claimed(millrace)
    assert second["fence"] == first["fence"] + 1
    assert finish(millrace, first, result={"detail": "late", "milliseconds": 1}).status_code == 409
    _expire_lease(millrace)
    sweep(millrace, now())
    assert state_of(millrace, "Tess", check)["error"]["code"] == "LOST"
    assert claimed(millrace) == []


def test_a_worker_that_stops_gives_its_check_back(millrace: Company) -> None:
    asked(millrace, "Tess", added(millrace)["id"])
    for fence in range(1, 10):
        [job] = claimed(millrace)
        assert job["fence"] == fence
        assert finished(millrace, job, "returned") == "queued"
    [last] = claimed(millrace)
    assert finished(millrace, last, "returned") == "failed"


def test_checks_are_forgotten(millrace: Company) -> None:
    check = asked(millrace, "Tess", added(millrace)["id"])
    sweep(millrace, now() + KEPT - timedelta(minutes=1))
    assert state_of(millrace, "Tess", check)["state"] == "queued"
    sweep(millrace, now() + KEPT + timedelta(minutes=1))
    assert millrace.as_("Tess").get(f"/api/connection-checks/{check}").status_code == 404


def _expire_lease(millrace: Company) -> None:
    over = update(connection_check_table).values(lease_until=now() - timedelta(seconds=1))
    millrace.database.write(lambda connection: connection.execute(over))


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ({"operation": "destroy"}, "test"),
        ({"path": "no-slash"}, "/v1/orders"),
        ({"path": "//evil.example.com"}, "/v1/orders"),
        ({"path": "/a/../b"}, "/v1/orders"),
        ({"pattern": "x"}, "for discover"),
        ({"operation": "discover", "path": "/x"}, "for test"),
        ({"operation": "discover", "limit": 0}, "at least 1"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(
    millrace_on_sqlite: Company, question: dict[str, Any], says: str
) -> None:
    answer = ask(millrace_on_sqlite.as_("Tess"), added(millrace_on_sqlite)["id"], **question)
    assert answer.status_code == 422
    assert says in answer.json()["detail"]


@contextmanager
def running(millrace: Company) -> Iterator[None]:
    """The company's server, and a worker that answers checks."""
    with served(millrace) as address:
        secret = millrace.client.app.state.services.worker_secret  # type: ignore[attr-defined]
        link = Link(address, secret, new_id("worker"), "here")
        part = JobLoop(link, [CheckHandler(link, millrace.settings)])
        part.start()
        try:
            yield
        finally:
            part.stop()
            link.close()


def ended(millrace: Company, member: str, check: str) -> Any:
    eventually(lambda: state_of(millrace, member, check)["state"] in {"succeeded", "failed"})
    return state_of(millrace, member, check)


@pytest.fixture
def open_millrace(database: Database, tmp_path: Path) -> Iterator[Company]:
    with company(database, tmp_path, outgoing={"allow": ["127.0.0.1"]}) as found:
        yield found


def test_a_real_worker_answers_about_a_real_api(open_millrace: Company) -> None:
    millrace = open_millrace
    with apis.serving() as api, running(millrace):
        place = {"kind": "http", "base_url": api.url, "auth": {"style": "bearer"}}
        found = added(millrace, place=place, secrets={"token": apis.SECRET})["id"]
        good = ended(millrace, "Tess", asked(millrace, "Tess", found, path="/bearer"))
        assert good["result"]["detail"] == "The API answers 200"
        patch(millrace.as_("Tess"), found, secrets={"token": "wrong"}).raise_for_status()
        bad = ended(millrace, "Tess", asked(millrace, "Tess", found, path="/bearer"))
        assert (bad["state"], bad["error"]["code"]) == ("failed", "WRONG_CREDENTIALS")
        patch(millrace.as_("Tess"), found, secrets={"token": None}).raise_for_status()
        assert ended(millrace, "Tess", asked(millrace, "Tess", found))["error"]["code"] == "MISSING_SECRET"


@pytest.mark.postgres
def test_a_real_worker_discovers_a_real_database(tmp_path: Path, database_url_of_postgres: str) -> None:
    database = Database(f"sqlite:///{tmp_path}/headgate.db")
    METADATA.create_all(database.engine)
    source = Database(database_url_of_postgres)
    with source.engine.begin() as connection:
        connection.execute(text("CREATE TABLE t (id int PRIMARY KEY)"))
    source.close()
    where = urlsplit(database_url_of_postgres)
    place = {"kind": "postgresql", "host": "127.0.0.1", "port": where.port, "database": where.path[1:]}
    with company(database, tmp_path, outgoing={"allow": ["127.0.0.1"]}) as millrace, running(millrace):
        found = added(millrace, place={**place, "user": "headgate", "tls": "off"}, secrets={})["id"]
        answer = ended(millrace, "Tom", asked(millrace, "Tom", found, operation="discover"))
        assert answer["result"]["streams"] == [
            {
                "name": "public.t", "sort": "table", "keys": ["id"], "bytes": None, "modified_at": None,
                "columns": [{"name": "id", "type": "integer", "nullable": False}],
            }
        ]  # fmt: skip


def test_following_waits_for_the_end(millrace_on_sqlite: Company) -> None:
    millrace = millrace_on_sqlite
    check = asked(millrace, "Tess", added(millrace)["id"])
    assert millrace.as_("Tess").get(f"/api/connection-checks/{check}", wait=0.1).json()["state"] == "queued"
    [job] = claimed(millrace)
    finish(millrace, job, result={"detail": "fine", "milliseconds": 1})
    assert millrace.as_("Tess").get(f"/api/connection-checks/{check}", wait=20).json()["state"] == "succeeded"


def test_a_result_is_cut_to_what_the_server_takes() -> None:
    found = {"detail": "x", "milliseconds": 1, "streams": [{"name": f"t{n}", "sort": "table"} for n in range(100)]}
    assert fitting(found, 1 << 20) is found
    cut = fitting(found, 1000)
    assert 10 < len(cut["streams"]) < 40
    assert cut["truncated"]
