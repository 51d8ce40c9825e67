"""Messages for exceeded resource limits of a notebook."""

from headgate.execution.sandbox.watchdog import LimitExceeded
from headgate.execution.steps.context import StepFailed

_OPERATOR = "or ask the operator to raise `{}`"
_WORDS = {
    "memory": ("used more than {most} of memory; process less data at a time, " + _OPERATOR.format("notebooks.memory")),
    "processes": "started more than {number} processes; start fewer, " + _OPERATOR.format("notebooks.processes"),
    "threads": "started more than {number} threads; start fewer, " + _OPERATOR.format("notebooks.processes"),
    "disk": "used more than {most} of disk; save less, or delete temporary files, "
    + _OPERATOR.format("notebooks.disk_bytes"),
    "files": "created more than {number} files; create fewer and larger files",
    "depth": "created folders that are unreadable or nested more than {number} levels deep; use fewer levels",
    "time": "ran longer than {number} seconds; do less in one run, or raise the timeout of the pipeline",
    "machine_memory": "was killed because the machine ran out of memory; run it again when the machine is less busy",
    "machine_disk": "was killed because the machine's disk is full; tell the operator",
    "unwatched": "could not be monitored; tell the operator",
}
_PASSING = {"machine_memory", "machine_disk", "unwatched"}


def limit_failure(offence: LimitExceeded) -> StepFailed:
    """The error raised when a resource limit is exceeded."""
    words = _WORDS[offence.kind].format(most=_size(offence.most), number=f"{offence.most:g}")
    told = words if words.startswith(("was ", "could ")) else f"{words}. It was killed"
    return StepFailed(f"NOTEBOOK_{offence.kind.upper()}", f"The notebook {told}", passing=offence.kind in _PASSING)


def _size(count: float) -> str:
    return f"{count / (1 << 30):.1f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):.0f} MiB"
