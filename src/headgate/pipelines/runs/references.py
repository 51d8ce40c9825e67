"""The tables and volumes that a pipeline referenced when a run was started.

The pipeline may reference others since. Access to those must not reveal what an older run read or wrote.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, select
from sqlalchemy.engine import RowMapping

from headgate.lakehouse.models import table_ref_table
from headgate.platform.authorization.models import resource_table
from headgate.platform.resources import presentation
from headgate.platform.unit_of_work.call import Call

_refs, _resources = table_ref_table.c, resource_table.c
_NAMED = select(_refs.item_id, _refs.layer_id).where(_refs.resource_id == bindparam("pipeline")).distinct()


def named_by(connection: Connection, pipeline: str) -> list[list[str | None]]:
    """All items that a pipeline references now, each with its layer."""
    rows = connection.execute(_NAMED, {"pipeline": pipeline})
    return sorted(([item, layer] for item, layer in rows), key=repr)


def whole_to(call: Call, runs: Sequence[RowMapping]) -> set[str]:
    """The ids of the runs for which the caller may see every referenced item.

    For items that no longer exist, the caller must be an Editor of the layer, because their former permissions are
    unknown.
    """
    return _whole(call, {run["id"]: _named(call, run) for run in runs})


def sees_all(call: Call, pipeline: str) -> bool:
    """Whether the caller may see every item that a pipeline references now."""
    return bool(_whole(call, {pipeline: named_by(call.connection, pipeline)}))


def _whole(call: Call, named: dict[str, list[Any]]) -> set[str]:
    pairs = {(item, layer) for some in named.values() for item, layer in some}
    items = {item for item, _ in pairs if item}
    query = select(_resources.id).where(_resources.id.in_(items))
    here = set(call.connection.execute(query).scalars()) if items else set()
    may = presentation.allowed(call, {value for pair in pairs for value in pair})
    seen = {
        (item, layer)
        for item, layer in pairs
        if (item in may if item in here else "edit" in may.get(layer or "", frozenset()))
    }
    return {run for run, some in named.items() if seen.issuperset((item, layer) for item, layer in some)}


def _named(call: Call, run: RowMapping) -> list[Any]:
    return run["named"] if run["named"] is not None else named_by(call.connection, run["parent_id"])
