"""The routes of jobs answer workers alone, and tell nobody else which kinds of job there are."""

from typing import Any

import pytest

from tests.support.company import Company

WORKER = "wrk_00000000000000000000"


@pytest.mark.parametrize("kind", ["run", "nothing"])
def test_a_caller_without_the_worker_secret_gets_the_same_answer_for_every_kind(millrace: Company, kind: str) -> None:
    about = {"worker": WORKER, "name": "host:1", "version": "1", "state": {}}
    beat = {"kind": kind, "id": "run_00000000000000000000", "fence": 1}
    requests: tuple[tuple[str, Any], ...] = (
        (f"/api/worker/jobs/{kind}/claim", {**about, "slots": 1}),
        ("/api/worker/jobs/heartbeat", {**about, "running": [beat]}),
        (f"/api/worker/jobs/{kind}/run_00000000000000000000/finish", {"worker": WORKER, "fence": 1, "state": "lost"}),
    )
    for path, body in requests:
        for answer in (millrace.client.post(path, json=body), millrace.as_("Tess").post(path, body)):
            assert answer.status_code == 401, (path, answer.text)
