"""Named crash points at which a test kills this process. Outside tests, none is set."""

import os
import signal
from pathlib import Path

VARIABLE = "HEADGATE_CRASH_AT"
"""The name of a point; or `@` and the path of a file that names some, a line each, for one death after the other."""


def crash_point(name: str) -> None:
    """Exit immediately if this crash point is requested."""
    selected = os.environ.get(VARIABLE)
    if selected and (_is_next(Path(selected[1:]), name) if selected[0] == "@" else selected == name):
        os.kill(os.getpid(), signal.SIGKILL)


def _is_next(file: Path, name: str) -> bool:
    """Whether a file of crash points lists this one first; if so, it is removed from the file, so that the next process
    continues.
    """
    try:
        first, _, rest = file.read_text(encoding="utf-8").partition("\n")
    except FileNotFoundError:
        return False
    if first != name:
        return False
    if rest:
        file.write_text(rest, encoding="utf-8")
    else:
        file.unlink(missing_ok=True)
    return True
