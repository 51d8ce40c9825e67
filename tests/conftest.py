"""Fixtures: databases, servers and the demo's company. CONTRIBUTING.md says which tests run on both databases."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from headgate.kit.database import Database
from headgate.schema import METADATA
from tests.support import java, mariadb, postgres, s3
from tests.support.company import Company, company
from tests.support.databases import Databases, on_sqlite
from tests.support.failures import pytest_report_header, pytest_runtest_makereport  # noqa: F401 - hooks of pytest
from tests.support.memory import waiting_for_no_disk, with_room
from tests.support.order import FromBothEnds, arrange
from tests.support.processes import pytest_itemcollected, pytest_runtest_protocol  # noqa: F401 - hooks of pytest
from tests.support.spark import SharedSpark
from tests.support.steps import Workshop, workshop

# The same examples each time, none of them judged by how long it takes; --hypothesis-profile=default tries others.
settings.load_profile("ci")


def pytest_configure() -> None:
    """Hear interrupts, as the commands that tests start do: a shell's job in the background inherits that it does not."""
    os.environ.setdefault(java.VARIABLE, java.QUICK)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that runs the whole matrix."""
    parser.addoption("--both-databases", action="store_true", help="run every test on SQLite and on PostgreSQL")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests marked `both_databases` on SQLite and PostgreSQL, others on SQLite."""
    both = metafunc.config.getoption("--both-databases") or metafunc.definition.get_closest_marker("both_databases")
    dialects = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)] if both else ["sqlite"]
    if "database_dialect" in metafunc.fixturenames:
        metafunc.parametrize("database_dialect", dialects)
    if "module_database_dialect" in metafunc.fixturenames:
        metafunc.parametrize("module_database_dialect", dialects, scope="module")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin and end with what takes longest."""
    arrange(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FromBothEnds | None:
    """Share Spark's tests by file, from both ends of the list."""
    return FromBothEnds(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a PostgreSQL server that lives as long as the tests."""
    with postgres.server(place=with_room()) as url:
        yield url


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[mariadb.MariaDb]:
    """A MariaDB server that lives as long as the tests."""
    with mariadb.server(place=with_room()) as found:
        yield found


@pytest.fixture(scope="session")
def s3_server() -> Iterator[s3.S3Server]:
    """An S3-compatible server that verifies signatures, for as long as the tests run."""
    with s3.server() as found:
        yield found


@pytest.fixture(scope="session")
def shared_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedSpark]:
    """The Spark of this test process, started when a test first asks it. Mark such tests `spark`, in xdist group spark."""
    found = SharedSpark(tmp_path_factory.mktemp("spark"))
    yield found
    found.close()


@pytest.fixture(scope="session")
def shared_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """The company, and a platform's Spark that may reach this machine. Each file of tests has tables of its own in it."""
    folder = tmp_path_factory.mktemp("workshop")
    for name in ("incoming", "out"):
        (folder / name).mkdir()
    wanted = {
        "outgoing": {"allow": ["127.0.0.1"]},
        "sources": {"folders": [str(folder / "incoming")]},
        "deliveries": {"folders": [str(folder / "out")]},
    }
    with workshop(folder, **wanted) as found:
        yield found


@pytest.fixture(scope="session", autouse=True)
def no_disk() -> Iterator[None]:
    """That nothing in the process of the tests waits for a disk."""
    with waiting_for_no_disk():
        yield


@pytest.fixture(scope="session")
def postgres_databases(postgres_url: str) -> Iterator[Databases]:
    """The databases of that PostgreSQL server."""
    found = Databases(postgres_url)
    yield found
    found.close()


@pytest.fixture
def database_url(database_dialect: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database."""
    if database_dialect == "sqlite":
        yield f"sqlite:///{tmp_path}/headgate.db"
        return
    with request.getfixturevalue("postgres_databases").made(None) as url:
        yield url


@pytest.fixture
def url_of_tables(database_dialect: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database with all tables and no rows."""
    if database_dialect == "sqlite":
        yield str(on_sqlite(tmp_path).engine.url)
        return
    with request.getfixturevalue("postgres_databases").made() as url:
        yield url


@pytest.fixture
def postgres_database(postgres_databases: Databases) -> Iterator[Database]:
    """A PostgreSQL database with all tables and no rows."""
    with postgres_databases.made() as url:
        found = Database(url)
        yield found
        found.close()


@pytest.fixture
def database(url_of_tables: str) -> Iterator[Database]:
    """A database with all tables and no rows."""
    found = Database(url_of_tables)
    yield found
    found.close()


@pytest.fixture(scope="module")
def shared_database(module_database_dialect: str, request: pytest.FixtureRequest) -> Iterator[Database]:
    """One database for many worlds, one after the other."""
    if module_database_dialect == "postgresql":
        with request.getfixturevalue("postgres_databases").made() as url:
            found = Database(url)
            yield found
            found.close()
        return
    found = Database("sqlite://")
    METADATA.create_all(found.engine)
    yield found
    found.close()


@pytest.fixture
def millrace(database: Database, tmp_path: Path) -> Iterator[Company]:
    """The demo's company behind the application."""
    with company(database, tmp_path) as found:
        yield found


@pytest.fixture
def millrace_on_sqlite(tmp_path: Path) -> Iterator[Company]:
    """The demo's company behind the application, on SQLite."""
    with company(on_sqlite(tmp_path), tmp_path) as one:
        yield one


@pytest.fixture
def database_url_of_postgres(postgres_databases: Databases) -> Iterator[str]:
    """The URL of an empty PostgreSQL database."""
    with postgres_databases.made(None) as url:
        yield url
