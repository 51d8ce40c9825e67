"""Detects cycles of pipelines that trigger one another, as far as their definitions show."""

from collections.abc import Collection

from sqlalchemy import Connection, select

from headgate.kit.errors import Conflict
from headgate.kit.ids import kind_of
from headgate.lakehouse.models import table_ref_table
from headgate.pipelines.triggers.models import trigger_source_table, trigger_table
from headgate.platform.authorization.repository import details
from headgate.platform.unit_of_work.call import Call

MOST = 10_000
"""Maximum number of pipelines to visit. Longer chains are stopped by the maximum trigger depth."""
_refs, _sources, _triggers = table_ref_table.c, trigger_source_table.c, trigger_table.c


def refuse_cycle(call: Call, pipeline: str, sources: Collection[str], without: str | None = None) -> None:
    """Reject a trigger that makes a pipeline start itself endlessly. The message names nothing hidden from the
    caller.
    """
    way = find_cycle(call.connection, pipeline, sources, without)
    if way is None:
        return
    result = (details(call.connection, call.caller.member, [value], call.now, call.caller.narrowing) for value in way)
    seen = zip(way, result, strict=True)
    names = [rows[0].name if call.may_see(value) else "a pipeline that you may not see" for value, rows in seen]
    if len(way) == 1:
        raise Conflict(f"{names[0]} would trigger itself endlessly: it may not wait for itself or its own output")
    raise Conflict(f"These pipelines would trigger each other endlessly: {' → '.join([*names, names[0]])}")


def refuse_saved_cycle(call: Call, pipeline: str) -> None:
    """Reject a saved pipeline whose outputs and triggers make it start itself endlessly."""
    joined = trigger_source_table.join(trigger_table, _triggers.id == _sources.trigger_id)
    query = select(_sources.source_id).select_from(joined).where(_triggers.parent_id == pipeline)
    refuse_cycle(call, pipeline, set(call.connection.execute(query).scalars()))


def find_cycle(
    connection: Connection, pipeline: str, sources: Collection[str], without: str | None = None
) -> list[str] | None:
    """The cycle by which a pipeline that waits for these sources starts itself: the pipelines in order, itself first;
    None if there is none.

    `without` is a trigger to ignore because it is about to be replaced.
    """
    ends = {source for source in sources if kind_of(source) == "pipeline"}
    ends |= _writers(connection, {source for source in sources if kind_of(source) == "table"})
    came_from: dict[str, str | None] = {pipeline: None}
    fresh = {pipeline} if ends else set()
    while fresh and len(came_from) < MOST:
        met = sorted(fresh & ends)
        if met:
            return _way(came_from, met[0])
        fresh = _next(connection, fresh, came_from, without)
    return None


def _way(came_from: dict[str, str | None], last: str) -> list[str]:
    results: list[str] = []
    step: str | None = last
    while step is not None:
        results.append(step)
        step = came_from[step]
    return results[::-1]


def _next(
    connection: Connection, pipelines: set[str], came_from: dict[str, str | None], without: str | None
) -> set[str]:
    """The pipelines triggered by these and not visited yet; records their predecessors."""
    origin = {pipeline: pipeline for pipeline in pipelines} | _written(connection, pipelines)
    joined = trigger_source_table.join(trigger_table, _triggers.id == _sources.trigger_id)
    query = select(_sources.source_id, _triggers.parent_id).select_from(joined)
    query = query.where(_sources.source_id.in_(origin), _triggers.id != (without or ""))
    results: set[str] = set()
    for source, started in connection.execute(query):
        if started not in came_from:
            came_from[started] = origin[source]
            results.add(started)
    return results


def _written(connection: Connection, pipelines: set[str]) -> dict[str, str]:
    """The tables that these pipelines write, each with its pipeline."""
    query = select(_refs.item_id, _refs.resource_id).where(
        _refs.resource_id.in_(pipelines), _refs.mode == "write", _refs.enabled, _refs.item_id.is_not(None)
    )
    return {row.item_id: row.resource_id for row in connection.execute(query)}


def _writers(connection: Connection, tables: set[str]) -> set[str]:
    """The pipelines that write these tables."""
    query = select(_refs.resource_id).where(_refs.item_id.in_(tables), _refs.mode == "write", _refs.enabled)
    return {value for value in connection.execute(query).scalars() if kind_of(value) == "pipeline"}
