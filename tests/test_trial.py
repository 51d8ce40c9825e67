"""How tests are run: those that failed are tried once more, and not many of them."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parent.parent / "tools" / "trial.py"

UNSTEADY = """
from pathlib import Path

def test_unsteady():
    seen = Path(__file__).with_name("seen")
    if not seen.exists():
        seen.touch()
        raise AssertionError("the first time")
"""
BROKEN = "def test_broken():\n    assert False\n"
FINE = "def test_fine():\n    assert True\n"
MANY = "import pytest\n@pytest.mark.parametrize('n', range(4))\ndef test_broken(n):\n    assert False\n"


@pytest.mark.parametrize(
    ("text", "code", "again", "unsteady"),
    [
        (FINE, 0, False, False),
        (UNSTEADY, 0, True, True),
        (BROKEN, 1, True, False),
        (UNSTEADY + BROKEN, 1, True, True),
        (MANY, 1, False, False),
        ("import nothing_of_the_kind", 2, True, False),
    ],
    ids=["fine", "unsteady", "broken", "both", "many", "unreadable"],
)
def test_what_failed_is_tried_once_more(tmp_path: Path, text: str, code: int, again: bool, unsteady: bool) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -q\n")
    (tmp_path / "test_some.py").write_text(text)
    command = [sys.executable, str(TOOL), "-m", "not other", "-n", "2"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == code, ended.stdout
    assert ("trying once more" in ended.stdout) is again
    assert ("UNSTEADY test_some.py::test_unsteady" in ended.stdout) is unsteady
