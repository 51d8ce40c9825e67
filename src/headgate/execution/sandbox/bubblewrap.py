"""The bubblewrap sandbox of a Spark process: no network, no environment, and read-only access to the files it needs."""

import base64
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate.execution.sandbox import entry as sandbox_entry
from headgate.execution.sandbox import relay, seccomp
from headgate.kit.file_ownership import give, is_root

SCRATCH = "/scratch"
HOME = "/headgate"
_ENVIRONMENT = {
    "HOME": SCRATCH,
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "PATH": "/usr/bin:/bin",
    "SPARK_LOCAL_IP": "127.0.0.1",
}
_LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_RELAY = f"{HOME}/relay.py"
_MEMORY = ("--perms", "1777", "--size", str(64 << 20))
_OPTIONAL = ("/etc/ld.so.cache", "/etc/ssl/certs/java", "/etc/pki/java", "/etc/pki/ca-trust/extracted/java")


_IN_A_CONTAINER = (
    "in a container, start it with --user ID:ID and --security-opt no-new-privileges, and only then with "
    "--security-opt seccomp=unconfined, apparmor=unconfined and systempaths=unconfined: with them, root in the "
    "container could change the machine's kernel settings"
)
_ADVICE = f"Bubblewrap needs unprivileged user namespaces; {_IN_A_CONTAINER}"
_ADVICE_TO_ROOT = f"Run Headgate as an unprivileged user; {_IN_A_CONTAINER}"


@dataclass(frozen=True)
class Mounts:
    """The host paths mounted in the sandbox, and their mount points."""

    read: Mapping[str, str] = field(default_factory=dict)
    write: Mapping[str, str] = field(default_factory=dict)
    handed: Mapping[str, int] = field(default_factory=dict)
    """In-memory files by mount point, with the file descriptors that they are read from."""


def missing(runs_as: int) -> str | None:
    """Why this machine cannot create sandboxes, or None. If root creates one, its programs run as `runs_as`."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (Debian: apt-get install bubblewrap)"
    failure = _probe(runs_as)
    if failure is None:
        return None
    return f"bubblewrap cannot create a sandbox: {failure}. {_ADVICE_TO_ROOT if is_root() else _ADVICE}"


def _probe(runs_as: int) -> str | None:
    """Why a minimal sandbox fails to run, or None."""
    with tempfile.TemporaryDirectory(prefix="headgate-probe-") as folder:
        try:
            give(runs_as, Path(folder))
        except PermissionError as error:
            return f"root cannot change the owner of a folder to {runs_as} ({error.strerror})"
        plan = {"listen": [], "serve": None, "command": ["/usr/bin/env", "true"]}
        probe = command(Path("/usr"), Mounts(write={SCRATCH: folder}), plan, runs_as)
        answer = subprocess.run(  # noqa: S603 - our own words
            probe, capture_output=True, text=True, check=False, timeout=30
        )
    if answer.returncode == 0:
        return None
    return (answer.stderr.strip().splitlines() or ["bubblewrap gave no reason"])[-1]


def command(
    java_home: Path,
    binds: Mounts,
    plan: Mapping[str, Any],
    runs_as: int,
    *,
    network: bool = True,
    environment: Mapping[str, str] | None = None,
) -> list[str]:
    """The command line that runs a plan of relay.py in the sandbox. With `network`, the
    sandbox gets a new, empty network namespace; without it, the process must already be in one.

    For the kernel, its programs run as the user who starts it; if that is root, they run as `runs_as` instead.
    """
    seen = {**_ENVIRONMENT, **(environment or {})}
    calls = seccomp.program()
    entry = {"user": user(runs_as), "calls": base64.b64encode(calls).decode() if calls else None}
    return [
        *(sys.executable, "-I", "-S", "-B", str(Path(sandbox_entry.__file__).resolve()), json.dumps(entry)),
        *_isolation(network=network),
        *_system(),
        *_runtime(java_home),
        *("--proc", "/proc", "--dev", "/dev"),
        *(part for place in ("/tmp", "/dev/shm") for part in (*_MEMORY, "--tmpfs", place)),  # noqa: S108
        *_folders_above([*binds.read, *binds.write, *binds.handed]),
        *(part for inside, outside in binds.read.items() for part in ("--ro-bind", outside, inside)),
        *("--ro-bind", str(Path(relay.__file__).resolve()), _RELAY),
        *(part for inside, outside in binds.write.items() for part in ("--bind", outside, inside)),
        *(
            part
            for inside, handle in binds.handed.items()
            for part in ("--perms", "0444", "--file", str(handle), inside)
        ),
        *(part for place in ("/proc", "/dev", "/") for part in ("--remount-ro", place)),
        *("--chdir", "/"),
        *(part for name, value in seen.items() for part in ("--setenv", name, value)),
        *("--", python(), "-I", "-S", "-B", _RELAY),
        json.dumps({**plan, "folder": SCRATCH, "user": sandbox_entry.INSIDE if is_root() else None}),
    ]


def user(wanted: int) -> int | None:
    """The user of programs in sandboxes: `wanted` if root starts them; None if they run as the starting user."""
    return wanted if is_root() else None


def files(folder: Path, hosts: Mapping[str, str]) -> dict[str, str]:
    """Create the few visible files of /etc; returns the mount point of each."""
    lines = ["127.0.0.1 localhost", *(f"{where} {name}" for name, where in hosts.items())]
    contents = {
        "hosts": "\n".join(lines) + "\n",
        "passwd": f"spark:x:1000:1000::{SCRATCH}:/bin/false\n",
        "group": "spark:x:1000:\n",
    }
    for name, content in contents.items():
        (folder / name).write_text(content, encoding="utf-8")
        (folder / name).chmod(0o644)
    return {f"/etc/{name}": str(folder / name) for name in contents}


def _isolation(*, network: bool = True) -> list[str]:
    """The namespaces to isolate. Root keeps only the capabilities with which the first program becomes another user."""
    apart = ["pid", "ipc", "uts", "cgroup-try", *(["net"] if network else [])]
    inside = str(sandbox_entry.INSIDE)
    ids = ["--unshare-user", "--uid", inside, "--gid", inside]
    kept = ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP")
    return [
        *("bwrap", *(f"--unshare-{what}" for what in apart), "--hostname", "localhost", "--clearenv"),
        *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
        *(kept if is_root() else ids),
    ]


def _system() -> list[str]:
    results = ["--ro-bind", "/usr", "/usr"]
    for name in _LINKS:
        path = Path(name)
        if path.is_symlink():
            results += ["--symlink", str(path.readlink()), name]
        elif path.is_dir():
            results += ["--ro-bind", name, name]
    return results


def _runtime(java_home: Path) -> list[str]:
    """Java and Python at their host paths, and the files of Debian's Java in /etc."""
    seen = [java_home, Path(sys.base_prefix).resolve()]
    results = [str(folder) for folder in seen if not folder.is_relative_to("/usr")]
    results += [str(folder) for folder in Path("/etc").glob("java-*-openjdk")]
    results += [name for name in _OPTIONAL if Path(name).exists()]
    return [*_folders_above(results), *(part for name in results for part in ("--ro-bind", name, name))]


def _folders_above(places: Iterable[str]) -> list[str]:
    """The parent folders of these mount points; bubblewrap would create some that only root may enter."""
    values = dict.fromkeys(str(folder) for place in places for folder in reversed(Path(place).parents))
    return [part for folder in values if folder != "/" for part in ("--perms", "0755", "--dir", folder)]


def python() -> str:
    """The path of Python inside the sandbox."""
    return str(Path(sys.executable).resolve())
