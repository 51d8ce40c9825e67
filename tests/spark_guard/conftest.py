"""One guarded server for all these tests, and what it may not give away."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession

from headgate.execution.spark import conf, java
from headgate.execution.spark import jars as engine_jars
from headgate.execution.spark.jars import Jars
from tests.spark_guard import server


@pytest.fixture(scope="session")
def jars() -> Jars:
    """The jars, fetched and built if this is the first time."""
    return engine_jars.ensure()


@pytest.fixture(scope="session")
def guarded(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[server.Server]:
    """A server with the guard, whose protocol is open, so that plans which no SQL makes reach the guard too."""
    with server.started(jars, tmp_path_factory.mktemp("guarded")) as running:
        yield running


@pytest.fixture(scope="session")
def spark(guarded: server.Server) -> Iterator[Any]:
    """A session on the guarded server."""
    session = SparkSession.builder.remote(guarded.url).create()
    session.conf.set(conf.USER, "bea@example.com")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def classpath(jars: Jars) -> str:
    """The class path of small Java programs that ask the jars themselves."""
    return ":".join([f"{java.spark_jars()}/*", *(str(path) for path in jars.paths)])
