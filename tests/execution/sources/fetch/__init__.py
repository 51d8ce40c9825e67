"""Files and tables from outside, brought to a worker."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.contracts.pipelines.steps import LakeItem, Land
from headgate.contracts.pipelines.streams import Stream
from headgate.execution.steps.context import Context, RunJob, Session, StepFailed
from headgate.execution.steps.files import FetchedFiles
from headgate.settings.settings import Settings

TABLE = LakeItem("tbl_1", "raw", "orders")


class Told(list[str]):
    """What a run's log was told."""


class Logged(Context):
    """What a step works with, and what the run's log was told."""

    told: Told


def _no_spark() -> Session:
    raise AssertionError("nothing is fetched by Spark")


def context(folder: Path, *, seconds: float = 60, outgoing: dict[str, Any] | None = None, **sources: Any) -> Logged:
    """A run on a worker that may call this machine; `log` is what it was told."""
    settings = Settings(
        data_dir=folder / "data", outgoing={"allow": ["127.0.0.1"], **(outgoing or {})}, sources=sources
    )
    job = RunJob(
        id="run_1",
        fence=1,
        token="hgw_x",
        steps=[],
        done=0,
        moment=datetime.now(UTC),
        time_zone="UTC",
        seconds=seconds,
        full_refresh=False,
        states={},
        endpoints={},
    )
    log = Told()
    found = Logged(
        job,
        settings,
        folder / "run",
        open_member=_no_spark,
        platform=None,
        tell=lambda level, text: log.append(text),
        note=lambda _: None,
    )
    found.told = log
    return found


def land(name: str, **stream: Any) -> Land:
    """A step that lands a stream."""
    wanted = Stream.model_validate({"name": name, "table": "orders", "of": "files", **stream})
    return Land(wanted, TABLE, LakeItem("tbl_2", "raw", "orders_rejected"), "evolve")


def endpoint(kind: str, config: dict[str, Any], **secrets: str) -> Endpoint:
    """A connection, opened."""
    return Endpoint("con_1", kind, config, secrets)


def contents(got: FetchedFiles) -> dict[str, bytes]:
    """What each file holds, by the name that members know."""
    return {one.name: Path(one.path).read_bytes() for one in got.files}


def refused(act: Callable[[], Any]) -> StepFailed:
    """Why something is not done."""
    try:
        act()
    except StepFailed as error:
        return error
    raise AssertionError("it was done")
