"""A worker by hand: what a worker says over HTTP about runs, said by a test."""

from datetime import timedelta
from typing import Any

from headgate.kit.clock import now
from headgate.kit.ids import new_id
from headgate.pipelines.runs.job import RUNS
from headgate.platform.jobs.cleanup import LeaseSweeper
from tests.support.company import Company

HISTORY = {"kind": "history", "table": "raw.orders", "output": "trusted.versions", "keys": ["id"]}


def make(millrace: Company, member: str = "Tess", name: str = "Versions", **more: Any) -> str:
    """A pipeline without SQL, which is saved at once; its id."""
    definition = {**HISTORY, **more}
    answer = millrace.as_(member).post("/api/pipelines", {"name": name, "definition": definition})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def start(millrace: Company, pipeline: str, member: str = "Tess", **how: Any) -> str:
    """A run that waits; its id."""
    answer = millrace.as_(member).post(f"/api/pipelines/{pipeline}/runs", how)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def show(millrace: Company, run: str, member: str = "Tess") -> Any:
    answer = millrace.as_(member).get(f"/api/runs/{run}")
    assert answer.status_code == 200, answer.text
    return answer.json()


class RunHand:
    """A worker of the company's server, without a Spark."""

    def __init__(self, millrace: Company) -> None:
        self.millrace, self.id = millrace, new_id("worker")
        self.secret = millrace.client.app.state.services.worker_secret  # type: ignore[attr-defined]

    def request(self, method: str, path: str, **more: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.secret}", **more.pop("headers", {})}
        return self.millrace.client.request(method, f"/api/worker{path}", headers=headers, **more)

    def about(self) -> dict[str, Any]:
        return {"worker": self.id, "name": "by hand", "version": "1", "state": {}}

    def claim(self, slots: int = 8) -> list[dict[str, Any]]:
        answer = self.request("POST", "/jobs/run/claim", json={**self.about(), "slots": slots})
        assert answer.status_code == 200, answer.text
        return [{**job, **job["payload"]} for job in answer.json()["jobs"]]

    def beat(self, *jobs: dict[str, Any]) -> dict[str, Any]:
        running = [{"kind": "run", "id": job["id"], "fence": job["fence"]} for job in jobs]
        answer = self.request("POST", "/jobs/heartbeat", json={**self.about(), "running": running})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def step(self, job: dict[str, Any], number: int, state: str, **more: Any) -> Any:
        body = {"worker": self.id, "fence": job["fence"], "state": state, **more}
        return self.request("POST", f"/runs/{job['id']}/steps/{number}", json=body)

    def do(self, job: dict[str, Any], **more: Any) -> None:
        """All steps that are left, each begun and finished."""
        for number in range(job["done"], len(job["steps"])):
            assert self.step(job, number, "running").status_code == 200
            assert self.step(job, number, "succeeded", **more).status_code == 200

    def lines(self, job: dict[str, Any], *texts: str) -> Any:
        told = [{"at": now().isoformat(), "text": one} for one in texts]
        return self.request(
            "POST", f"/jobs/run/{job['id']}/log", json={"worker": self.id, "fence": job["fence"], "lines": told}
        )

    def finish(self, job: dict[str, Any], state: str = "succeeded", **more: Any) -> Any:
        body = {"worker": self.id, "fence": job["fence"], "state": state, **more}
        return self.request("POST", f"/jobs/run/{job['id']}/finish", json=body)


def lose(millrace: Company) -> None:
    """As if every lease had run out a while ago."""
    LeaseSweeper(RUNS, millrace.settings, millrace.database).sweep(now() + timedelta(minutes=5))
