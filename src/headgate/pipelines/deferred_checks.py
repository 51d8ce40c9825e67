"""Custom SQL checks on tables that no run has written yet.

A table written by a source or notebook has no known columns before its first run, so Spark cannot analyse the SQL of
such a check when the pipeline is saved. The first run analyses it, before it publishes.

A run can read only the tables that its pipeline declared. Therefore such SQL may read the pipeline's own tables only.
"""

from collections.abc import Iterable

from sqlalchemy import Connection, select

from headgate.contracts.pipelines import definitions
from headgate.lakehouse.catalog.models import table_pointer_table
from headgate.pipelines.planner import AnyDefinition
from headgate.platform.authorization.lookup import Lookup

_pointers = table_pointer_table.c


def probed_sql(connection: Connection, definition: AnyDefinition) -> list[str]:
    """The SQL of a definition that can be analysed now, to learn what it reads."""
    results = [definition.sql] if isinstance(definition, definitions.Query) else []
    new = unwritten(connection, definition, {check.table for check in definitions.custom_checks(definition)})
    return results + [check.sql for check in definitions.custom_checks(definition) if check.table not in new]


def unwritten(connection: Connection, definition: AnyDefinition, names: Iterable[str]) -> set[str]:
    """The subset of `names` that a source or notebook writes and that no run has written yet."""
    if not isinstance(definition, definitions.Source | definitions.Notebook):
        return set()
    lookup = Lookup(connection)
    values = {name: lookup.table(name)[0] for name in names}
    has_pointer = select(_pointers.table_id).where(_pointers.table_id.in_(list(filter(None, values.values()))))
    written = set(connection.execute(has_pointer).scalars())
    return {name for name, item in values.items() if item not in written}


def is_of_own(connection: Connection, definition: AnyDefinition, missing: Iterable[str]) -> bool:
    """Whether all tables missing in a probe are outputs of the definition itself."""
    asked = {value.lower() for value in missing}
    own = {value.lower() for value in definitions.checked(definition)}
    return bool(asked) and asked <= own and unwritten(connection, definition, asked) == asked


def notes(connection: Connection, definition: AnyDefinition) -> list[str]:
    """Notes for the author about checks that were not analysed when the pipeline was saved."""
    checks = definitions.custom_checks(definition)
    if not checks:
        return []
    volumes = definitions.volumes(definition)
    own = {name for name, enabled in definitions.outputs(definition).items() if enabled and name not in volumes}
    new = sorted(unwritten(connection, definition, own | {check.table for check in checks}))
    if not new:
        return []
    return [
        f"Nothing has written {', '.join(new)} yet: the SQL of checks that read it is judged by the first run, before "
        "anything is published, and may read no tables but those of this pipeline until then"
    ]
