"""Small Java programs beside the tests, run from their source."""

import subprocess
from pathlib import Path

from headgate.execution.spark import java

OPENED = ("java.nio", "java.lang", "java.util", "java.net", "sun.nio.ch")


def run(name: str, classpath: str, *arguments: str, given: str = "") -> str:
    """What a program of this folder prints."""
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    source = str(Path(__file__).with_name(f"{name}.java"))
    command = [java.java(), "-Xmx512m", "-XX:TieredStopAtLevel=1", *opened, "-cp", classpath, source, *arguments]
    answer = subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=120)
    assert answer.returncode == 0, answer.stderr[-3000:]
    return answer.stdout
