"""`headgate run`, as members use it."""

import json
from pathlib import Path

import pytest

from headgate.cli.main import app
from tests.organization.profile.support import Commands
from tests.pipelines.runs.support import RunHand, make, show, start
from tests.support.company import Company

CHECK = {"table": "trusted.versions", "check": "rows", "least": 1}


@pytest.fixture
def millrace(millrace_on_sqlite: Company) -> Company:
    """The company; what is on the other database differs in nothing that commands show."""
    return millrace_on_sqlite


@pytest.fixture
def run(millrace: Company, monkeypatch: pytest.MonkeyPatch) -> Commands:
    return Commands(millrace, app, monkeypatch)


def test_a_run_is_started_looked_at_and_cancelled(millrace: Company, run: Commands) -> None:
    make(millrace)
    said = run("Tess", "run", "start", "Versions")
    assert said.exit_code == 0, said.output
    identifier = said.output.split()[1].rstrip(":")
    assert f"Run {identifier}: queued." in said.output
    assert "The run is waiting for a free worker." in said.output
    assert identifier in run("Tess", "run", "list", "Versions").output
    assert json.loads(run("Tess", "run", "show", identifier, "--json").output)["state"] == "queued"
    assert run("Tess", "run", "cancel", identifier).output == "The run is cancelled.\n"
    assert run("Tess", "run", "resume", identifier).output == "The run is queued.\n"
    missing = run("Tess", "run", "start", "Nothing of that name")
    assert (missing.exit_code, "There is no pipeline called" in missing.output) == (1, True)
    for command in (("show",), ("log",), ("cancel",), ("resume",)):
        hidden, none = run("Bea", "run", *command, identifier), run("Bea", "run", *command, "run_" + "0" * 20)
        assert hidden.exit_code == none.exit_code == 1
        assert hidden.output.replace(identifier, "X") == none.output.replace("run_" + "0" * 20, "X")


def test_following_tells_the_log_the_steps_and_the_end(millrace: Company, run: Commands) -> None:
    identifier = start(millrace, make(millrace, expectations=[CHECK]))
    hand = RunHand(millrace)
    (job,) = hand.claim()
    hand.lines(job, "first \x1b[31mline")
    hand.step(job, 0, "running")
    hand.step(job, 0, "succeeded", rows_out=3, rejected=1)
    hand.step(job, 1, "running")
    found = {"passed": False, "failed_rows": 1, "checked_rows": 3, "message": "it has \x1b[2J none", "sample": []}
    hand.step(job, 1, "failed", check=found)
    hand.finish(job, "failed", error_code="EXPECTATION_FAILED", error="it has \x1b[2J none")
    said = run("Tess", "run", "follow", identifier)
    assert said.exit_code == 1
    assert f"Run {identifier}: failed." in said.output
    assert "first \ufffd[31mline" in said.output
    assert "[EXPECTATION_FAILED] it has \ufffd[2J none" in said.output
    assert "\x1b" not in said.output
    rows = [line.split() for line in said.output.splitlines()]
    assert [row[-4:] for row in rows if row[:1] == ["1"]] == [["succeeded", "3", "1", "—"]]
    assert "first" in run("Tess", "run", "log", identifier).output


def test_a_file_of_a_run_is_saved_or_none_is(millrace: Company, run: Commands, tmp_path: Path) -> None:
    identifier = start(millrace, make(millrace))
    hand = RunHand(millrace)
    (job,) = hand.claim()
    about = {"worker": hand.id, "fence": job["fence"], "media_type": "image/png"}
    assert (
        hand.request("PUT", f"/runs/{identifier}/artifacts/plot.png", content=b"plot", params=about).status_code == 200
    )
    to = tmp_path / "plot.png"
    missing = run("Tess", "run", "artifact", identifier, "other.png", "-o", str(to))
    assert (missing.exit_code, to.exists()) == (1, False)
    assert run("Tess", "run", "artifact", identifier, "plot.png", "-o", str(to)).exit_code == 0
    assert to.read_bytes() == b"plot"
    assert run("Tess", "run", "artifact", identifier, "plot.png", "-o", str(to)).exit_code != 0


def test_an_admin_deletes_the_record_of_one_that_is_over(millrace: Company, run: Commands) -> None:
    identifier = start(millrace, make(millrace))
    early = run("Adam", "run", "delete", identifier)
    assert (early.exit_code, "cancel it first" in early.output) == (1, True)
    run("Tess", "run", "cancel", identifier)
    assert run("Tess", "run", "delete", identifier).exit_code == 1
    assert show(millrace, identifier)["state"] == "cancelled"
    assert run("Adam", "run", "delete", identifier).output == "Deleted.\n"
    assert run("Adam", "run", "show", identifier).exit_code == 1


@pytest.mark.parametrize("text", ["a", "=1"])
def test_a_parameter_has_a_name_and_a_value(millrace: Company, run: Commands, text: str) -> None:
    make(millrace)
    said = run("Tess", "run", "start", "Versions", "-p", text)
    assert (said.exit_code, "Traceback" in said.output) == (2, False), said.output
