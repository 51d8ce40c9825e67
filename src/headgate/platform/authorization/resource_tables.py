"""The tables of resources, by kind. Each noun has its own in its `models.py`; this finds it without an import."""

from sqlalchemy import Table

from headgate.access.kinds import KINDS
from headgate.kit.columns import METADATA


def resource_table_of(kind: str) -> Table:
    """The table of the resources of a kind, once its noun was imported."""
    return METADATA.tables[KINDS[kind].table]
