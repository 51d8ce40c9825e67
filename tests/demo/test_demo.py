"""The demo, run once as a newcomer runs it: it answers its own questions, and keeps to its folder."""

import shutil
import subprocess
from pathlib import Path

import pytest

from headgate.demo import lake
from headgate.demo.commands import MemberCommands, StepFailed
from tests.support.installation import Installation, gone, installed

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_the_demo_answers_its_own_questions_and_keeps_to_its_folder(tmp_path: Path) -> None:
    settings = f'[database]\nurl = "sqlite:///{tmp_path}/real.db"\n[warehouse]\nurl = "file://{tmp_path}/real"\n'
    (tmp_path / "headgate.toml").write_text(settings)
    folder = tmp_path / "demo"
    folder.mkdir()
    for left in ("demo", "headgate.db", "keys.json"):
        (folder / left).write_text("left by a demo before")
    done = Installation(tmp_path).run_process("demo", "--no-stay", "--folder", str(folder), seconds=900)
    said = done.stdout
    assert done.returncode == 0, done.stderr
    assert said.count("$ HEADGATE_SERVER_URL=") == 5
    assert "Ben cannot edit data_mart:Revenue" in said
    assert "Bea can execute table:service.revenue" in said
    lake, _, flow = said.partition("Now data that moves")
    by_sql, by_pyiceberg = lake.partition("7. Bea was granted")[2].split("8. The same")
    # Each of the four regions once, by SQL and by PyIceberg, for Bea alone.
    for answer in (by_sql, by_pyiceberg.partition("as Bea")[2]):
        assert [answer.count(region) for region in ("east", "north", "south", "west")] == [1, 1, 1, 1]
    assert by_sql.count("TABLE_OR_VIEW_NOT_FOUND") == 1
    assert "NoSuchTableException: Table does not exist: service.revenue" in by_pyiceberg.partition("as Ana")[2]
    _moved(flow)
    assert "Traceback" not in said + done.stderr
    assert not (tmp_path / "real.db").exists()
    assert not (tmp_path / "real").exists()
    assert (folder / "warehouse/tables").exists()
    assert [pid for pid in _processes(folder) if not gone(pid)] == []


def _moved(flow: str) -> None:
    """Every pipeline ran; one expectation warned, one row was kept aside, one customer has two versions."""
    assert flow.count(": succeeded.") == 4
    assert "warning: 1 of 5 rows of raw.customers have a value in email that does not match the pattern" in flow
    second, _, asked = flow.partition("13. A history follows")[2].partition("14. Ana may see")
    assert "a while ago" in second
    versions = [line.split()[-2:] for line in second.splitlines() if "Weir Café" in line]
    assert versions == [["east", "no"], ["west", "yes"]]
    by_ana, by_bea = asked.split("(as Ana)")[1].split("(as Bea)")
    assert [by_ana.count(region) for region in ("east", "north", "south", "west")] == [1, 1, 1, 1]
    assert "TABLE_OR_VIEW_NOT_FOUND" in by_bea


def _processes(folder: Path) -> list[int]:
    """Processes that name the folder on their command line."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            line = (place / "cmdline").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in line:
            found.append(int(place.name))
    return found


def test_a_demo_takes_no_folder_that_holds_something_else(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/file").touch()
    refused = Installation(tmp_path).headgate("demo", "--no-stay", "--folder", str(tmp_path / "precious"))
    assert refused.returncode == 1
    assert (tmp_path / "precious/file").exists()


def test_a_demo_keeps_to_the_data_folder_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    refused = Installation(tmp_path).headgate("demo", "--no-stay")
    assert refused.returncode == 1
    assert f"{tmp_path} holds something that is no demo" in refused.stderr
    assert not (tmp_path / ".headgate").exists()


def test_without_bubblewrap_nothing_is_shown_and_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bin"
    path.mkdir()
    for name in ("java", "javac"):
        if found := shutil.which(name):
            (path / name).symlink_to(found)
    refused = Installation(tmp_path).headgate("demo", "--no-stay", "--folder", str(tmp_path / "demo"), PATH=str(path))
    assert refused.returncode == 1
    assert "bubblewrap is not installed" in refused.stderr
    assert "headgate doctor" in refused.stderr
    assert "Making" not in refused.stdout


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_step_that_fails_ends_the_demo_with_its_words(tmp_path: Path) -> None:
    one = Installation(tmp_path, HEADGATE_SPARK__JAVA_OPTIONS='["-XX:MaxHeapSize=x"]')
    done = one.run_process("demo", "--folder", str(tmp_path / "demo"), seconds=600)
    assert done.returncode == 1
    assert "error: The demo stops, since one of its steps failed." in done.stderr
    assert "`headgate sql" in done.stderr
    assert "7. Bea was granted that table" not in done.stdout
    assert [pid for pid in _processes(tmp_path / "demo") if not gone(pid)] == []


def test_data_that_cannot_be_landed_ends_the_demo_as_any_other_step(tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match=r"`landing raw.orders with PyIceberg` failed: .*onnection"):
        lake.show(MemberCommands("http://127.0.0.1:1", {"Tess": "hgt_x"}, tmp_path))


def test_make_demo_installs_bubblewrap_before_it_is_used() -> None:
    steps = subprocess.run(["make", "-n", "demo"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    order = [
        steps.index(part) for part in ("tools/need bwrap:bubblewrap", "headgate.execution.spark.jars", "headgate demo")
    ]
    assert order == sorted(order)


@pytest.mark.parametrize(("user", "status"), [("0", 0), ("1000", 1)])
def test_what_is_missing_is_installed_by_root_and_named_for_others(tmp_path: Path, user: str, status: int) -> None:
    for name, text in (("id", f"echo {user}"), ("apt-get", f'echo "$@" >> {tmp_path}/asked'), ("sh", "")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    need = [str(ROOT / "tools/need"), "bwrap:bubblewrap", "sh:dash"]
    done = subprocess.run(need, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.returncode == status
    asked = tmp_path / "asked"
    assert (asked.read_text() if asked.exists() else None) == ("install -y -qq bubblewrap\n" if status == 0 else None)
    assert status == 0 or "sudo apt-get install bubblewrap" in done.stderr


def test_a_demo_that_runs_is_not_replaced(tmp_path: Path) -> None:
    with installed(tmp_path / "demo") as one:
        one.folder.mkdir()
        (one.folder / "demo").touch()
        one.up()
        refused = one.headgate("demo", "--folder", str(one.folder), "--no-stay")
        assert refused.returncode == 2
        assert "is already running" in refused.stderr
        assert (one.folder / "headgate.db").exists()
