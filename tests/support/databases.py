"""Databases with all tables, and the demo's company in them: made once in a test process, and copied for each test."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import Connection, Engine
from sqlalchemy.engine import make_url

from headgate.access.worlds import read_world
from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.schema import METADATA
from headgate.worlds.loader import load

WORLD = files("headgate.demo") / "company.yaml"
AGE = timedelta(hours=1)
"""For how long the company has been there, so that nothing depends on when a test process first asked for it."""

Rows = dict[str, Any]


Make = Callable[[Engine], None]
"""What is done once to a database that is empty."""


def tables(engine: Engine) -> None:
    """Make all tables, as the models say."""
    METADATA.create_all(engine)


@cache
def _file(make: Make) -> bytes:
    """An SQLite database that was made so."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "headgate.db")
        made = Database(f"sqlite:///{file}")
        make(made.engine)
        made.close()
        return file.read_bytes()


def on_sqlite(folder: Path, make: Make = tables) -> Database:
    """A database of this folder, with all tables and no rows."""
    file = folder / "headgate.db"
    file.write_bytes(_file(make))
    return Database(f"sqlite:///{file}")


class Databases:
    """The databases of a PostgreSQL server of our own."""

    def __init__(self, url: str) -> None:
        self._url, self._numbers = make_url(url), count(1)
        self._server = psycopg.connect(url, autocommit=True)
        # Older servers know no other way, and no word for it.
        self._way = "STRATEGY FILE_COPY" if self._server.info.server_version >= 15_00_00 else ""
        self._templates: dict[Make, str] = {}

    def _named(self, name: str) -> str:
        return self._url.set(database=name).render_as_string(hide_password=False)

    @contextmanager
    def made(self, make: Make | None = tables) -> Iterator[str]:
        """The URL of one that was made so, with all tables and no rows; or of an empty one. For a while."""
        name = f"test_{next(self._numbers)}"
        self._server.execute(f"CREATE DATABASE {name} TEMPLATE {self._template(make)} {self._way}")
        yield self._named(name)
        self._server.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _template(self, make: Make | None) -> str:
        if make is None:
            return "template1"
        if make not in self._templates:
            name = f"template_{len(self._templates)}_of_tests"
            self._server.execute(f"CREATE DATABASE {name}")
            found = Database(self._named(name))
            make(found.engine)
            found.close()
            self._templates[make] = name
        return self._templates[make]

    def close(self) -> None:
        """Let go of the server."""
        self._server.close()


_company: dict[str, Rows] = {}
"""The rows of the company by table, for each kind of database, as its driver takes them."""


def fill(database: Database) -> None:
    """Put the demo's company into a database whose tables exist and are empty."""
    kept = _company.get(database.dialect)
    if kept:
        database.write(lambda connection: _put(connection, kept))
        return
    world = read_world(WORLD.read_text(encoding="utf-8"), "company.yaml")
    database.write(lambda connection: load(connection, world, now() - AGE, name="Millrace Foods"))
    with database.read() as connection:
        _company[database.dialect] = _taken(connection)


def _taken(connection: Connection) -> Rows:
    raw: Any = connection.connection.driver_connection
    found: Rows = {}
    for table in METADATA.sorted_tables:
        if connection.dialect.name == "sqlite":
            rows = raw.execute(f"SELECT * FROM {table.name}").fetchall()
        else:
            with raw.cursor().copy(f"COPY {table.name} TO STDOUT") as copy:
                rows = b"".join(copy)
        if rows:
            found[table.name] = rows
    return found


def _put(connection: Connection, kept: Rows) -> None:
    raw: Any = connection.connection.driver_connection
    if connection.dialect.name == "sqlite":
        raw.execute("PRAGMA defer_foreign_keys = ON")
        for name, rows in kept.items():
            raw.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        return
    raw.execute("SET LOCAL session_replication_role = replica")
    for name, rows in kept.items():
        with raw.cursor().copy(f"COPY {name} FROM STDIN") as copy:
            copy.write(rows)
