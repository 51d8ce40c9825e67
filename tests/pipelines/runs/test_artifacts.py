"""The files that runs keep go with the record of their runs."""

from typing import Any

from headgate.pipelines.runs.artifacts import drop_left
from tests.pipelines.runs.support import RunHand, make, start
from tests.support.company import Company


def kept(millrace: Company, pipeline: str) -> str:
    """A run that is over and keeps a file; its id."""
    run = start(millrace, pipeline)
    hand = RunHand(millrace)
    (job,) = hand.claim()
    about = {"worker": hand.id, "fence": job["fence"], "media_type": "image/png"}
    answer = hand.request("PUT", f"/runs/{run}/artifacts/plot.png", content=b"plot", params=about)
    assert answer.status_code == 200, answer.text
    hand.finish(job, "failed", error_code="X", error="why")
    return run


def test_files_of_runs_whose_record_is_gone_are_removed(millrace: Company) -> None:
    services: Any = millrace.client.app.state.services  # type: ignore[attr-defined]
    one, other = make(millrace), make(millrace, name="Others", output="trusted.others")
    first, second, third = kept(millrace, one), kept(millrace, one), kept(millrace, other)
    assert drop_left(millrace.database, services.store) == 0
    assert millrace.as_("Adam").request("DELETE", f"/api/runs/{first}").status_code == 200
    assert millrace.as_("Adam").request("DELETE", f"/api/pipelines/{other}").status_code == 200
    assert drop_left(millrace.database, services.store) == 2
    assert [entry.path for entry in services.store.files("runs")] == [f"runs/{second}/1/plot.png"]
    assert third not in str(list(services.store.files("runs")))
    assert millrace.as_("Tess").get(f"/api/runs/{second}/artifacts/plot.png").content == b"plot"
