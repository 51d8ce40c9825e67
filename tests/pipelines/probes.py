"""A probe by hand: what a worker and Spark do when the SQL of a pipeline is analysed, done by a test."""

from typing import Any

from tests.lakehouse.sql.support import STATEMENTS, Hand, submit
from tests.support.company import Api, Company

LONG = "long"


def fields(**columns: str) -> list[dict[str, Any]]:
    """The fields of a schema with these columns."""
    return [
        {"id": n, "name": name, "required": False, "type": kind} for n, (name, kind) in enumerate(columns.items(), 1)
    ]


def place(name: str) -> str:
    """A table in the catalog."""
    layer, _, table = name.partition(".")
    return f"/iceberg/v1/namespaces/{layer}/tables/{table}"


def columns_of(answer: Any) -> list[str]:
    """The columns of a table that was loaded."""
    assert answer.status_code == 200, answer.text
    return [one["name"] for one in answer.json()["metadata"]["schemas"][0]["fields"]]


def create(millrace: Company, member: str, name: str, **columns: str) -> None:
    """Have a member's statement create a table, which then has columns and no rows."""
    layer, _, table = name.partition(".")
    submit(millrace, member)
    (job,) = Hand(millrace).claim()
    schema = {"type": "struct", "schema-id": 0, "fields": fields(**columns)}
    answer = Api(millrace.client, job["token"]).post(
        f"/iceberg/v1/namespaces/{layer}/tables", {"name": table, "schema": schema}
    )
    assert answer.status_code == 200, answer.text


class Probe:
    """The probe of a query pipeline that is being saved."""

    def __init__(self, millrace: Company, member: str, name: str, output: str, **more: Any) -> None:
        self.millrace, self.member = millrace, member
        definition = {"kind": "query", "sql": "SELECT 1", "output": output, **more}
        path, method = ("/api/pipelines", "POST")
        body: dict[str, Any] = {"name": name, "definition": definition}
        if pipeline := self._stored(name):
            path, method, body = f"/api/pipelines/{pipeline}", "PATCH", {"definition": definition}
        answer = millrace.as_(member).request(method, path, json=body)
        assert answer.status_code == 200, answer.text
        self._claim(answer.json()["statement"])

    @classmethod
    def of(cls, millrace: Company, member: str, statement: str) -> "Probe":
        """The probe of a statement that waits."""
        made = cls.__new__(cls)
        made.millrace, made.member = millrace, member
        made._claim(statement)
        return made

    def _claim(self, statement: str) -> None:
        self.statement, self.hand = statement, Hand(self.millrace)
        (self.job,) = self.hand.claim()
        self.catalog = Api(self.millrace.client, self.job["token"])

    def _stored(self, name: str) -> str | None:
        found = self.millrace.as_(self.member).get("/api/pipelines", prefix=name).json()["items"]
        return found[0]["id"] if found else None

    def load(self, name: str) -> Any:
        """What the catalog answers when Spark loads a table for it."""
        return self.catalog.get(place(name))

    def tell(self, columns: list[dict[str, Any]] | None, origins: Any = (), problem: str | None = None) -> Any:
        """What Spark says that the SQL gives."""
        body = {"worker": self.hand.id, "fence": self.job["fence"], "columns": columns, "problem": problem}
        path = f"/statements/{self.statement}/analysed"
        return self.hand.request("POST", path, json={**body, "origins": list(origins)})

    def finish(self, state: str = "succeeded", **more: Any) -> Any:
        """The statement when the probe is over."""
        answer = self.hand.finish(self.job, state, **more)
        assert answer.status_code == 200, answer.text
        return self.millrace.as_(self.member).get(f"{STATEMENTS}/{self.statement}").json()

    def save(self, columns: list[dict[str, Any]], *reads: str, origins: Any = ()) -> str:
        """The id of the pipeline, saved after a probe that read these tables."""
        for one in reads:
            assert self.load(one).status_code == 200, one
        assert self.tell(columns, origins).status_code == 200
        found = self.finish()
        assert found["state"] == "succeeded", found
        return str(found["saved_query"])
