"""How CI runs tests: one failure fails the run, and is reported with what is needed to see it again."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
CONFTEST = "from tests.support.failures import pytest_report_header, pytest_runtest_makereport  # noqa: F401\n"
PASSES_THE_SECOND_TIME = """
import os
from pathlib import Path

def test_unsteady(tmp_path):
    seen = Path(__file__).with_name("seen")
    tmp_path.joinpath("server.log").write_text("the server ran out of luck")
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(90):
        os.mkdir("d" * 50, dir_fd=folder)
        folder = os.open("d" * 50, os.O_RDONLY, dir_fd=folder)
    print("what it printed")
    seen.write_text(seen.read_text() + "x" if seen.exists() else "x")
    assert seen.read_text() != "x", "the first time"
"""
FINE = "def test_fine():\n    assert True\n"
TARGETS = ["test-without-spark", "test-on-spark", "test-alone"]


def commands(target: str) -> list[str]:
    """What make runs for a target."""
    told = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", target], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return told.stdout.splitlines()


@pytest.mark.parametrize("target", TARGETS)
def test_one_failure_fails_the_run_and_is_reported_in_full(tmp_path: Path, target: str) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -q\nmarkers =\n    spark\n    alone\n    cluster\n")
    (tmp_path / "conftest.py").write_text(CONFTEST)
    mark = {"test-on-spark": "spark", "test-alone": "alone"}.get(target)
    marked = f"import pytest\npytestmark = pytest.mark.{mark}\n" if mark else ""
    (tmp_path / "test_some.py").write_text(marked + PASSES_THE_SECOND_TIME)
    (tmp_path / "test_other.py").write_text(marked + FINE)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    (tmp_path / "tools").symlink_to(ROOT / "tools")
    found = commands(target)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "12345"}
    environment = {name: value for name, value in environment.items() if not name.startswith("PYTEST_")}
    [command] = found
    ended = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert (tmp_path / "seen").read_text() == "x", f"{shlex.quote(command)} ran the test again"
    assert "1 failed, 1 passed" in ended.stdout
    for told in ("PYTHONHASHSEED=12345", "hypothesis seed", "load ", "the server ran out of luck", "what it printed"):
        assert told in ended.stdout, ended.stdout


def test_all_three_parts_run_whichever_fails() -> None:
    told = "\n".join(commands("test"))
    assert "--keep-going" in told
    for target in TARGETS:
        assert target in told
    assert (ROOT / ".ci/run").read_text().splitlines()[-1] == "exec make lint test"
