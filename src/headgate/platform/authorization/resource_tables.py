"""The tables of resources by kind. Each is defined in a `models.py` and found here without an import."""

from sqlalchemy import Table

from headgate.access.kinds import KINDS
from headgate.kit.columns import METADATA


def resource_table_of(kind: str) -> Table:
    """The table of a kind of resources, once its module is imported."""
    return METADATA.tables[KINDS[kind].table]
