"""Identifiers: a prefix that names the kind, then a time-ordered, collision-safe suffix."""

import re
import secrets
import threading
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_SUFFIX_LENGTH = 20
_RANDOM_BITS = 52
_STEP_BITS = 44


PREFIXES = {
    "member": "mbr",
    "group": "grp",
    "context": "ctx",
    "storage": "sto",
    "data_mart": "dm",
    "destination": "dst",
    "report": "rep",
    "data_mart_trigger": "dmt",
    "report_trigger": "rpt",
    "pipeline_trigger": "plt",
    "run": "run",
    "layer": "lay",
    "table": "tbl",
    "volume": "vol",
    "pipeline": "pip",
    "integration": "int",
    "saved_query": "sq",
    "space": "spc",
    "project": "prj",
    "connection": "con",
    "gateway": "gw",
    "grant": "grt",
    "token": "tok",
    "invitation": "inv",
    "session": "ses",
    "link": "lnk",
    "mail": "ml",
    "notice": "ntc",
    "request": "req",
    "file": "fil",
    "upload": "upl",
    "commit": "cmt",
    "work": "wk",
    "statement": "stm",
    "worker": "wrk",
    "connection_check": "cck",
    "maintenance": "mnt",
    "table_rewrite": "rwr",
    "webhook": "whk",
}
KINDS = {prefix: kind for kind, prefix in PREFIXES.items()}
PATTERN = re.compile(rf"(?P<prefix>[a-z]{{2,3}})_[{_ALPHABET}]{{{_SUFFIX_LENGTH}}}")

ALL_GROUP = f"grp_{'0' * (_SUFFIX_LENGTH - 3)}a11"
"""The id of the built-in group All, to which every member belongs."""


class _Numbers:
    """Numbers that rise: by the clock; within one millisecond, and while it is set back, by random steps."""

    def __init__(self) -> None:
        self._last, self._turn = 0, threading.Lock()

    def next(self) -> int:
        by_the_clock = (time.time_ns() // 1_000_000) << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
        with self._turn:
            self._last = max(by_the_clock, self._last + 1 + secrets.randbits(_STEP_BITS))
            return self._last


_numbers = _Numbers()


def new_id(kind: str) -> str:
    """A fresh identifier for a resource of this kind, which sorts after all that this process made before."""
    number = _numbers.next()
    suffix = []
    for _ in range(_SUFFIX_LENGTH):
        number, digit = divmod(number, 32)
        suffix.append(_ALPHABET[digit])
    return f"{PREFIXES[kind]}_{''.join(reversed(suffix))}"


def kind_of(identifier: str) -> str | None:
    """The kind that an identifier names, or None if it is not well formed."""
    match = PATTERN.fullmatch(identifier)
    return KINDS.get(match["prefix"]) if match else None
