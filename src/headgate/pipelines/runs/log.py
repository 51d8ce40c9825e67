"""The size-limited log of a run."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, func, insert, select
from sqlalchemy.engine import RowMapping

from headgate.pipelines.runs.models import run_line_table
from headgate.settings.settings import Settings

_lines = run_line_table.c
FULL = "The log is full; further lines are dropped (`runs.log_lines`)"


def add(connection: Connection, settings: Settings, run: str, lines: Sequence[tuple[datetime, str, str]]) -> None:
    """Append lines: time, level and text."""
    if not lines:
        return
    last = connection.execute(select(func.max(_lines.number)).where(_lines.run_id == run)).scalar()
    number, most = (-1 if last is None else last) + 1, settings.runs.log_lines
    room = [
        {"run_id": run, "number": number + nth, "at": at, "level": level, "text": text}
        for nth, (at, level, text) in enumerate(lines)
        if number + nth < most
    ]
    if room and number + len(lines) >= most:
        room[-1] |= {"level": "warning", "text": FULL}
    if room:
        connection.execute(insert(run_line_table), room)


def read(connection: Connection, run: str, after: int, limit: int) -> Sequence[RowMapping]:
    """Read the lines after this number, in order."""
    query = select(run_line_table).where(_lines.run_id == run, _lines.number > after).order_by(_lines.number)
    return connection.execute(query.limit(limit)).mappings().all()


def has_more(connection: Connection, run: str, after: int) -> bool:
    """Whether there are lines after this number."""
    query = select(_lines.number).where(_lines.run_id == run, _lines.number > after).limit(1)
    return connection.execute(query).first() is not None
