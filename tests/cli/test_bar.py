"""The bar on a terminal: what others wrote is shown as text."""

import io
import sys

import pytest

from headgate.cli.progress_bar import ProgressBar

HOSTILE = "Land [/nonsense] [red]x[/red] \x1b]0;owned\x07 in raw.t"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_neither_markup_nor_control_characters_reach_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "dumb")
    with ProgressBar() as bar:
        bar.draw(HOSTILE, 1, 2, "[/more]")
        bar.line(HOSTILE)
    shown = terminal.getvalue()
    assert "[/nonsense] [red]x[/red]" in shown
    assert "\x1b]0;" not in shown
    assert "\x07" not in shown
