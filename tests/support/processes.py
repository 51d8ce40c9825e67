"""Which tests start processes. `make check` leaves them out, so a test that is not marked may start none."""

import sys
from collections.abc import Generator
from typing import Any

import pytest

FIXTURES = frozenset({"mariadb_server", "postgres_url", "s3_server", "shared_shop", "shared_spark", "with_sandbox"})
MARKS = ("cluster", "postgres", "processes", "spark")
_EVENTS = frozenset({"os.fork", "os.forkpty", "os.posix_spawn", "os.system", "subprocess.Popen"})

_current: list[str] = []
"""The test that may start no process, while one runs."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what needs a fixture that starts processes."""
    if FIXTURES.intersection(getattr(item, "fixturenames", ())) or any(map(item.get_closest_marker, MARKS)):
        item.add_marker("processes")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Keep the marks true."""
    _current[:] = [] if item.get_closest_marker("processes") else [item.nodeid]
    try:
        return (yield)
    finally:
        _current.clear()


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if _current and event in _EVENTS:
        raise AssertionError(f"{_current[0]} starts a process {str(arguments[:1])[:200]}: mark it `processes`")


sys.addaudithook(_refuse)
