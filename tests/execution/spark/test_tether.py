"""Trees of processes are held by their limits, with and without control groups, and nothing of them is left."""

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from headgate.execution.sandbox import cgroup
from headgate.execution.sandbox.processes import below, started
from headgate.execution.sandbox.watchdog import LimitExceeded, Limits, ProcessTreeWatchdog
from tests.support.installation import eventually

pytestmark = pytest.mark.processes

MIB = 1 << 20

HIDDEN_MEMORY = """
import os, time
held = []
while True:
    one = os.memfd_create("x"); os.write(one, bytes(8 << 20)); held.append(one); time.sleep(0.02)
"""
FORKED_MEMORY = """
import os, time
for _ in range(10):
    if os.fork() == 0:
        held = bytearray(40 << 20)
        for place in range(0, len(held), 4096): held[place] = 1
        time.sleep(60); os._exit(0)
time.sleep(60)
"""
DISK = """
import os, time
for number in range(100):
    with open(f"{number}", "wb") as file: file.write(bytes(4 << 20))
    time.sleep(0.02)
time.sleep(60)
"""
HIDDEN_DISK = """
import os, time
held = []
while True:
    file = open("gone", "wb"); os.unlink("gone"); file.write(bytes(4 << 20)); file.flush(); held.append(file)
    time.sleep(0.02)
"""
DEEP = """
import os, time
for _ in range(200):
    os.mkdir("d" * 50); os.chdir("d" * 50)
time.sleep(60)
"""
LONG = """
import os, time
for _ in range(30):
    os.mkdir("d" * 250); os.chdir("d" * 250)
time.sleep(60)
"""
THREADS = """
import threading, time
for _ in range(2000):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
time.sleep(60)
"""
FORKS = """
import os, time
while True:
    try: os.fork()
    except OSError: time.sleep(0.01)
"""
OFFENCES = {
    "memory": (HIDDEN_MEMORY, FORKED_MEMORY),
    "disk": (DISK, HIDDEN_DISK),
    "depth": (DEEP, LONG),
    "processes": (FORKS,),
    "time": ("import time; time.sleep(60)",),
}
CASES = [(kind, code) for kind, codes in OFFENCES.items() for code in codes]


def limits(folder: Path, **more: Any) -> dict[str, Any]:
    given = {"memory": 200 * MIB, "processes": 30, "disk": 100 * MIB, "seconds": 30.0}
    return {**given, "folders": [str(folder)], "inside": [str(folder)], **more}


def launched(folder: Path, code: str, **more: Any) -> tuple[dict[str, Any], float]:
    """Run code as a launcher runs a notebook's; how it ended, and after how long."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    plan = {
        "command": [sys.executable, "-S", "-c", code],
        "environment": {"PATH": "/usr/bin:/bin"},
        "folder": str(work),
        "output": str(folder / "output.log"),
        "network": [],
        "user": None,
        "open": [],
        "record": str(folder / "processes.json"),
        "sockets": str(folder),
        "handed": True,
        "limits": limits(work, **more),
        "end": str(folder / "end.json"),
    }
    (folder / "plan.json").write_text(json.dumps(plan))
    began = time.monotonic()
    command = [sys.executable, "-m", "headgate.execution.sandbox.launcher", str(folder / "plan.json")]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as launcher:
        assert launcher.stdin
        launcher.stdin.write(b"{}\n")
        launcher.stdin.flush()
        launcher.wait(120)
    return json.loads((folder / "end.json").read_text()), time.monotonic() - began


def is_left(mark: str) -> bool:
    found = subprocess.run(["pgrep", "-f", mark], capture_output=True, text=True, check=False).stdout.split()
    return bool(found)


@pytest.mark.parametrize(("kind", "code"), CASES)
def test_what_exceeds_a_limit_is_ended_and_told(tmp_path: Path, kind: str, code: str) -> None:
    # A group with little memory holds up whoever writes much.
    limited: dict[str, dict[str, Any]] = {"time": {"seconds": 2.0}, "disk": {"memory": 2048 * MIB}}
    more = limited.get(kind, {})
    mark = f"mark_{tmp_path.name}_{os.getpid()}"
    end, took = launched(tmp_path, f"{mark} = 1\n{code}", **more)
    assert end["offence"]["kind"] == kind, end
    assert end["status"] != 0
    assert took < 60
    # Sooner than what it started would end by itself.
    eventually(lambda: not is_left(mark), 20)


def test_one_process_may_not_take_all_memory_either(tmp_path: Path) -> None:
    code = "try:\n    bytearray(1 << 30)\nexcept MemoryError:\n    open('told', 'w').close()\n"
    end, _ = launched(tmp_path, code)
    assert end == {"status": 0, "offence": None}
    assert (tmp_path / "work" / "told").exists()


def test_what_is_left_behind_ends(tmp_path: Path) -> None:
    mark = str(86_000 + os.getpid() % 10_000)
    code = f"""
