"""UTF-8 input from files, standard input and arguments."""

import sys
from collections.abc import Sequence
from pathlib import Path

from headgate.cli.output import MALFORMED, print_error


def text_of(file: Path | None) -> str:
    """The text of a file or of standard input; Invalid if it is not UTF-8."""
    raw = sys.stdin.buffer.read() if file is None else file.read_bytes()
    return _decoded(raw, "standard input" if file is None else str(file))


def line_of_input() -> str:
    """One line of standard input, without the newline; Invalid if it is not UTF-8."""
    from headgate.kit.errors import Invalid

    try:
        # As text: what was asked for before may have read ahead. The C locale lets odd bytes through until they leave.
        return sys.stdin.readline().rstrip("\n").encode().decode()
    except UnicodeError:
        raise Invalid("standard input is not UTF-8 text; convert it to UTF-8") from None


def _decoded(raw: bytes, place: str) -> str:
    from headgate.kit.errors import Invalid

    try:
        # Editors of some systems begin UTF-8 with a mark, and end lines with two characters.
        return raw.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise Invalid(f"{place} is not UTF-8 text; save it as UTF-8") from None


def check_arguments(arguments: Sequence[str]) -> None:
    """Exit with an error if an argument is not UTF-8."""
    for argument in arguments:
        if any("\ud800" <= c <= "\udfff" for c in argument):
            shown = "".join("\N{REPLACEMENT CHARACTER}" if "\ud800" <= c <= "\udfff" else c for c in argument)
            print_error(f"the argument {shown!r} is not UTF-8 text; write it in UTF-8")
            sys.exit(MALFORMED)
