"""The outputs of active runs. Runs with a common output are executed one at a time."""

from sqlalchemy import Connection, bindparam, insert, select

from headgate.kit.columns import Id
from headgate.lakehouse.catalog.models import run_output_table
from headgate.lakehouse.models import table_ref_table

_refs, _outputs = table_ref_table.c, run_output_table.c


_WRITTEN = (
    _refs.resource_id == bindparam("pipeline"),
    _refs.mode == "write",
    _refs.enabled,
    _refs.item_id.is_not(None),
)
_HOLD = insert(run_output_table).from_select(
    ["run_id", "item_id"], select(bindparam("run", type_=Id), _refs.item_id).where(*_WRITTEN).distinct()
)


def is_held(connection: Connection, item: str) -> bool:
    """Whether an active run writes this item or is about to."""
    return connection.execute(select(_outputs.run_id).where(_outputs.item_id == item).limit(1)).first() is not None


def hold_outputs(connection: Connection, run: str, pipeline: str, kind: str) -> None:
    """Record the outputs of a run. A delivery writes no table, so it holds itself: its runs are executed one at
    a time.
    """
    connection.execute(_HOLD, {"run": run, "pipeline": pipeline})
    if kind == "delivery":
        connection.execute(insert(run_output_table).values(run_id=run, item_id=pipeline))
