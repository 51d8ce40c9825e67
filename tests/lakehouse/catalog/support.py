"""What the tests of the catalog share: members with stock PyIceberg, and the files behind their tables."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import uvicorn
from pyiceberg.catalog.rest import RestCatalog

from headgate.kit.database import Database
from tests.support.company import Api, Company, company

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": pa.array(["a", "b", "c"])})
MORE = pa.table({"id": pa.array([4, 5], pa.int64()), "name": pa.array(["d", "e"])})
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": False, "type": "long"},
        {"id": 2, "name": "name", "required": False, "type": "string"},
    ],
}


class Lake:
    """The company, its server, and its members' engines."""

    def __init__(self, found: Company, folder: Path) -> None:
        self.company, self.warehouse = found, folder / "warehouse"
        self._served, self._begins = ExitStack(), threading.Lock()
        self._open: list[RestCatalog] = []
        self._url: str | None = None

    @property
    def url(self) -> str:
        """Its server's address; there is one as soon as somebody asks."""
        with self._begins:
            self._url = self._url or self._served.enter_context(serving(self.company.client.app))
            return self._url

    def engine(self, member: str, **narrowing: Any) -> RestCatalog:
        """Stock PyIceberg, with a member's token."""
        return self.engine_by(self.company.token(member, **narrowing))

    def engine_by(self, token: str, **properties: str) -> RestCatalog:
        """Stock PyIceberg, with this token."""
        found = RestCatalog("lake", uri=f"{self.url}/iceberg", token=token, **properties)
        self._open.append(found)
        return found

    def api(self, member: str, **narrowing: Any) -> Api:
        """The catalog, as a member calls it by hand."""
        return self.company.as_(member, **narrowing)

    def close(self) -> None:
        for one in self._open:
            one.close()
        self._served.close()

    def rows(self, statement: str) -> list[Any]:
        return self.company.rows(statement)


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """The address of a server of this application, on loopback."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        deadline = time.monotonic() + 60
        while not server.started:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def lake(database: Database, folder: Path, **warehouse: Any) -> Iterator[Lake]:
    """The company, served to engines on the same host."""
    settings = {"external_engines": "same-host", **warehouse}
    with company(database, folder, warehouse=settings) as found:
        one = Lake(found, folder)
        try:
            yield one
        finally:
            one.close()


def together(*works: Callable[[], Any]) -> list[Any]:
    """What each of these gives, or raises, when all start at once."""
    barrier = threading.Barrier(len(works))
    answers: list[Any] = [None] * len(works)

    def run(number: int, work: Callable[[], Any]) -> None:
        barrier.wait()
        try:
            answers[number] = work()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            answers[number] = error

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def table_path(name: str, namespace: str = "raw") -> str:
    """The path of a table in the catalog."""
    return f"/iceberg/v1/namespaces/{namespace}/tables/{name}"


def pending(table: Any, work: Callable[[Any], Any]) -> dict[str, Any]:
    """The body of a commit that a stock client would send; its files are written, nothing is sent."""
    change = table.transaction()
    change._autocommit = False
    work(change)
    return {
        "requirements": [json.loads(one.model_dump_json(by_alias=True)) for one in change._requirements],
        "updates": [json.loads(one.model_dump_json(by_alias=True)) for one in change._updates],
    }


def appending(table: Any, rows: Any = ROWS) -> dict[str, Any]:
    """The body of a commit that appends."""
    return pending(table, lambda change: change.append(rows))


def update_of(body: dict[str, Any], action: str) -> dict[str, Any]:
    """The update of this kind in a commit."""
    found: dict[str, Any]
    [found] = [one for one in body["updates"] if one["action"] == action]
    return found


def error_of(answer: Any) -> tuple[int, str]:
    """The status and type of a refusal, in Iceberg's form."""
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "code"}
    assert error["code"] == answer.status_code
    return answer.status_code, error["type"]
