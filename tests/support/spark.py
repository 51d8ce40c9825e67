"""One guarded Spark a test process, whichever server it asks at the moment."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headgate.execution.sandbox import relay
from headgate.execution.spark.member import MemberSpark, SqlSession
from headgate.settings.settings import Settings
from tests.support.cluster import Cluster


class Doorway:
    """An address that leads to another, which a test chooses: Spark is told the catalog's address once, at its start."""

    def __init__(self) -> None:
        self._listener = relay.listen("127.0.0.1", 0)
        self._target: tuple[str, int] | None = None
        self.port: int = self._listener.getsockname()[1]
        relay.relay(self._listener, self._dial)

    @property
    def catalog_url(self) -> str:
        """The catalog, as Spark is told."""
        return f"http://127.0.0.1:{self.port}/iceberg"

    @contextmanager
    def leads_to(self, port: int) -> Iterator[None]:
        """Lead to a port of this machine for a while, and then to where it led before."""
        before, self._target = self._target, ("127.0.0.1", port)
        try:
            yield
        finally:
            self._target = before

    def close(self) -> None:
        self._listener.close()

    def _dial(self) -> socket.socket:
        if self._target is None:
            raise ConnectionRefusedError
        return relay.address(*self._target)()


class SharedSpark:
    """A running MemberSpark, its warehouse, and the doorway to the server that a test runs."""

    def __init__(self, folder: Path, **spark: Any) -> None:
        self.settings = Settings(data_dir=folder, spark={"memory": "1g", **spark})
        self.doorway = Doorway()
        self.cluster: Cluster | None = None
        self.member = MemberSpark(self.settings, self.doorway.catalog_url)

    def use(self, running: Cluster) -> None:
        """Use a cluster instead."""
        self.cluster = running
        self.settings = Settings(data_dir=self.settings.data_dir, spark={"member_url": running.url})
        self.member = MemberSpark(self.settings, self.doorway.catalog_url)

    @property
    def warehouse(self) -> dict[str, str]:
        """The settings by which a server keeps its tables where this Spark finds them."""
        return {"url": self.settings.warehouse_url}

    @contextmanager
    def session(self, token: str, **more: Any) -> Iterator[SqlSession]:
        """A session, closed at the end."""
        self.member.ensure()
        found = self.member.open(token, **more)
        try:
            yield found
        finally:
            found.close()

    def rows(self, sql: str, token: str, **more: Any) -> list[dict[str, Any]]:
        """The whole result of a statement."""
        with self.session(token) as session:
            return rows_of(session, sql, **more)

    def pids(self) -> list[int]:
        """The processes that work on statements."""
        own = self.member.state()["pid"]
        return self.cluster.pids() if self.cluster else [own] if own else []

    def cpu_seconds(self) -> float:
        """The processor time that they have used."""
        return sum(map(cpu_seconds, self.pids()))

    def is_calm(self) -> bool:
        """Whether they compute nothing, for a second."""
        before = self.cpu_seconds()
        time.sleep(1)
        return self.cpu_seconds() - before < 0.5

    def close(self) -> None:
        self.member.close()
        self.doorway.close()


def rows_of(session: SqlSession, sql: str, **more: Any) -> list[dict[str, Any]]:
    """The whole result of a statement in this session."""
    return [row for batch in session.run(sql, **more).batches for row in batch.to_pylist()]


def cpu_seconds(pid: int) -> float:
    """The processor time that a process has used."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def within(seconds: float, check: Callable[[], object]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.05)
