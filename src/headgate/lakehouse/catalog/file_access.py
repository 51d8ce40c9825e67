"""Authorization for the files of a table by its id. The table may be live, staged, or exist only in one run."""

from sqlalchemy import select

from headgate.access.decision import Decision
from headgate.lakehouse.catalog import access, pointers
from headgate.lakehouse.catalog.models import run_pointer_table, staged_table
from headgate.lakehouse.items.service import decide_create
from headgate.platform.unit_of_work.call import Call

_own, _staged = run_pointer_table.c, staged_table.c


def require_files(call: Call, action: str, table_id: str) -> Decision:
    """The decision on the files of a table; raises the usual refusal if there is no such table for the caller."""
    decision = call.decide(action, "table", table_id) or _on_new(call, table_id)
    if not decision:
        call.refuse(action, "table", table_id)
    return decision


def _on_new(call: Call, table_id: str) -> Decision | None:
    """The decision on a table that is not created yet, for the member or run that fills it; None for other ids.

    A member who may create it may write and read its files. An id that belongs or belonged to a table does not qualify.
    """
    work = call.caller.work
    if work is not None and work.run is not None:
        layer = _layer_of_output(call, work.run, table_id)
        return access.decide_output(call, layer) if layer and work.writes(table_id) else None
    layer = call.connection.execute(
        select(_staged.layer_id).where(
            _staged.id == table_id, _staged.member_id == call.caller.member, _staged.run_id.is_(None)
        )
    ).scalar()
    if layer is None or pointers.was_used(call.connection, table_id):
        return None
    return decide_create(call, "table", layer)


def _layer_of_output(call: Call, run: tuple[str, int], table_id: str) -> str | None:
    """The layer of a table that a run has staged or that exists only in the run."""
    value = call.connection.execute(
        select(_own.layer_id).where(
            _own.run_id == run[0], _own.fence == run[1], _own.table_id == table_id, _own.base_version.is_(None)
        )
    ).scalar()
    if value is None and not pointers.was_used(call.connection, table_id):
        value = call.connection.execute(
            select(_staged.layer_id).where(_staged.id == table_id, _staged.run_id == run[0])
        ).scalar()
    return value
