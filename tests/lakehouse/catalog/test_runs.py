"""Runs: pointers of their own until they publish; then all outputs at once, or none."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from headgate.kit.clock import now
from headgate.kit.errors import Problem
from headgate.kit.ids import new_id
from headgate.lakehouse.catalog import commit as committing
from headgate.lakehouse.catalog.publish import TableMoved
from headgate.lakehouse.catalog.work_tokens import open_reading
from headgate.pipelines.runs.publish import NotRunning, publish
from headgate.platform.unit_of_work.work import DeclaredTable
from tests.lakehouse.catalog.support import MORE, ROWS, SCHEMA, Lake, appending, error_of, table_path
from tests.lakehouse.catalog.test_work import Worker
from tests.support.company import Api

EVENTS, FRESH = table_path("events"), table_path("fresh")


class Run:
    """A run of the company that is running, and what it may reach."""

    def __init__(self, found: Lake, *outputs: str, fence: int = 1, new: bool = True) -> None:
        self.lake, self.fence = found, fence
        [(self.id,)] = found.rows("SELECT id FROM runs LIMIT 1")
        self.set("running", fence)
        self.new, layer = new_id("table"), found.company.id("layer", "raw")
        reach = [DeclaredTable(found.company.id("table", name), "write") for name in outputs]
        reach += [DeclaredTable(self.new, "write", layer, "fresh")] if new else []
        self.worker = Worker(found, "Tess", "run", run_id=self.id, fence=fence, reach=reach)
        self.api = self.worker.api

    def set(self, state: str, fence: int) -> None:
        self.lake.company.database.write(
            lambda c: c.execute(
                text("UPDATE runs SET state = :s, fence = :f WHERE id = :id"), {"s": state, "f": fence, "id": self.id}
            )
        )

    def append(self, name: str, rows: Any = MORE) -> Any:
        """Append as the run sees the table."""
        table = self.lake.engine_by(self.worker.secret).load_table(f"raw.{name}")
        return self.api.post(table_path(name), appending(table, rows))

    def count(self, name: str) -> int:
        return int(self.lake.engine_by(self.worker.secret).load_table(f"raw.{name}").scan().to_arrow().num_rows)

    def publish(self, fence: int | None = None) -> Any:
        member = self.lake.company.id("member", "Tess")
        services = self.lake.company.services
        number = self.fence if fence is None else fence
        return self.lake.company.database.write(lambda c: publish(services, c, now(), self.id, number, member=member))


@pytest.fixture
def events(served: Lake) -> Lake:
    """A lake in which Tess has made raw.events, with rows."""
    served.engine("Tess").create_table("raw.events", ROWS.schema).append(ROWS)
    return served


def everyone(found: Lake, name: str = "events") -> int:
    """How many rows everyone else sees."""
    return int(found.engine("Tess").load_table(f"raw.{name}").scan().to_arrow().num_rows)


def test_a_run_sees_its_own_state_and_everyone_else_the_published_one(events: Lake) -> None:
    run = Run(events, "raw.events")
    assert run.append("events").status_code == 200
    assert run.append("events").status_code == 200
    assert (run.count("events"), everyone(events)) == (7, 3)
    assert run.api.post("/iceberg/v1/namespaces/raw/tables", {"name": "fresh", "schema": SCHEMA}).status_code == 200
    assert run.append("fresh").status_code == 200
    assert run.count("fresh") == 2
    assert events.api("Adam").get(FRESH).status_code == 404
    names = [one["name"] for one in run.api.get("/iceberg/v1/namespaces/raw/tables").json()["identifiers"]]
    assert names == ["events", "fresh"]
    assert not events.rows("SELECT 1 FROM resources WHERE name = 'fresh'")
    before = events.rows("SELECT COUNT(*) FROM commits")

    moves = run.publish()
    assert len(moves) == 2
    assert (everyone(events), everyone(events, "fresh")) == (7, 2)
    assert events.company.id("table", "raw.fresh") == run.new
    assert events.rows("SELECT COUNT(*) FROM commits")[0][0] == before[0][0] + 2
    assert events.rows(f"SELECT COUNT(*) FROM commits WHERE run_id = '{run.id}'") == [(2,)]
    assert events.rows(f"SELECT state FROM runs WHERE id = '{run.id}'") == [("succeeded",)]
    assert events.rows("SELECT COUNT(*) FROM run_pointers") == [(0,)]
    assert run.api.get(EVENTS).status_code == 401


def test_a_staged_table_of_a_run_exists_for_it_alone(events: Lake) -> None:
    run = Run(events)
    engine = events.engine_by(run.worker.secret)
    change = engine.create_table_transaction("raw.fresh", ROWS.schema)
    change.append(ROWS)
    change.commit_transaction()
    assert run.count("fresh") == 3
    assert events.api("Adam").get(FRESH).status_code == 404
    run.publish()
    assert everyone(events, "fresh") == 3


def test_a_run_that_lost_its_place_commits_nothing(events: Lake) -> None:
    run = Run(events, "raw.events")
    body = appending(events.engine("Tess").load_table("raw.events"))
    for state, fence in (("running", 2), ("cancelled", 1), ("failed", 1)):
        run.set(state, fence)
        assert error_of(run.api.post(EVENTS, body)) == (401, "NotAuthorizedException")
        with pytest.raises(NotRunning):
            run.publish()
    assert events.rows("SELECT COUNT(*) FROM run_pointers") == [(0,)]
    assert everyone(events) == 3


def test_the_fence_is_asked_in_the_transaction_that_moves_the_pointer(
    events: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is paused after its metadata was written, and taken over before its pointer moves."""
    run, planned = Run(events, "raw.events"), committing._plan
    body = appending(events.engine("Tess").load_table("raw.events"))

    def plan(*arguments: Any) -> Any:
        found = planned(*arguments)
        run.set("running", 2)
        return found

    monkeypatch.setattr(committing, "_plan", plan)
    assert error_of(run.api.post(EVENTS, body)) == (401, "NotAuthorizedException")
    assert events.rows("SELECT COUNT(*) FROM run_pointers") == [(0,)]


