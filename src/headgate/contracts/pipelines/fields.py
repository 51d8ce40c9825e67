"""Text fields of definitions: names of tables and columns, durations, partition transforms."""

import re
from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, Field

from headgate.contracts.sql_script import split
from headgate.kit.errors import Invalid
from headgate.kit.ids import PREFIXES, kind_of
from headgate.kit.names import RESERVED_SQL_NAMES, SQL_NAME

MAX_SQL = 100_000
_DURATION = re.compile(r"(\d{1,5}) (second|minute|hour|day|week)s?")
_UNITS = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}
LONGEST = timedelta(days=3660)
_TRANSFORM = re.compile(
    r"(?P<plain>[^\s()`,]{1,255})"
    r"|(?P<name>year|month|day|hour|bucket|truncate)\((?:(?P<n>\d{1,6}), ?)?(?P<column>[^\s()`,]{1,255})\)"
)


def duration(text: str) -> timedelta:
    """Parse a duration: a number and a unit."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:40]!r} is not a duration; write it as '90 seconds', '2 hours' or '3 days'")
    length = int(match[1]) * _UNITS[match[2]]
    if length > LONGEST:
        raise ValueError("a duration is at most ten years")
    return length


def _is_duration(text: str) -> str:
    duration(text)
    return text


def sql_name(name: str) -> str:
    """The case-insensitive name of a table, volume or layer; ValueError describes the allowed characters."""
    lower = name.lower()
    if not SQL_NAME.fullmatch(lower):
        raise ValueError(f"{name[:140]!r} is not a valid name; use letters, digits and _, starting with a letter")
    if lower in RESERVED_SQL_NAMES:
        raise ValueError(f"{name!r} is reserved")
    return lower


def item_ref(text: str) -> str:
    """The qualified, case-insensitive name of a table or volume; ValueError describes the format."""
    layer, dot, name = text.partition(".")
    if not dot:
        raise ValueError(f"{text[:140]!r} has no layer; write layer.table, as in raw.orders")
    return f"{sql_name(layer)}.{sql_name(name)}"


def _column(name: str) -> str:
    if name.strip() != name or any(ord(c) < 32 for c in name):
        raise ValueError(f"{name[:100]!r} is not the name of a column")
    return name


def transform(text: str) -> tuple[str, int | None, str]:
    """A partition transform: its name (identity for a plain column), its number if any, and its column."""
    match = _TRANSFORM.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{text[:100]!r} is not a partition field; write a column, or year(c), month(c), day(c), hour(c), "
            "bucket(16, c) or truncate(10, c)"
        )
    if match["plain"]:
        return "identity", None, match["plain"]
    takes_number = match["name"] in {"bucket", "truncate"}
    if takes_number != (match["n"] is not None):
        wanted = "a number first, as in bucket(16, c)" if takes_number else "only a column, as in day(c)"
        raise ValueError(f"{match['name']} takes {wanted}")
    return match["name"], int(match["n"]) if match["n"] else None, match["column"]


def _is_transform(text: str) -> str:
    transform(text)
    return text


def quoted(*parts: str) -> str:
    """A name in SQL, with each part quoted."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def literal(text: str) -> str:
    """A SQL string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _id_of(kind: str) -> AfterValidator:
    def check(text: str) -> str:
        if kind_of(text) != kind:
            wanted = f"{PREFIXES[kind]}_01k6x3v9c2m4n8p0q7rs"
            raise ValueError(f"{text[:60]!r} is not the id of a {kind}; write {wanted}, not its name")
        return text

    return AfterValidator(check)


ConnectionId = Annotated[str, Field(max_length=40, examples=["con_01k6x3v9c2m4n8p0q7rs"]), _id_of("connection")]
DestinationId = Annotated[str, Field(max_length=40, examples=["dst_01k6x3v9c2m4n8p0q7rs"]), _id_of("destination")]
ProjectId = Annotated[str, Field(max_length=40, examples=["prj_01k6x3v9c2m4n8p0q7rs"]), _id_of("project")]
Duration = Annotated[str, Field(max_length=40, examples=["3 days"]), AfterValidator(_is_duration)]
SqlName = Annotated[str, Field(max_length=128, examples=["orders"]), AfterValidator(sql_name)]
TableRef = Annotated[str, Field(max_length=260, examples=["raw.orders"]), AfterValidator(item_ref)]
ItemRef = Annotated[str, Field(max_length=260, examples=["raw.landing"]), AfterValidator(item_ref)]
ColumnName = Annotated[str, Field(min_length=1, max_length=255, examples=["order_id"]), AfterValidator(_column)]
Columns = Annotated[tuple[ColumnName, ...], Field(max_length=100)]
Transform = Annotated[str, Field(max_length=300, examples=["day(ordered_at)"]), AfterValidator(_is_transform)]


def _without_settings(sql: str) -> str:
    try:
        has_settings = split(sql).has_settings
    except Invalid:
        has_settings = True
    if has_settings:
        raise ValueError(
            "SET TIME ZONE and USE are not supported in pipelines; set `time_zone` in the definition, and write "
            "table names as layer.table"
        )
    return sql


SqlBody = Annotated[
    str,
    Field(min_length=1, max_length=MAX_SQL, examples=["SELECT * FROM raw.orders"]),
    AfterValidator(_without_settings),
]
Parameters = Annotated[
    dict[
        Annotated[str, Field(min_length=1, max_length=100)],
        Annotated[str, Field(max_length=10_000)]
        | bool
        | Annotated[int, Field(ge=-(2**53), le=2**53)]
        | Annotated[float, Field(allow_inf_nan=False)]
        | None,
    ],
    Field(max_length=100, description="Values that override the notebook's parameters", examples=[{"days": 3}]),
]
