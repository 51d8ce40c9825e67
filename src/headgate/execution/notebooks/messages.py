"""Why a notebook's processes were ended, in words for whoever wrote it."""

from headgate.execution.sandbox.watchdog import LimitExceeded
from headgate.execution.steps.context import StepFailed

_OPERATOR = "or have the operator raise `{}`"
_WORDS = {
    "memory": ("held more than {most} of memory; work on less data at a time, " + _OPERATOR.format("notebooks.memory")),
    "processes": "had more than {number} processes at a time; start fewer, " + _OPERATOR.format("notebooks.processes"),
    "threads": "had more than {number} threads at a time; start fewer, " + _OPERATOR.format("notebooks.processes"),
    "disk": "held more than {most} on disk; save less, or remove what is done with, "
    + _OPERATOR.format("notebooks.disk_bytes"),
    "files": "made more than {number} files; make fewer and larger ones",
    "depth": "made folders that are nested too deep, or that it closed; keep to {number} levels",
    "time": "took longer than {number} seconds; have it do less, or give the pipeline a longer timeout",
    "machine_memory": "was ended because the machine ran out of memory; run it again when less runs beside it",
    "machine_disk": "was ended because the machine's disk is full; tell whoever runs this installation",
    "unwatched": "could not be watched; tell whoever runs this installation",
}
_PASSING = {"machine_memory", "machine_disk", "unwatched"}


def ended(offence: LimitExceeded) -> StepFailed:
    """The failure that a limit is told as."""
    words = _WORDS[offence.kind].format(most=_size(offence.most), number=f"{offence.most:g}")
    told = words if words.startswith(("was ", "could ")) else f"{words}. It was ended"
    return StepFailed(f"NOTEBOOK_{offence.kind.upper()}", f"The notebook {told}", passing=offence.kind in _PASSING)


def _size(count: float) -> str:
    return f"{count / (1 << 30):.1f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):.0f} MiB"
