"""`headgate`, run in the process of the tests: nothing differs but the time that a new interpreter takes.

What is about a process itself takes a real one, with `Installation.run_process`: signals, pipes, terminals, imports.
"""

import io
import os
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess
from unittest.mock import patch

import structlog

from headgate.cli import main
from headgate.settings.log import LogSettings
from tests.support.apps import app_for


def run(
    arguments: Sequence[str | bytes], environment: Mapping[str, str], folder: Path, given: str | bytes = b""
) -> "CompletedProcess[str]":
    """Run a command to its end, in this folder, with this environment and standard input."""
    printed, errors = _stream(), _stream()
    with ExitStack() as stack:
        for context in (
            patch.object(sys, "argv", ["headgate", *map(os.fsdecode, arguments)]),
            patch.object(sys, "stdin", _stream(given.encode() if isinstance(given, str) else given)),
            patch.dict(os.environ, environment, clear=True),
            _inside(folder),
            _own_logs(),
            redirect_stdout(printed),
            redirect_stderr(errors),
            patch("headgate.app.create_app", app_for),
        ):
            stack.enter_context(context)
        status = _status()
    return CompletedProcess(list(arguments), status, _text(printed), _text(errors))


def _status() -> int:
    try:
        main.main()
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
        return end.code if isinstance(end.code, int) else int(bool(end.code))
    except Exception:  # noqa: BLE001 - as Python does it at the end of a process
        traceback.print_exc()
        return 1
    return 0


def _stream(content: bytes = b"") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline="")


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    content = stream.buffer
    assert isinstance(content, io.BytesIO)
    return content.getvalue().decode().replace("\r\n", "\n")


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def _own_logs() -> Iterator[None]:
    """Log as the command configures it, until it ends; a server in another thread logs where it did before."""
    before = structlog.get_config()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    try:
        with patch("headgate.platform.http.logs.configure", _configure):
            yield
    finally:
        structlog.configure(**before)


def _configure(settings: LogSettings) -> None:
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(settings.level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
