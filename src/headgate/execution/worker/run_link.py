"""What a worker tells the server of its runs. What must arrive is sent until it does, or until it is of no use."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.contracts.jobs import JobOut
from headgate.contracts.pipelines.steps import from_json
from headgate.contracts.runs import RunPayload
from headgate.execution.steps.context import Result, RunJob, VolumeFile
from headgate.execution.worker.server_link import JOBS, Link

RUNS = "/api/worker/runs"
LONGEST_LINE = 4000


class RunLink:
    """The server, as the part of a worker that has runs calls it."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.catalog_url = f"{link.server}/iceberg"

    @property
    def is_full(self) -> bool:
        """Whether the server's last answer was that a disk of its own is full."""
        return self._link.is_full

    def lines(self, job: RunJob, lines: list[tuple[datetime, str, str]]) -> None:
        """Add to the run's log."""
        told = [{"at": at.isoformat(), "level": level, "text": text[:LONGEST_LINE]} for at, level, text in lines]
        self._link.surely("POST", f"{JOBS}/run/{job.id}/log", waits=True, json={**self._mine(job), "lines": told})

    def step(self, job: RunJob, number: int, state: str, result: Result | None = None) -> None:
        """Tell that a step has begun, or what came of it."""
        told: dict[str, Any] = {}
        if result is not None:
            counts = {"rows_in": result.rows_in, "rows_out": result.rows_out, "rejected": result.rejected}
            check = asdict(result.check) if result.check else None
            told = {**counts, "bytes": result.bytes, "cursor": result.state, "check": check, "detail": result.detail}
        self._surely("POST", f"{job.id}/steps/{number}", json={**self._mine(job), "state": state, **told})

    def remember(self, job: RunJob, number: int, memory: dict[str, Any]) -> None:
        """Keep what a step must know if it is begun again; Dropped if the run is not to go on."""
        body = {**self._mine(job), "state": "running", "memory": memory}
        self._surely("POST", f"{job.id}/steps/{number}", json=body)

    def artifact(self, job: RunJob, name: str, media_type: str, content: bytes) -> None:
        """Keep a file with the run."""
        self._surely(
            "PUT",
            f"{job.id}/artifacts/{name}",
            content=content,
            params={**self._mine(job), "media_type": media_type},
            headers={"Content-Type": "application/octet-stream"},
        )

    def files(self, job: RunJob, volume: str) -> list[VolumeFile]:
        """The files of a volume that the run declared."""
        result = self._link.surely("GET", f"{RUNS}/{job.id}/volumes/{volume}", params=self._mine(job))
        return [
            VolumeFile(**{**value, "created": datetime.fromisoformat(value["created"])}) for value in result["items"]
        ]

    def _mine(self, job: RunJob) -> dict[str, Any]:
        return {"worker": self._link.worker, "fence": job.fence}

    def _surely(self, method: str, path: str, **more: Any) -> Any:
        return self._link.surely(method, f"{RUNS}/{path}", **more)


def run_job(job: JobOut) -> RunJob:
    """A run as its steps see it."""
    payload = RunPayload.model_validate(job.payload)
    return RunJob(
        id=job.id,
        fence=job.fence,
        token=payload.token,
        reading_token=payload.reading_token,
        user=payload.user,
        steps=from_json(payload.steps),
        done=payload.done,
        moment=payload.moment,
        time_zone=payload.time_zone,
        seconds=job.seconds,
        full_refresh=payload.full_refresh,
        states=payload.states,
        memories=payload.memories,
        pipeline=payload.pipeline,
        endpoints={end.id: Endpoint(end.id, end.kind, end.config, end.secrets) for end in payload.endpoints},
        parameters=payload.parameters,
        isolated=job.isolated,
    )
