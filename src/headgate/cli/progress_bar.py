"""Progress bars on a terminal."""

import sys
from typing import Any, Self

from headgate.cli.output import printable


class ProgressBar:
    """A bar with a text before and after it; markup and control characters in the texts are escaped."""

    def __init__(self) -> None:
        self._progress: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.fields[more]}", markup=False),
            )
            self._progress = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
            self._progress.start()
            self._task = self._progress.add_task("queued", total=None, more="")
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def draw(self, text: str, done: int, total: int, more: str) -> None:
        """Draw the current progress."""
        if self._progress is not None:
            told = {"description": printable(text).replace("\n", " "), "more": more}
            self._progress.update(self._task, total=total or None, completed=done, **told)

    def line(self, text: str) -> None:
        """Print a line above the bar."""
        if self._progress is not None:
            from rich.text import Text

            self._progress.console.print(Text(printable(text)))
        else:
            print(printable(text), file=sys.stderr)
