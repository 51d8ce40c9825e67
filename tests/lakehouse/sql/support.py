"""A worker by hand: what a worker says over HTTP, said by a test."""

import base64
import io
from datetime import datetime
from typing import Any

import pyarrow as pa
from sqlalchemy import insert, select

from headgate.kit.clock import now
from headgate.kit.ids import new_id
from headgate.lakehouse.catalog.models import commit_table, work_load_table, work_token_table
from headgate.lakehouse.sql.job import LEASE
from headgate.lakehouse.sql.job import STATEMENTS as STATEMENT_JOBS
from headgate.platform.jobs.cleanup import LeaseSweeper
from tests.support.company import Company

STATEMENTS = "/api/sql/statements"


def page_of(table: pa.Table) -> bytes:
    """A page as workers send it."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


class Hand:
    """A worker of the company's server, without a Spark."""

    def __init__(self, millrace: Company) -> None:
        self.millrace, self.id = millrace, new_id("worker")
        self.secret = millrace.client.app.state.services.worker_secret  # type: ignore[attr-defined]

    def request(self, method: str, path: str, **more: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.secret}", **more.pop("headers", {})}
        return self.millrace.client.request(method, f"/api/worker{path}", headers=headers, **more)

    def about(self) -> dict[str, Any]:
        return {"worker": self.id, "name": "by hand", "version": "1", "state": {}}

    def claim(self, slots: int = 4, total: int | None = None, wait: float = 0) -> list[dict[str, Any]]:
        body = {**self.about(), "slots": slots, "total": total}
        answer = self.request("POST", "/jobs/statement/claim", json=body, params={"wait": wait})
        assert answer.status_code == 200, answer.text
        return [{**job, **job["payload"]} for job in answer.json()["jobs"]]

    def beat(self, *jobs: dict[str, Any], progress: Any = None) -> dict[str, Any]:
        running = [{"kind": "statement", "id": job["id"], "fence": job["fence"], "progress": progress} for job in jobs]
        answer = self.request("POST", "/jobs/heartbeat", json={**self.about(), "running": running})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def finish(self, job: dict[str, Any], state: str = "succeeded", *tables: pa.Table, **more: Any) -> Any:
        """Finish with these pages, the later ones uploaded before; or with whatever is given."""
        body = {"worker": self.id, "fence": job["fence"], "state": state, **more}
        if tables:
            for number, table in enumerate(tables[1:], 1):
                assert self.upload(job, number, page_of(table)).status_code == 200
            body["result"] = {
                "first_page": base64.b64encode(page_of(tables[0])).decode(),
                "columns": [{"name": one.name, "type": str(one.type)} for one in tables[0].schema],
                "rows": sum(one.num_rows for one in tables),
                "bytes": sum(len(page_of(one)) for one in tables),
                "pages": len(tables),
                "truncated": False,
            }
        return self.request("POST", f"/jobs/statement/{job['id']}/finish", json=body)

    def upload(self, job: dict[str, Any], number: int, page: bytes) -> Any:
        place = f"/statements/{job['id']}/pages/{number}"
        return self.request("PUT", place, params={"worker": self.id, "fence": job["fence"]}, content=page)

    def work(self, statement: str) -> str:
        """The newest work token of a statement."""
        row = work_token_table.c
        query = select(row.id).where(row.statement_id == statement).order_by(row.id.desc()).limit(1)
        with self.millrace.database.read() as connection:
            return str(connection.execute(query).scalar_one())

    def load(self, statement: str, *tables: str) -> None:
        """What the catalog writes down when Spark loads tables."""
        work = self.work(statement)
        rows = [{"work_id": work, "ref": ref, "table_id": self.millrace.id("table", ref)} for ref in tables]
        self.millrace.database.write(lambda connection: connection.execute(insert(work_load_table), rows))

    def commit(self, statement: str, table: str, operation: str = "append", **counts: int) -> None:
        """What the catalog writes down when Spark commits."""
        row = {
            "id": new_id("commit"), "group_id": new_id("commit"), "table_id": self.millrace.id("table", table), "version": 1,
            "operation": operation, "at": now(), "work_id": self.work(statement), "metadata_file": "1.json", **counts,
        }  # fmt: skip
        self.millrace.database.write(lambda connection: connection.execute(insert(commit_table).values(row)))

    def sweep(self, moment: datetime | None = None) -> None:
        """What the scheduler does, at a moment."""
        LeaseSweeper(STATEMENT_JOBS, self.millrace.settings, self.millrace.database).sweep(moment or now() + LEASE)


def submit(millrace: Company, member: str, sql: str = "SELECT 1", **more: Any) -> str:
    """Submit a statement; its id."""
    answer = millrace.as_(member).post(STATEMENTS, {"sql": sql, **more})
    assert answer.status_code == 200, answer.text
    assert answer.json()["state"] == "queued"
    return str(answer.json()["id"])


def ran(millrace: Company, member: str, *tables: pa.Table, reads: tuple[str, ...] = ()) -> str:
    """A statement that was run by hand; its id."""
    statement, hand = submit(millrace, member), Hand(millrace)
    (job,) = hand.claim()
    if reads:
        hand.load(statement, *reads)
    answer = hand.finish(job, "succeeded", *(tables or (pa.table({"n": [1]}),)))
    assert answer.json() == {"state": "succeeded"}, answer.text
    return statement
