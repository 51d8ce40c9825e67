"""The sandbox of a Spark: bubblewrap, with no network, no environment, and no more of the disk than it needs."""

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headgate.engine import relay

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
_OPTIONAL = ("/etc/ld.so.cache", "/etc/ssl/certs/java", "/etc/pki/java", "/etc/pki/ca-trust/extracted/java")


@dataclass(frozen=True)
class Binds:
    """What of the disk is seen inside, and where."""

    read: Mapping[str, str] = field(default_factory=dict)
    write: Mapping[str, str] = field(default_factory=dict)
    handed: Mapping[str, int] = field(default_factory=dict)
    """Files that are in memory alone, by the handles that they are read from."""


def missing() -> str | None:
    """Why there can be no sandbox on this machine; None if there can."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (Debian: apt-get install bubblewrap)"
    probe = [*_isolation(), *_system(), "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "true"]  # noqa: S108
    answer = subprocess.run(  # noqa: S603 - our own words
        probe, capture_output=True, text=True, check=False, timeout=30
    )
    if answer.returncode == 0:
        return None
    said = answer.stderr.strip().splitlines()[-1:] or ["it gave no reason"]
    return (
        f"bubblewrap cannot make a sandbox here: {said[0]}. It needs unprivileged user namespaces; in a container, "
        "run with --security-opt seccomp=unconfined, apparmor=unconfined and systempaths=unconfined"
    )


def command(
    java_home: Path,
    binds: Binds,
    program: Sequence[str],
    *,
    network: bool = True,
    environment: Mapping[str, str] | None = None,
    calls: int | None = None,
) -> list[str]:
    """The command line that runs a program in the sandbox; unless it is in an empty network already, with one.

    `calls` is the handle of a filter of the kernel's calls (seccomp.py).
    """
    seen = {**_ENVIRONMENT, **(environment or {})}
    return [
        *_isolation(network=network),
        *([] if calls is None else ["--seccomp", str(calls)]),
        *_system(),
        *_runtime(java_home),
        *("--proc", "/proc", "--dev", "/dev"),
        *(part for place in ("/tmp", "/dev/shm") for part in ("--size", str(64 << 20), "--tmpfs", place)),  # noqa: S108
        *(part for inside, outside in binds.read.items() for part in ("--ro-bind", outside, inside)),
        *(part for inside, outside in binds.write.items() for part in ("--bind", outside, inside)),
        *(
            part
            for inside, handle in binds.handed.items()
            for part in ("--perms", "0400", "--file", str(handle), inside)
        ),
        *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", SCRATCH),
        *(part for name, value in seen.items() for part in ("--setenv", name, value)),
        "--",
        *program,
    ]


def relayed(plan: str) -> list[str]:
    """The program inside: the relay, which runs Spark as its child."""
    return [python(), "-I", "-S", "-B", f"{HOME}/relay.py", plan]


def files(folder: Path, hosts: Mapping[str, str]) -> dict[str, str]:
    """The few files of /etc that are seen inside, made in a folder; where each is seen."""
    lines = ["127.0.0.1 localhost", *(f"{where} {name}" for name, where in hosts.items())]
    contents = {
        "hosts": "\n".join(lines) + "\n",
        "passwd": f"spark:x:1000:1000::{SCRATCH}:/bin/false\n",
        "group": "spark:x:1000:\n",
    }
    for name, content in contents.items():
        (folder / name).write_text(content, encoding="utf-8")
    return {f"/etc/{name}": str(folder / name) for name in contents}


def relay_file() -> str:
    """The relay's program, to be bound."""
    return str(Path(relay.__file__).resolve())


def _isolation(*, network: bool = True) -> list[str]:
    apart = ["--unshare-all"]
    if not network:
        apart = [f"--unshare-{what}" for what in ("user", "pid", "ipc", "uts", "cgroup-try")]
    ids = ["--uid", "1000", "--gid", "1000", "--hostname", "localhost"]
    return ["bwrap", *apart, *ids, "--clearenv", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]


def _system() -> list[str]:
    found = ["--ro-bind", "/usr", "/usr"]
    for name in _LINKS:
        path = Path(name)
        if path.is_symlink():
            found += ["--symlink", str(path.readlink()), name]
        elif path.is_dir():
            found += ["--ro-bind", name, name]
    return found


def _runtime(java_home: Path) -> list[str]:
    """Java and Python where they are, and what Debian's Java keeps in /etc."""
    seen = [java_home, Path(sys.base_prefix).resolve()]
    found = [str(folder) for folder in seen if not folder.is_relative_to("/usr")]
    found += [str(folder) for folder in Path("/etc").glob("java-*-openjdk")]
    found += [name for name in _OPTIONAL if Path(name).exists()]
    return [part for name in found for part in ("--ro-bind", name, name)]


def python() -> str:
    """Python as it is seen inside."""
    return str(Path(sys.executable).resolve())
