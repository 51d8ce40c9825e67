"""Sources whose streams are landed one run after the other, as published runs are."""

import itertools
from pathlib import Path
from typing import Any

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.contracts.pipelines.steps import LakeItem, Land
from headgate.contracts.pipelines.streams import Stream
from headgate.execution.steps import land
from headgate.execution.steps.context import Result
from tests.support.steps import Running, Workshop

_numbers = itertools.count(1)


class Source:
    """A connection, and tables of its own."""

    def __init__(self, shop: Workshop, kind: str, config: dict[str, Any], **secrets: str) -> None:
        self.shop, self.endpoint = shop, Endpoint("con_1", kind, config, secrets)
        self.states: dict[str, Any] = {}
        self.table = f"t{next(_numbers)}"
        self.volume: LakeItem | None = None
        self.running: Running | None = None

    def step(self, name: str, *, policy: str = "evolve", **stream: Any) -> Land:
        """The step for a stream."""
        own, beside = self.shop.item(f"raw.{self.table}"), self.shop.item(f"raw.{self.table}_rejected")
        wanted = Stream.model_validate({"name": name, "table": self.table, **stream})
        return Land(wanted, own, beside, policy, self.volume)  # type: ignore[arg-type]

    def start(self, *, full_refresh: bool = False, time_zone: str = "UTC") -> Running:
        """A run for it."""
        self.running = self.shop.run(
            f"raw.{self.table}",
            f"raw.{self.table}_rejected",
            states=self.states,
            full_refresh=full_refresh,
            time_zone=time_zone,
            endpoints={self.endpoint.id: self.endpoint},
        )
        return self.running

    def land(self, name: str, *, full_refresh: bool = False, time_zone: str = "UTC", **more: Any) -> Result:
        """Land a stream, and publish it."""
        running = self.start(full_refresh=full_refresh, time_zone=time_zone)
        found = land.run(self.step(name, **more), running.context)
        moved = {one.table_id for one in running.publish()}
        own = self.shop.item(f"raw.{self.table}").id
        if found.state is not None and own in moved:
            self.states = {own: found.state}
        return found

    @property
    def log(self) -> str:
        """The log of the last run."""
        assert self.running
        return self.running.text

    def rows(self, columns: str = "*", order: str = "1") -> list[dict[str, Any]]:
        """The table's rows."""
        return self.shop.rows(f"SELECT {columns} FROM raw.{self.table} ORDER BY {order}")

    def values(self, columns: str = "*", order: str = "1") -> list[tuple[Any, ...]]:
        """The table's rows, without names."""
        return [tuple(row.values()) for row in self.rows(columns, order)]

    def types(self) -> dict[str, str]:
        """The table's columns."""
        found = self.shop.rows(f"DESCRIBE TABLE raw.{self.table}")
        return {row["col_name"]: row["data_type"] for row in found if row["col_name"] and row["col_name"][0] != "#"}

    def rejected(self) -> list[dict[str, Any]]:
        """The rows beside."""
        return self.shop.rows(f"SELECT * FROM raw.{self.table}_rejected ORDER BY record")


class Files(Source):
    """A source of files in a folder."""

    def __init__(self, shop: Workshop, folder: Path) -> None:
        super().__init__(shop, "folder", {"path": str(folder)})
        self.folder = folder

    def put(self, name: str, content: str | bytes) -> Path:
        """Put a file there."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path
