"""Named points at which a test ends this process, as the power might. Outside tests none is set."""

import os
import signal
from pathlib import Path

VARIABLE = "HEADGATE_CRASH_AT"
"""The name of a point; or `@` and the path of a file that names one, which goes with the process that dies there."""


def crash_point(name: str) -> None:
    """End here, at once and without a word, if this is the point that was asked for."""
    wanted = os.environ.get(VARIABLE)
    if wanted and (_is_in_file(Path(wanted[1:]), name) if wanted[0] == "@" else wanted == name):
        os.kill(os.getpid(), signal.SIGKILL)


def _is_in_file(file: Path, name: str) -> bool:
    """Whether a file names this point; then it is removed, so that the next process lives."""
    try:
        if file.read_text(encoding="utf-8") != name:
            return False
        file.unlink()
    except FileNotFoundError:
        return False
    return True
