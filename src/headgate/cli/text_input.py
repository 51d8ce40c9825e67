"""What commands read: text of files, of standard input and of the command line, which must be UTF-8."""

import sys
from collections.abc import Sequence
from pathlib import Path

from headgate.cli.output import MALFORMED, complain


def text_of(file: Path | None) -> str:
    """The text of a file, or of standard input; Invalid if it is not UTF-8."""
    raw = sys.stdin.buffer.read() if file is None else file.read_bytes()
    return _decoded(raw, "standard input" if file is None else str(file))


def line_of_input() -> str:
    """One line of standard input, without its end; Invalid if it is not UTF-8."""
    from headgate.kit.errors import Invalid

    try:
        # As text: what was asked for before may have read ahead. The C locale lets odd bytes through until they leave.
        return sys.stdin.readline().rstrip("\n").encode().decode()
    except UnicodeError:
        raise Invalid("standard input is not UTF-8 text; give it as UTF-8") from None


def _decoded(raw: bytes, place: str) -> str:
    from headgate.kit.errors import Invalid

    try:
        # Editors of some systems begin UTF-8 with a mark, and end lines with two characters.
        return raw.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise Invalid(f"{place} is not UTF-8 text; save it as UTF-8") from None


def check_arguments(arguments: Sequence[str]) -> None:
    """End with a sentence if an argument is not UTF-8; it could be neither sent nor printed."""
    for argument in arguments:
        if any("\ud800" <= c <= "\udfff" for c in argument):
            shown = "".join("\N{REPLACEMENT CHARACTER}" if "\ud800" <= c <= "\udfff" else c for c in argument)
            complain(f"the argument {shown!r} is not UTF-8 text; write it in UTF-8")
            sys.exit(MALFORMED)