def test_publish_is_refused_whole_if_a_table_moved(events: Lake) -> None:
    events.engine("Tess").create_table("raw.second", ROWS.schema)
    run = Run(events, "raw.events", "raw.second")
    assert run.append("second").status_code == 200
    assert run.append("events").status_code == 200
    events.engine("Tess").load_table("raw.events").append(MORE)
    before = events.rows("SELECT table_id, version FROM table_pointers ORDER BY table_id")
    with pytest.raises(TableMoved):
        run.publish()
    assert events.rows("SELECT table_id, version FROM table_pointers ORDER BY table_id") == before
    assert events.rows(f"SELECT state FROM runs WHERE id = '{run.id}'") == [("running",)]
    assert run.count("events") == 5, "the run still sees its own state"


def test_an_output_is_pinned_when_the_run_first_looks_at_it(events: Lake) -> None:
    run = Run(events, "raw.events")
    assert run.count("events") == 3
    events.engine("Tess").load_table("raw.events").append(MORE)
    assert (run.count("events"), everyone(events)) == (3, 5)
    assert run.publish() == [], "what was only looked at is not published, and does not stand in the way"
    assert everyone(events) == 5


def test_publish_is_decided_by_the_rights_of_that_moment(events: Lake) -> None:
    run = Run(events, "raw.events")
    assert run.append("events").status_code == 200
    change = {"change": "revoke", "to": "Tess", "resource": "layer:raw", "level": "manager"}
    events.api("Adam").post("/api/access/changes", change).raise_for_status()
    with pytest.raises(Problem) as refused:
        run.publish()
    assert refused.value.status in {403, 404}
    assert everyone_by_admin(events) == 3


def everyone_by_admin(found: Lake) -> int:
    return int(found.engine("Adam").load_table("raw.events").scan().to_arrow().num_rows)


def test_a_name_that_was_taken_meanwhile_refuses_the_whole(events: Lake) -> None:
    run = Run(events, "raw.events")
    run.api.post("/iceberg/v1/namespaces/raw/tables", {"name": "fresh", "schema": SCHEMA}).raise_for_status()
    assert run.append("events").status_code == 200
    events.engine("Adam").create_table("raw.fresh", ROWS.schema)
    with pytest.raises(TableMoved):
        run.publish()
    assert everyone(events) == 3


def test_a_run_reaches_what_it_declared_and_nothing_else(events: Lake) -> None:
    events.engine("Tess").create_table("raw.other", ROWS.schema)
    run = Run(events, "raw.events")
    assert run.api.get(table_path("other")).status_code == 404
    assert run.api.post("/iceberg/v1/namespaces/raw/tables", {"name": "more", "schema": SCHEMA}).status_code == 404
    assert run.api.request("DELETE", EVENTS).status_code in {403, 404}
    body = {"source": {"namespace": ["raw"], "name": "events"}, "destination": {"namespace": ["raw"], "name": "x"}}
    assert run.api.post("/iceberg/v1/tables/rename", body).status_code in {403, 404}
    assert everyone(events) == 3


def test_two_fences_of_a_run_do_not_see_one_another(events: Lake) -> None:
    first = Run(events, "raw.events")
    assert first.append("events").status_code == 200
    second = Run(events, "raw.events", fence=2)
    assert second.count("events") == 3
    assert second.append("events").status_code == 200
    with pytest.raises(NotRunning):
        second.publish(fence=1)
    second.publish()
    assert everyone(events) == 5


def test_a_reading_token_of_a_run_reads_what_it_was_made_for_and_dies_with_the_run(events: Lake) -> None:
    events.engine("Tess").create_table("raw.other", ROWS.schema).append(ROWS)
    run = Run(events, "raw.events", "raw.other")
    assert run.append("events").status_code == 200
    asked = [events.company.id("table", "raw.events"), events.company.id("table", "trusted.orders")]
    until = now() + timedelta(hours=1)
    _, secret = events.company.database.write(lambda c: open_reading(c, now(), run.worker.id, asked, expires=until))
    api = Api(events.company.client, secret)
    assert api.get(EVENTS).status_code == 200
    assert events.engine_by(secret).load_table("raw.events").scan().to_arrow().num_rows == 5, "as the run sees it"
    for hidden in (table_path("other"), table_path("orders", "trusted")):
        assert error_of(api.get(hidden)) == (404, "NoSuchTableException")
    body = appending(events.engine_by(run.worker.secret).load_table("raw.events"))
    assert api.post(EVENTS, body).status_code in {403, 404}
    for name in ("fresh", "more"):
        made = api.post("/iceberg/v1/namespaces/raw/tables", {"name": name, "schema": SCHEMA})
        assert made.status_code in {403, 404}, name
    assert api.request("DELETE", EVENTS).status_code in {403, 404}
    assert api.post("/iceberg/v1/namespaces", {"namespace": ["mine"]}).status_code in {403, 404}
    assert run.count("events") == 5
    run.set("succeeded", 1)
    assert api.get(EVENTS).status_code == 401
    run.set("running", 2)
    assert api.get(EVENTS).status_code == 401
