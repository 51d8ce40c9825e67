"""Conversion of result pages from Arrow to JSON rows, CSV and Parquet, without changing the data."""

import base64
import io
import json
import math
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

ARROW = "application/vnd.apache.arrow.stream"
CSV = "text/csv; charset=utf-8; header=present"
PARQUET = "application/vnd.apache.parquet"


def open_page(page: bytes) -> Any:
    """A page as an Arrow table."""
    import pyarrow as pa

    with pa.ipc.open_stream(page) as reader:
        return reader.read_all()


def rows(table: Any) -> list[list[Any]]:
    """The rows of a page as JSON values."""
    if table.num_columns == 0:
        return [[] for _ in range(table.num_rows)]
    columns = [[value for chunk in column.chunks for value in plain(chunk)] for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def plain(array: Any) -> list[Any]:
    """The values of an Arrow array as JSON values.

    Numbers stay numbers unless JSON cannot represent them; decimals and times become text, so that no digit is lost;
    bytes are base64; a struct is an object, a map a list of pairs. The guard's ResultsRule has converted intervals and
    VARIANT to text.
    """
    import pyarrow as pa

    kind, types = array.type, pa.types
    if types.is_null(kind):
        return [None] * len(array)
    if types.is_floating(kind):
        return [_number(value) for value in array.to_pylist()]
    if types.is_boolean(kind) or types.is_integer(kind):
        return list(array.to_pylist())
    if types.is_string(kind) or types.is_large_string(kind):
        return _strings(array)
    if types.is_decimal(kind):
        # Arrow formats small decimals with an exponent: 0E-18.
        return [
            f"{Decimal(value):f}" if value and "E" in value else value for value in array.cast(pa.string()).to_pylist()
        ]
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return [None if value is None else base64.b64encode(value).decode() for value in array.to_pylist()]
    if types.is_nested(kind):
        return _nested(array)
    return _texts(array)


def _number(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _strings(array: Any) -> list[str | None]:
    """Strings; bytes that are not UTF-8, such as from CAST(X'ff' AS STRING), are shown as Spark shows them."""
    try:
        return list(array.to_pylist())
    except UnicodeDecodeError:
        as_bytes = array.cast("binary").to_pylist()
        return [None if byte is None else byte.decode("utf-8", "replace") for byte in as_bytes]


def _texts(array: Any) -> list[Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_date32(kind) and _is_far(days := array.cast(pa.int32()), 1):
        return [None if value is None else _date(value) for value in days.to_pylist()]
    if (
        pa.types.is_timestamp(kind)
        and kind.unit == "us"
        and _is_far(micros := array.cast(pa.int64()), _MICROS_OF_A_DAY)
    ):
        end = "Z" if kind.tz else ""
        return [None if value is None else _time(value) + end for value in micros.to_pylist()]
    try:
        result = pc.cast(array, pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return [None if value is None else str(value) for value in array.to_pylist()]
    if pa.types.is_timestamp(kind):
        result = pc.replace_substring(result, " ", "T", max_replacements=1)
        result = pc.replace_substring_regex(result, r"([+-]\d\d)(\d\d)$", r"\1:\2")
    return list(result.to_pylist())


_DAYS_OF_400_YEARS = 146_097
_MICROS_OF_A_DAY = 86_400_000_000
_FIRST, _YEAR_2000, _LAST = ((day - date(1970, 1, 1)).days for day in (date.min, date(2000, 1, 1), date.max))


def _is_far(array: Any, day: int) -> bool:
    """Whether any of these times, in units per day since 1970, is outside of the years 1 to 9999."""
    import pyarrow.compute as pc

    result = pc.min_max(array).as_py()
    return result["min"] is not None and not (_FIRST * day <= result["min"] and result["max"] < _LAST * day)


def _date(days: int) -> str:
    """The date this many days after 1970, in any year; neither Python nor Arrow covers Spark's range."""
    cycles, rest = divmod(days - _YEAR_2000, _DAYS_OF_400_YEARS)
    day = date(2000, 1, 1) + timedelta(days=rest)
    year = day.year + 400 * cycles
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}-{day:%m-%d}"


def _time(micros: int) -> str:
    """The time this many microseconds after 1970."""
    days, rest = divmod(micros, _MICROS_OF_A_DAY)
    return f"{_date(days)}T{datetime(1, 1, 1, tzinfo=UTC) + timedelta(microseconds=rest):%H:%M:%S.%f}"


def _nested(array: Any) -> list[Any]:
    import pyarrow as pa

    kind, valid = array.type, array.is_valid().to_pylist()
    results: list[Any]
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        parts = [plain(part) for part in array.flatten()]
        results = (
            [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)] if parts else [{}] * len(array)
        )
    else:
        offsets = array.offsets.to_pylist()
        if pa.types.is_map(kind):
            pairs = zip(plain(array.keys), plain(array.items), strict=True)
            values: list[Any] = [list(pair) for pair in pairs]
        else:
            values = plain(array.values)
        results = [values[begin:end] for begin, end in pairwise(offsets)]
    return [value if is_valid else None for value, is_valid in zip(results, valid, strict=True)]


def _cell(value: Any) -> str:
    """A CSV value (RFC 4180). NULL is empty and an empty string is quoted."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if not text or any(c in text for c in '",\r\n') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text


def _line(values: Iterable[Any]) -> str:
    return ",".join(_cell(value) for value in values) + "\r\n"


def csv(names: list[str], pages: Iterable[bytes]) -> Iterator[bytes]:
    """Pages as CSV, one chunk per page."""
    head = _line(names)
    for page in pages:
        yield (head + "".join(_line(row) for row in rows(open_page(page)))).encode("utf-8", "replace")
        head = ""


def parquet(pages: Iterable[bytes]) -> Iterator[bytes]:
    """Pages as one Parquet file with a row group per page, streamed."""
    import pyarrow.parquet as pq

    sink, writer = io.BytesIO(), None
    for page in pages:
        table = _writable(open_page(page))
        writer = writer or pq.ParquetWriter(_Sink(sink), table.schema)
        writer.write_table(table)
        yield _taken(sink)
    if writer is not None:
        writer.close()
        yield _taken(sink)


def _writable(table: Any) -> Any:
    """The page, with columns of types that Parquet lacks, such as an empty struct, as JSON text."""
    import pyarrow as pa

    for number, field in enumerate(table.schema):
        if not _is_in_parquet(field):
            values = [value for chunk in table.column(number).chunks for value in plain(chunk)]
            texts = [None if value is None else json.dumps(value, ensure_ascii=False) for value in values]
            table = table.set_column(number, field.name, pa.array(texts, pa.string()))
    return table


def _is_in_parquet(field: Any) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not pa.types.is_nested(field.type):
        return True
    try:
        pq.ParquetWriter(io.BytesIO(), pa.schema([field])).close()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True


class _Sink(io.RawIOBase):
    """A write target for Parquet that reports its position and hands over the bytes written so far."""

    def __init__(self, buffer: io.BytesIO) -> None:
        self._buffer, self._written = buffer, 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    def write(self, data: Any) -> int:
        size = self._buffer.write(data)
        self._written += size
        return size


def _taken(sink: io.BytesIO) -> bytes:
    result = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return result
