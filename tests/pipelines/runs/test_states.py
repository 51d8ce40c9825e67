"""Where the next run of a pipeline goes on: it is known as long as the table is, whatever becomes of the runs."""

from datetime import timedelta
from typing import Any

import pytest

from headgate.kit.clock import now
from headgate.pipelines.runs import cleanup as cleaning
from headgate.pipelines.runs.cleanup import purge
from headgate.pipelines.runs.models import run_table
from tests.lakehouse.catalog.support import SCHEMA
from tests.pipelines.runs.support import RunHand, make, start
from tests.support.company import Api, Company

pytestmark = pytest.mark.both_databases

CURSOR = {"snapshot": "1"}


def published(millrace: Company, pipeline: str) -> str:
    """A run that makes its output and is published with a state; its id."""
    run = start(millrace, pipeline)
    hand = RunHand(millrace)
    (job,) = hand.claim()
    assert hand.step(job, 0, "running").status_code == 200
    made = Api(millrace.client, job["token"]).post(
        "/iceberg/v1/namespaces/trusted/tables", {"name": "versions", "schema": SCHEMA}
    )
    assert made.status_code == 200, made.text
    assert hand.step(job, 0, "succeeded", cursor=CURSOR).status_code == 200
    assert hand.finish(job).json()["state"] == "succeeded"
    return run


def goes_on(millrace: Company, pipeline: str) -> list[Any]:
    """The states that the next run gets; it fails."""
    start(millrace, pipeline)
    hand = RunHand(millrace)
    (job,) = hand.claim()
    hand.finish(job, "failed", error_code="X", error="why")
    return list(job["states"].values())


def test_a_deleted_record_of_a_run_does_not_begin_its_pipeline_anew(millrace: Company) -> None:
    pipeline = make(millrace)
    run = published(millrace, pipeline)
    assert goes_on(millrace, pipeline) == [CURSOR]
    assert millrace.as_("Adam").request("DELETE", f"/api/runs/{run}").status_code == 200
    assert goes_on(millrace, pipeline) == [CURSOR]


def test_a_record_that_is_old_enough_to_go_does_not_either(millrace: Company) -> None:
    pipeline = make(millrace)
    run = published(millrace, pipeline)
    services: Any = millrace.client.app.state.services  # type: ignore[attr-defined]
    purge(millrace.database, services.store, millrace.settings, now() + timedelta(days=91))
    assert millrace.as_("Adam").get(f"/api/runs/{run}").status_code == 404
    assert goes_on(millrace, pipeline) == [CURSOR]


def test_one_that_somebody_resumes_meanwhile_stays(millrace: Company) -> None:
    pipeline, hand = make(millrace), RunHand(millrace)
    ended, resumed = start(millrace, pipeline), start(millrace, pipeline)
    for _ in range(2):
        (job,) = hand.claim()
        hand.finish(job, "failed", error_code="X", error="why")
    millrace.as_("Tess").post(f"/api/runs/{resumed}/resume", None).raise_for_status()
    over = run_table.c.state == "failed"
    gone = millrace.database.write(lambda connection: cleaning._deleted(connection, [ended, resumed], over))
    assert gone == [ended]
    assert millrace.as_("Adam").get(f"/api/runs/{resumed}").status_code == 200


def test_another_pipeline_that_writes_the_same_table_begins_at_the_beginning(millrace: Company) -> None:
    published(millrace, make(millrace))
    assert goes_on(millrace, make(millrace, name="Others")) == []
