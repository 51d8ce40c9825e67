"""Runs the commands that the demo shows, each as a member. A command with an unexpected result ends the demo."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path


class StepFailed(Exception):
    """A failed step of the demo: the command and its output."""

    def __init__(self, command: str, output: str) -> None:
        self.command, self.said = command, output.strip()
        super().__init__(f"`{command}` failed: {self.said}")


class MemberCommands:
    """Runs Headgate commands against one server, each as a member."""

    def __init__(self, address: str, tokens: Mapping[str, str], folder: Path) -> None:
        self.address, self.tokens, self.folder = address, tokens, folder

    def run(
        self, member: str, command: str, tell: Callable[[str], None] = lambda _: None, *, refused: str | None = None
    ) -> str:
        """Run a command and stream its output. With `refused`, the command must fail with this text."""
        environment = {**os.environ, "HEADGATE_SERVER_URL": self.address, "HEADGATE_TOKEN": self.tokens[member]}
        arguments = [sys.executable, "-m", "headgate.cli.main", *shlex.split(command)]
        return follow(f"headgate {command}", arguments, environment, self.folder, tell, refused=refused)


def follow(
    name: str,
    arguments: list[str],
    environment: Mapping[str, str],
    folder: Path,
    tell: Callable[[str], None] = lambda _: None,
    *,
    refused: str | None = None,
) -> str:
    """Run a program and return its output. Raises StepFailed if it fails, or, with `refused`, if it does not fail with
    this text.
    """
    lines: list[str] = []
    with subprocess.Popen(  # noqa: S603 - our own command
        arguments, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        for line in process.stdout:
            lines.append(line)
            tell(line.rstrip())
    text = "".join(lines)
    if refused is None and process.returncode != 0:
        raise StepFailed(name, text or f"it ended with status {process.returncode}")
    if refused is not None and (process.returncode == 0 or refused not in text):
        raise StepFailed(name, f"it must be refused with {refused}, and was not: {text}")
    return text
