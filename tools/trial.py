"""Run tests; the few that fail are tried once more, one after the other, and told as unsteady if they pass then.

    trial.py [-n WORKERS --dist HOW] -m MARKS

A test beside which the machine was too busy should not hold up a change; one that fails twice does. More than a few
failures are not tried again. What is told as unsteady is a defect of the test or of the product: mend it.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

AT_MOST = 3
KEPT = Path(".cache/pytest")


def main() -> int:
    """Run the tests, and those that failed again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-m", required=True, help="which marks")
    parser.add_argument("-n", default="0", help="how many processes")
    parser.add_argument("--dist", default="load", help="how they share the tests")
    asked = parser.parse_args()
    shared = ["-n", asked.n, "--dist", asked.dist] if asked.n != "0" else []
    ended = _pytest("-m", asked.m, "--cache-clear", *shared)
    failed = _failed()
    if ended != 1 or not 0 < len(failed) <= AT_MOST:
        return ended
    print(f"trying once more, alone: {', '.join(failed)}", flush=True)
    again = _pytest("-m", asked.m, "--last-failed")
    for name in sorted(set(failed) - set(_failed())):
        print(f"UNSTEADY {name}", flush=True)
    return again


def _pytest(*arguments: str) -> int:
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={KEPT}", *arguments]
    return subprocess.run(command, check=False).returncode


def _failed() -> list[str]:
    try:
        return sorted(json.loads((KEPT / "v/cache/lastfailed").read_text(encoding="utf-8")))
    except FileNotFoundError:
        return []


if __name__ == "__main__":
    sys.exit(main())
