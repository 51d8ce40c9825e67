"""What a run that has not ended writes: of runs with one in common, one is under way at a time."""

from sqlalchemy import Connection, insert, select

from headgate.lakehouse.models import table_ref_table
from headgate.runs.models import run_output_table

_refs = table_ref_table.c


def hold_outputs(connection: Connection, run: str, pipeline: str) -> None:
    """Note what a run of a pipeline writes."""
    outputs = select(_refs.item_id).where(
        _refs.resource_id == pipeline, _refs.mode == "write", _refs.enabled, _refs.item_id.is_not(None)
    )
    rows = [{"run_id": run, "item_id": item} for item in sorted(set(connection.execute(outputs).scalars()))]
    if rows:
        connection.execute(insert(run_output_table), rows)
