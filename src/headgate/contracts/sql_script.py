"""Session settings before a SQL statement: `SET TIME ZONE 'Europe/Madrid'; USE trusted; SELECT …`."""

import re
from dataclasses import dataclass, replace
from functools import cache
from zoneinfo import available_timezones

from headgate.kit.errors import Invalid

_BETWEEN = re.compile(r"\s+|--[^\n]*|/\*(?!\+).*?\*/", re.DOTALL)
_SETTING = re.compile(
    r"""(?:SET\s+TIME\s+ZONE\s+(?P<quote>['"])(?P<time_zone>[^'"\\]*)(?P=quote)"""
    r"""|USE\s+(?:(?:NAMESPACE|SCHEMA|DATABASE)\s+)?(?:lake\s*\.\s*)?(?P<layer>[A-Za-z_][A-Za-z0-9_]*))\s*;""",
    re.IGNORECASE,
)
_OFFSET = re.compile(r"[+-](?:0\d|1[0-7]):[0-5]\d|[+-]18:00")


@dataclass(frozen=True, slots=True)
class Script:
    """A statement with the time zone and layer of its session."""

    sql: str
    time_zone: str = "UTC"
    layer: str | None = None
    """The default layer of unqualified table names."""

    @property
    def has_settings(self) -> bool:
        """Whether the text contains settings."""
        return self != Script(self.sql)


def split(text: str) -> Script:
    """Split a text into settings and the statement; Invalid for an unknown time zone.

    Positions in the statement stay those of the text. Settings without a following statement are not removed: Spark's
    guard refuses them and explains the syntax.
    """
    script, end = Script(text), 0
    while (setting := _SETTING.match(text, _begin(text, end))) is not None:
        end = setting.end()
        given = setting.groupdict()
        script = replace(script, **{name: given[name] for name in ("time_zone", "layer") if given[name] is not None})
    if _begin(text, end) == len(text):
        return Script(text)
    _check(script.time_zone)
    return replace(script, sql=re.sub(r"[^\n]", " ", text[:end]) + text[end:])


def _begin(text: str, at: int) -> int:
    """The position after spaces and comments."""
    while (between := _BETWEEN.match(text, at)) is not None:
        at = between.end()
    return at


def _check(time_zone: str) -> None:
    if time_zone not in _zones() and not _OFFSET.fullmatch(time_zone):
        raise Invalid(
            f"SET TIME ZONE {time_zone[:64]!r}: there is no such time zone; write one such as 'Europe/Madrid', "
            "'UTC' or '+02:00'"
        )


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())
