"""The company with tables that some members must not know of, behind the whole chain on a real Spark."""

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.lakehouse.catalog.work_tokens import open_work
from headgate.schema import METADATA
from tests.execution.worker.support import port_of, served
from tests.lakehouse.sql.conftest import Bench
from tests.lakehouse.sql.support import STATEMENTS
from tests.support.company import company
from tests.support.spark import SharedSpark

CANARY = "canary-5d1c9e"
ENDED = {"succeeded", "failed", "cancelled"}

SEES = {
    "Bea": {"service.revenue"},
    "Tom": {"raw.payments", "raw.orders"},
    "Ana": {"trusted.orders"},
}
"""What each attacker may read; every other name must not be told to them."""

_TABLES = {
    "raw.payments": f"SELECT 1L AS id, '{CANARY}' AS secret",
    "raw.orders": "SELECT 1L AS id, 'an order' AS what",
    "trusted.orders": "SELECT 1L AS id, 'an order' AS what",
    "service.revenue": "SELECT id, CAST(id AS DECIMAL(10,2)) AS amount FROM range(3)",
    "service.vault": f"SELECT 1L AS id, '{CANARY}' AS secret",
}
_NAMES = {"payments", "vault", "orders", "revenue"}
_SECRETS = re.compile(r"\bhg[a-z]_[0-9A-Za-z]{8,}|Bearer|\bAuthorization\b|root:x:|HEADGATE_|\btbl_[0-9a-z]{20}")
_INSIDES = re.compile(r"org\.apache|\bjava\.(lang|io|util)|\n\s+at |Exception\b")


@dataclass
class World(Bench):
    """The workbench, and what an attacker must not learn."""

    folder: Path

    @property
    def warehouse(self) -> Path:
        return Path(self.spark.settings.warehouse_url.removeprefix("file://"))

    def root(self, table: str) -> Path:
        """The folder of a table."""
        return self.warehouse / "tables" / self.millrace.id("table", table)

    def attack(self, member: str, statements: Iterable[str]) -> list["Attempt"]:
        """Send them all, forty at a time, and wait for what comes of them."""
        found, left = [], list(statements)
        while left:
            some, left = left[:40], left[40:]
            made = [self.submit(member, one) for one in some]
            found += [Attempt(self, member, sql, self.done(member, one)) for sql, one in zip(some, made, strict=True)]
        return found

    def denials(self, resource: str | None = None) -> list[Any]:
        """The refusals in the audit log."""
        where = f" AND resource_id = '{resource}'" if resource else ""
        return self.millrace.rows(
            f"SELECT actor_id, action, kind, token_id, after FROM audit_events WHERE event = 'access.denied'{where}"
        )

    def work(self, member: str, **more: Any) -> tuple[str, str]:
        """A work token of a member, as a worker gets it: its id and its secret."""
        who, until = self.millrace.id("member", member), now() + timedelta(minutes=5)
        return self.millrace.database.write(
            lambda c: open_work(c, now(), purpose="statement", member=who, expires=until, **more)
        )


@dataclass
class Attempt:
    """A statement of an attacker, and what came of it."""

    world: World
    member: str
    sql: str
    found: dict[str, Any]

    @property
    def code(self) -> str | None:
        return self.found["error"]["code"] if self.found["error"] else None

    @property
    def told(self) -> str:
        """All that the attacker is told, now and in the history; without the statement itself."""
        about = {key: value for key, value in self.found.items() if key not in {"sql", "id"}}
        return repr(about)

    def leaks(self) -> list[str]:
        """What the answer tells that the attacker must not know and did not say."""
        told, world = self.told, self.world
        places = {str(world.warehouse), str(world.folder), str(world.spark.settings.data_dir), "file:/", CANARY}
        wrong = {one for one in places if one in told and one not in self.sql}
        hidden = _NAMES - {one.partition(".")[2] for one in SEES[self.member]}
        wrong |= {one for one in hidden if re.search(rf"\b{one}\b", told) and one not in self.sql.lower()}
        wrong |= {one for one in _SECRETS.findall(told) if one not in self.sql}
        return [f"{self.sql[:160]!r} told {one!r}: {told[:300]}" for one in sorted(wrong)]

    def insides(self) -> list[str]:
        """What a message tells of Spark's insides."""
        message = (self.found["error"] or {}).get("message", "")
        return [f"{self.sql[:160]!r}: {message[:300]}" for _ in _INSIDES.findall(message)[:1]]

    def is_logged(self) -> bool:
        """Whether the guard's refusal is in the audit log, by whom, of what, and with its code."""
        rows = self.world.denials(self.found["id"])
        who = self.world.millrace.id("member", self.member)
        return [(row[0], row[1], row[2]) for row in rows] == [(who, "execute", "statement")] and "REFUSED" in rows[0][4]


def none(wrong: Iterable[str]) -> None:
    """Say all that is wrong at once."""
    found = list(wrong)
    if found:
        pytest.fail("\n".join(found), pytrace=False)


def refused(attempts: Iterable[Attempt], codes: re.Pattern[str] | None = None) -> None:
    """Each failed, by the guard or with one of these codes; told nothing; and the guard's refusals are logged."""
    wrong = []
    for one in attempts:
        if one.found["state"] != "failed":
            wrong.append(f"{one.sql[:160]!r} was answered: {one.told[:300]}")
        elif one.code != "REFUSED" and not (codes and codes.fullmatch(one.code or "")):
            wrong.append(f"{one.sql[:160]!r} failed otherwise: {one.found['error']}")
        elif one.code == "REFUSED" and not one.is_logged():
            wrong.append(f"{one.sql[:160]!r} is not in the audit log")
        wrong += one.leaks() + one.insides()
    none(wrong)


@pytest.fixture(scope="package")
def world(shared_spark: SharedSpark, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The company, its server on a port, engines on the same host let in, a worker, and tables with rows."""
    folder = tmp_path_factory.mktemp("security")
    database = Database(f"sqlite:///{folder}/headgate.db")
    METADATA.create_all(database.engine)
    warehouse = {**shared_spark.warehouse, "external_engines": "same-host"}
    settings = {"warehouse": warehouse, "server": {"processes": 2}, "sql": {"concurrent": 60}}
    with (
        company(database, folder, **settings) as millrace,
        served(millrace) as address,
        shared_spark.doorway.leads_to(port_of(address)),
    ):
        found = World(millrace, shared_spark, address, folder)
        with found.worker():
            for table, query in _TABLES.items():
                found.rows("Tess", f"CREATE TABLE {table} AS {query}")
            yield found
    database.close()


@pytest.fixture
def alive(world: World) -> Iterator[World]:
    """The world, whose server and Spark answer before and after, from the same process."""
    pid = world.spark.pids()
    yield world
    began = time.monotonic()
    assert world.rows("Bea", "SELECT count(*) FROM service.revenue") == [[3]]
    assert world.spark.pids() == pid
    assert time.monotonic() - began < 60
    assert world.millrace.as_("Bea").get(STATEMENTS, limit=1).status_code == 200