import subprocess
for start in (["sleep", "{mark}"], ["setsid", "sleep", "{mark}"], ["sh", "-c", "setsid sh -c 'sleep {mark} & sleep {mark}' &"]):
    subprocess.Popen(start, start_new_session=True)
"""
    end, _ = launched(tmp_path, code)
    assert end == {"status": 0, "offence": None}
    eventually(lambda: not is_left(f"sleep {mark}"))


def test_it_ends_with_whoever_asked_for_it(tmp_path: Path) -> None:
    mark = f"alone_{os.getpid()}"
    code = f"""
import json, subprocess, sys, time
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from pathlib import Path
from tests.execution.spark.test_tether import launched
launched(Path({str(tmp_path)!r}), "{mark} = 1; import time; time.sleep(60)")
"""
    with subprocess.Popen([sys.executable, "-c", code]) as asker:
        deadline = time.monotonic() + 60
        while not (tmp_path / "processes.json").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        told = json.loads((tmp_path / "processes.json").read_text())["processes"]
        asker.kill()
    deadline = time.monotonic() + 60
    while any(started(pid) == began for pid, began in told) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(started(pid) == began for pid, began in told)


ROOT_OF_A_TREE = "import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', sys.argv[1]])"


def test_without_control_groups_the_watch_sees_the_same(tmp_path: Path) -> None:
    """The exact sum of what forked processes hold: what they share counts once."""
    shared = "held = bytearray(60 << 20)\nfor place in range(0, len(held), 4096): held[place] = 1\n"
    code = (
        shared
        + "import os, time\nfor _ in range(6):\n    if os.fork() == 0: time.sleep(60); os._exit(0)\ntime.sleep(60)"
    )
    for source, found in ((code, None), (FORKED_MEMORY, "memory"), (THREADS, "threads")):
        # In a tree of its own: this process may have started servers for other tests.
        command = [sys.executable, "-S", "-c", ROOT_OF_A_TREE, source]
        with subprocess.Popen(command, start_new_session=True) as child:
            try:
                told = _watched(child.pid, Limits(**limits(tmp_path)), 4.0 if found is None else 60.0)
                assert (told.kind if told else None) == found
            finally:
                _kill(*below(child.pid), child.pid)


def _kill(*pids: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, 9)


def _watched(pid: int, most: Limits, seconds: float) -> LimitExceeded | None:
    watch = ProcessTreeWatchdog(pid, most)
    told: list[LimitExceeded | None] = []
    threads = [
        threading.Thread(target=lambda look=look: told.append(look()))
        for look in (watch.processes_and_time, watch.memory_and_disk)
    ]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + seconds
    while not any(told) and time.monotonic() < deadline:
        time.sleep(0.05)
    watch.over.set()
    for thread in threads:
        thread.join()
    return next((one for one in told if one), None)


def test_processes_are_found_whichever_thread_started_them() -> None:
    code = "import subprocess, threading, time\nt = threading.Thread(target=lambda: subprocess.run(['sleep', '60']))\nt.start(); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-S", "-c", code]) as child:
        try:
            deadline = time.monotonic() + 60
            while len(below(child.pid)) < 1 and time.monotonic() < deadline:
                time.sleep(0.05)
            found = below(child.pid)
            assert len(found) == 1
            assert child.pid in below(os.getpid())
            assert set(found) <= set(below(os.getpid()))
            assert len(below(os.getpid(), 1)) >= 1
        finally:
            _kill(*below(child.pid), child.pid)


MOUNTS_2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
MOUNTS_1 = (
    "40 35 0:31 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
    "41 35 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "42 35 0:33 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)


@pytest.mark.parametrize(
    ("own", "mounts", "controller", "found"),
    [
        (
            "0::/system.slice/headgate.service/main\n", MOUNTS_2, "memory",
            ["/sys/fs/cgroup/system.slice/headgate.service/main", "/sys/fs/cgroup/system.slice/headgate.service"],
        ),
        ("0::/\n", MOUNTS_2, "pids", ["/sys/fs/cgroup"]),
        ("8:pids:/\n0::/\n", MOUNTS_1, "pids", ["/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified"]),
        ("4:memory:/docker/abc\n", MOUNTS_1, "memory", ["/sys/fs/cgroup/memory"]),
        ("4:memory:/elsewhere\n", MOUNTS_1, "memory", []),
        ("1:cpu:/\n", MOUNTS_1, "memory", []),
    ],
)  # fmt: skip
def test_where_groups_could_be_made(own: str, mounts: str, controller: str, found: list[str]) -> None:
    assert [str(one) for one in cgroup.parents(own, mounts, controller)] == found


def test_a_group_that_may_not_be_made_is_none() -> None:
    assert cgroup._limited(Path("/proc/group"), "memory", 1) is None
    assert cgroup._limited(Path("/nowhere/group"), "pids", 1) is None
