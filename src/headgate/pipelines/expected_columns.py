"""Expected columns of an output before its first run, so that pipelines that read it can be saved.

The columns of a query come from its probe; those of a history follow from its source. The columns of notebooks and
streams are known only after a run.
"""

from typing import Any

from sqlalchemy import delete, insert, select

from headgate.contracts.pipelines import definitions
from headgate.contracts.tables import history, iceberg, types
from headgate.lakehouse.catalog.errors import Damaged
from headgate.lakehouse.catalog.models import probed_schema_table, table_pointer_table
from headgate.lakehouse.tables.metadata_cache import current_schema, document
from headgate.pipelines.planner import AnyDefinition
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.stages import Stages

Fields = list[dict[str, Any]]
"""Fields in the JSON format of an Iceberg schema."""
_probed, _pointers = probed_schema_table.c, table_pointer_table.c


def output(definition: AnyDefinition) -> str | None:
    """The output of a query or history, whose columns can be known before a run; otherwise None."""
    return definition.output if isinstance(definition, definitions.Query | definitions.History) else None


def of_history(stages: Stages, definition: AnyDefinition) -> Fields | None:
    """The columns of a history's output; None if the source's columns are unknown or the definition is no history."""
    if not isinstance(definition, definitions.History):
        return None
    table = definition.table

    def look(call: Call) -> Any:
        match_ = call.lookup.of("table", table)
        if match_ is None or not call.decide("execute", "table", match_):
            return None
        pointer = select(table_pointer_table).where(_pointers.table_id == match_)
        return call.connection.execute(pointer).mappings().one_or_none() or stored(call, match_)

    result = stages.read(look)
    if result is None:
        return None
    try:
        fields = (
            result if isinstance(result, list) else current_schema(document(stages.services.store, result))["fields"]
        )
        source = iceberg.columns(fields)
    except (Damaged, iceberg.Unknown):
        return None
    return _versions(definition, source)


def _versions(definition: definitions.History, source: types.Columns) -> Fields | None:
    """The version columns that a history adds to the source's columns; None if a run would reject them."""
    time = types.find(source, definition.time_column) if definition.time_column else None
    taken = any(types.find(source, name) for name in history.RESERVED)
    if taken or (definition.time_column and time is None):
        return None
    return iceberg.fields(history.columns(source, time))


def stored(call: Call, table_id: str) -> Fields | None:
    """The expected columns of a table, if the pipeline that writes it was saved with them."""
    value: Fields | None = call.connection.execute(select(_probed.columns).where(_probed.table_id == table_id)).scalar()
    return value


def keep(call: Call, pipeline_id: str, table_id: str | None, fields: Fields | None) -> None:
    """Replace the stored expected columns of a pipeline's output."""
    call.connection.execute(delete(probed_schema_table).where(_probed.pipeline_id == pipeline_id))
    if table_id is None or fields is None:
        return
    call.connection.execute(delete(probed_schema_table).where(_probed.table_id == table_id))
    row = {"table_id": table_id, "pipeline_id": pipeline_id, "columns": fields}
    call.connection.execute(insert(probed_schema_table).values(row))
