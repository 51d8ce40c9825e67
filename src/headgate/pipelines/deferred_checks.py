"""Custom checks of what nothing has written yet. What a source or notebook writes has columns once it ran: until then
Spark cannot analyse the SQL of such a check, and the first run does, before it publishes.

A run reaches what its pipeline declared. So until then such SQL may read the pipeline's own tables, and nothing else.
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
    """Of some tables that a source or notebook writes, those that nothing has written yet."""
    if not isinstance(definition, definitions.Source | definitions.Notebook):
        return set()
    lookup = Lookup(connection)
    values = {name: lookup.table(name)[0] for name in names}
    has_pointer = select(_pointers.table_id).where(_pointers.table_id.in_(list(filter(None, values.values()))))
    written = set(connection.execute(has_pointer).scalars())
    return {name for name, item in values.items() if item not in written}


def is_of_own(connection: Connection, definition: AnyDefinition, missing: Iterable[str]) -> bool:
    """Whether all that a probe did not find are tables that the definition itself is to write."""
    asked = {value.lower() for value in missing}
    own = {value.lower() for value in definitions.checked(definition)}
    return bool(asked) and asked <= own and unwritten(connection, definition, asked) == asked


def notes(connection: Connection, definition: AnyDefinition) -> list[str]:
    """What its author should know of checks that were not judged at the save."""
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
