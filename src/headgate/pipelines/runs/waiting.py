"""Queued runs: which of them may start, and the longest delay of a retry."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Select, bindparam, func, select, update
from sqlalchemy.engine import RowMapping

from headgate.contracts.pipelines import definitions
from headgate.contracts.pipelines.fields import duration
from headgate.lakehouse.catalog.models import run_output_table
from headgate.pipelines.runs.models import run_table
from headgate.platform.jobs.models import HELD, WAITING

LOOK_AT = 200
"""Number of queued runs that a claim looks at."""

_runs, _outputs = run_table.c, run_output_table.c


def _waiting() -> Select[Any]:
    busy = (
        select(_outputs.item_id)
        .join(run_table, _runs.id == _outputs.run_id)
        .where(_runs.state.in_(HELD))
        .scalar_subquery()
    )
    held = select(_outputs.run_id).where(_outputs.item_id.in_(busy)).scalar_subquery()
    due = _runs.not_before.is_(None) | (_runs.not_before <= bindparam("now"))
    begun = run_table.alias("begun").c
    again = (begun.state == WAITING, begun.fence > 0)
    first = _runs.id.in_(select(func.min(begun.id)).where(*again).group_by(begun.parent_id).scalar_subquery())
    in_turn = first | _runs.parent_id.not_in(select(begun.parent_id).where(*again).scalar_subquery())
    query = select(_runs.id).where(_runs.state == WAITING, due, _runs.id.not_in(held), in_turn)
    return query.order_by(_runs.id).limit(bindparam("most"))


_WAITING = _waiting()


def waiting(connection: Connection, now: datetime, most: int = LOOK_AT) -> Sequence[str]:
    """Queued runs whose outputs no active run holds, oldest first.

    A run that has started before and is queued for a retry or another worker keeps its position: no other run of its
    pipeline starts before it has ended. Otherwise an older state could overwrite a newer one.
    """
    return connection.execute(_WAITING, {"now": now, "most": most}).scalars().all()


def waits_for(connection: Connection, now: datetime, run: RowMapping) -> str | None:
    """The reason why a run is queued, as shown to members; None if it is not queued. It names no other pipeline."""
    if run["state"] != WAITING:
        return None
    if run["not_before"] is not None and run["not_before"] > now:
        return f"its next attempt, at {_told(run['not_before'])}"
    again = (_runs.parent_id == run["parent_id"], _runs.state == WAITING, _runs.fence > 0)
    first = connection.execute(select(_runs.id, _runs.not_before).where(*again).order_by(_runs.id).limit(1)).first()
    if first is not None and first.id != run["id"]:
        is_later = first.not_before is not None and first.not_before > now
        when = f"is retried at {_told(first.not_before)}" if is_later else "was started earlier"
        return f"the run {first.id} of the same pipeline, which {when}"
    mine = select(_outputs.item_id).where(_outputs.run_id == run["id"]).scalar_subquery()
    busy = select(_runs.id, _runs.parent_id).join(run_output_table, _outputs.run_id == _runs.id)
    under_way = connection.execute(busy.where(_runs.state.in_(HELD), _outputs.item_id.in_(mine)).order_by(_runs.id))
    holder = under_way.first()
    if holder is None:
        return "a free worker"
    is_own = holder.parent_id == run["parent_id"]
    return (
        f"the run {holder.id} of the same pipeline"
        if is_own
        else "a run that writes to one of the same tables or volumes"
    )


def _told(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def wait_no_longer(connection: Connection, now: datetime) -> list[str]:
    """Shorten retry delays that exceed what the pipeline allows, after the clock was set back."""
    query = select(_runs.id, _runs.definition, _runs.not_before).where(_runs.state == WAITING, _runs.not_before > now)
    result = []
    for run, definition, until in connection.execute(query).all():
        latest = now + _delay(definition)
        if until > latest:
            connection.execute(update(run_table).where(_runs.id == run).values(not_before=latest))
            result.append(run)
    return result


def _delay(definition: Any) -> timedelta:
    """The retry delay of a run; zero if the definition cannot be parsed, so that the claim fails it with a message."""
    try:
        return duration(definitions.parse(definition).retries.delay)
    except ValueError:
        return timedelta()
