"""The context of a step: its run, Spark, folder, log and checkpoints."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from headgate.contracts.external_systems.endpoints import Endpoint

if TYPE_CHECKING:
    from headgate.settings.settings import Settings


class RunStopped(Exception):
    """The run must stop: it was cancelled, timed out, was reassigned, or the worker shuts down."""


class StepFailed(Exception):
    """A step failed; the message says why and what to do. It is retried only if `passing`."""

    def __init__(self, code: str, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.code, self.message, self.passing = code, message, passing


@dataclass(frozen=True, slots=True)
class RunJob:
    """A run that this worker was given."""

    id: str
    fence: int
    token: str = field(repr=False)
    steps: list[Any]
    done: int
    """How many of the steps were finished before, under an earlier fence."""
    moment: datetime
    """The time that the run is about: when it was due, or asked for."""
    time_zone: str
    seconds: float
    full_refresh: bool
    states: dict[str, dict[str, Any]]
    """By the id of each output: where its last published run ended, such as the cursor's highest value."""
    endpoints: dict[str, Endpoint] = field(repr=False)
    parameters: dict[str, Any] = field(default_factory=dict)
    memories: dict[int, dict[str, Any]] = field(default_factory=dict)
    """By the numbers of the steps: what each told while it ran, when the run was begun before."""
    pipeline: str = ""
    user: str = ""
    """Whom `current_user()` names."""
    isolated: bool = False
    """Whether its SQL and its steps run on a Spark of their own."""
    reading_token: str = field(default="", repr=False)
    """A second token, for a notebook: it reads the inputs that the notebook declared, and nothing else."""


@dataclass(slots=True)
class CheckResult:
    """The result of an expectation; `sample` are failed rows by column."""

    passed: bool
    failed_rows: int
    checked_rows: int
    message: str
    sample: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Result:
    """The result of a step."""

    rows_in: int = 0
    rows_out: int = 0
    rejected: int = 0
    bytes: int = 0
    state: dict[str, Any] | None = None
    """For the step's table: where the next run goes on; stored with the publish, not before."""
    check: CheckResult | None = None
    detail: dict[str, Any] = field(default_factory=dict)


class Session(Protocol):
    """A Spark session with the run's token (headgate.execution.spark.session.SqlSession)."""

    def run(self, sql: str, on_progress: Any = None, **more: Any) -> Any:
        """Execute a statement."""

    def schema(self, sql: str, args: Any = None) -> Any:
        """The columns that a query would give."""

    def interrupt(self) -> None:
        """Stop it, from another thread."""

    def close(self) -> None:
        """Free it."""


@dataclass(frozen=True, slots=True)
class VolumeFile:
    """A file of a volume. New content has a new id."""

    id: str
    path: str
    size: int
    created: datetime


class Volumes(Protocol):
    """The files of the volumes that a run declared (headgate.execution.steps.volumes)."""

    def files(self, volume: str) -> list[VolumeFile]:
        """What a volume holds now, by its id."""

    def local(self, volume: str, file: VolumeFile, folder: Path) -> Path:
        """The local path of a file: in the warehouse folder, or downloaded from the bucket to this folder."""


class Context:
    """A run on this worker, as its steps see it."""

    def __init__(
        self,
        job: RunJob,
        settings: "Settings",
        folder: Path,
        *,
        open_member: Callable[[], Session],
        platform: Any,
        tell: Callable[[str, str], None],
        note: Callable[[Any], None],
        volumes: Volumes | None = None,
        keep: Callable[[str, str, bytes], None] = lambda *_: None,
        catalog_url: str = "",
    ) -> None:
        self.job, self.settings, self.folder = job, settings, folder
        self.platform, self._volumes = platform, volumes
        self.catalog_url = catalog_url
        """Where the catalog is, for a Spark that a step starts itself."""
        self._open_member, self._tell, self._note = open_member, tell, note
        self.keep = keep
        """Keeps a file with the run: its name, media type and content."""
        self.remembers: Callable[[int, dict[str, Any]], None] = lambda *_: None
        """Has the server keep what a step tells, by its number; Stopped if it says that the run is not to go on."""
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._stops: list[Callable[[], None]] = []

    def log(self, text: str, level: str = "info") -> None:
        """Add a line to the run's log, which everyone who may see the run can read. Never log secrets."""
        self._tell(level, text)

    def progress(self, told: Any) -> None:
        """Report the progress of Spark (headgate.execution.spark.session.Progress)."""
        self._note(told)

    def remember(self, step: Any, memory: dict[str, Any]) -> None:
        """Keep what this step must know if it is begun again, in place of what it kept before.

        Stopped if the run was cancelled or has another worker by now: so it is also the last question before something
        is done outside that cannot be taken back.
        """
        self.check_stopped()
        self.remembers(self.job.steps.index(step), memory)

    def remembered(self, step: Any) -> dict[str, Any]:
        """What this step kept when it was begun before."""
        return self.job.memories.get(self.job.steps.index(step), {})

    @property
    def volumes(self) -> Volumes:
        """The files of its volumes."""
        if self._volumes is None:
            raise StepFailed("NO_VOLUMES", "This worker has no access to volumes; run the pipeline on another worker")
        return self._volumes

    def check_stopped(self) -> None:
        """Raise RunStopped if the run must stop."""
        if self.stopping.is_set():
            raise RunStopped

    @contextmanager
    def sql(self) -> Iterator[Session]:
        """A session on the guarded Spark with the run's token."""
        self.check_stopped()
        session = self._open_member()
        try:
            with self.on_stop(session.interrupt):
                yield session
        finally:
            session.close()

    def on_stop(self, act: Callable[[], None]) -> AbstractContextManager[None]:
        """Within the block, call `act` from another thread if the run must stop."""
        return self._stopping_with(act)

    @contextmanager
    def _stopping_with(self, act: Callable[[], None]) -> Iterator[None]:
        with self._lock:
            self._stops.append(act)
            is_late = self.stopping.is_set()
        if is_late:
            act()
        try:
            yield
        finally:
            with self._lock:
                self._stops.remove(act)

    def stop(self) -> None:
        """Stop the run: start no further step, and interrupt the current ones."""
        self.stopping.set()
        with self._lock:
            acts = list(self._stops)
        for act in acts:
            threading.Thread(target=act, name="stop", daemon=True).start()
