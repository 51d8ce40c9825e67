"""Whoever starts a sandbox, root too: nothing of the kernel can be changed inside, and its programs have no right."""

import ctypes
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.execution.sandbox import bubblewrap as sandbox
from headgate.execution.sandbox import seccomp
from headgate.kit.file_ownership import give
from headgate.settings.settings import Settings
from tests.execution.spark.sandbox_walk import DEVICES
from tests.support.root import only_root

pytestmark = [pytest.mark.usefixtures("with_sandbox"), pytest.mark.processes]
USER, OTHER = Settings().spark.sandbox_uid, 54321
ROOT = Path(__file__).parents[3]
KEY = "headgate-canary-key"
_ADD_KEY = {"x86_64": 248, "aarch64": 217}
_SESSION_KEYRING = -3
_RUN = """
import json, sys
from pathlib import Path
from headgate.execution.sandbox import bubblewrap as sandbox
from tests.execution.spark.sandbox_walk import CODE
plan = {"listen": [], "serve": None, "command": [sandbox.python(), "-I", "-S", "-c", CODE]}
binds = sandbox.Mounts(write={sandbox.SCRATCH: sys.argv[1]})
import os
command = sandbox.command(Path("/usr"), binds, plan, int(sys.argv[2]))
os.execvp(command[0], command)
"""


@pytest.fixture
def scratch() -> Iterator[Path]:
    # Not in the folder of tests, which its owner alone may enter.
    with tempfile.TemporaryDirectory(prefix="headgate-walk-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        inner = Path(folder) / "scratch"
        inner.mkdir()
        yield inner


def _as_another_user() -> list[str]:
    """Becomes a user without rights, for whom Python is readable wherever it is."""
    python = str(Path(sys.base_prefix).resolve())
    home = [
        "--perms",
        "0755",
        "--tmpfs",
        str(Path.home()),
        *sandbox._folders_above([python]),
        "--ro-bind",
        python,
        python,
    ]
    view = ["bwrap", "--bind", "/", "/", *(home if Path(python).is_relative_to(Path.home()) else [])]
    return [*view, "--", "setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", "--"]


def _walked(scratch: Path, before: list[str], key: str | None = None) -> dict[str, Any]:
    def plant() -> None:
        if key:
            library, number = ctypes.CDLL(None), _ADD_KEY[platform.machine()]
            library.syscall(250 if number == 248 else 219, 1, None)
            assert library.syscall(number, b"user", key.encode(), b"secret", 6, _SESSION_KEYRING) > 0

    done = subprocess.run(
        [*before, sys.executable, "-c", _RUN, str(scratch), str(USER)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=plant,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}:{ROOT}/src", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _see_that_it_is_powerless(found: dict[str, Any]) -> None:
    assert found["seen"] > 500
    assert set(found["writable"]) <= DEVICES
    assert set(found["rights"].values()) == {0}
    assert len(found["rights"]) == 5
    assert found["user"] == [1000] * 6
    assert set(found["groups"]) <= {1000, 65534}
    assert found["no_new_privileges"] == "1"
    assert found["filter"] == ("2" if seccomp.program() else "0")
    assert found["shared_memory"] == 64 << 20
    assert "sys" not in found["tops"]


def test_nothing_of_the_kernel_can_be_changed_from_a_sandbox(scratch: Path) -> None:
    give(USER, scratch)
    _see_that_it_is_powerless(_walked(scratch, []))
    assert (scratch / "written").stat().st_uid == (os.getuid() or USER)


@only_root
def test_nor_from_one_that_a_user_without_rights_started(scratch: Path) -> None:
    os.chown(scratch, OTHER, OTHER)
    _see_that_it_is_powerless(_walked(scratch, _as_another_user()))
    assert (scratch / "written").stat().st_uid == OTHER


def test_the_kernels_keys_of_whoever_starts_a_sandbox_stay_outside(scratch: Path) -> None:
    give(USER, scratch)
    assert KEY not in _walked(scratch, [], KEY)["keys"]


@only_root
def test_what_cannot_become_a_user_without_rights_does_not_run(scratch: Path) -> None:
    give(USER, scratch)
    plan = {"listen": [], "serve": None, "command": ["/usr/bin/env", "touch", "/scratch/ran"]}
    command = sandbox.command(Path("/usr"), sandbox.Mounts(write={sandbox.SCRATCH: str(scratch)}), plan, USER)
    held_back = [part for part in command if part not in {"--cap-add", "CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"}]
    for tried, ran in ((command, True), (held_back, False)):
        done = subprocess.run(tried, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode == 0, (scratch / "ran").exists()) == (ran, ran), done.stderr
        (scratch / "ran").unlink(missing_ok=True)
