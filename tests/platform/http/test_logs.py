"""Logs that cannot be written end nothing of what they tell of."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

BEGIN = (
    "import os, sys, logging; from headgate.platform.http import logs; from headgate.settings.log import LogSettings; "
)
STRUCTURED = "from headgate.kit.log import get_logger; tell = lambda words: get_logger('tried').error(words); "
OF_LIBRARIES = "tell = logging.getLogger('tried').error; "
TELLING = "logs.configure(LogSettings(format='json')); [tell('words ' * 10_000) for _ in range(20)]; print('went on')"


@pytest.mark.parametrize("kind", [STRUCTURED, OF_LIBRARIES], ids=["our own", "of libraries"])
def test_a_full_disk_of_logs_ends_nothing(kind: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = _run(BEGIN + kind + TELLING, full)
    assert done.stdout == "went on\n"


def test_nor_does_a_reader_that_has_gone() -> None:
    gone = "r, w = os.pipe(); os.close(r); os.dup2(w, 2); "
    done = _run(BEGIN + STRUCTURED + gone + TELLING, subprocess.PIPE)
    assert done.stdout == "went on\n"


def _run(code: str, errors: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", code]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=60, check=False)  # type: ignore[call-overload, no-any-return]
