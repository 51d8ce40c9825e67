"""The mutation check itself runs in CI: no rule can be dropped, narrowed or widened without a world noticing."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_every_broken_rule_is_noticed() -> None:
    done = subprocess.run(
        [sys.executable, "tools/mutants.py"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert ", 0 unnoticed" in done.stdout
