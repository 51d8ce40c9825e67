"""The token with which Spark compacts one table. It acts for no member and is valid while the job runs."""

from datetime import datetime

from sqlalchemy import Connection, select

from headgate.access.narrowing import Narrowing
from headgate.kit.credentials import Sort, digest, is_well_formed
from headgate.lakehouse.maintenance.models import table_rewrite_table
from headgate.lakehouse.models import lake_item_table
from headgate.platform.jobs.models import RUNNING
from headgate.platform.unit_of_work.work import DeclaredTable, WorkToken

PURPOSE = "maintenance"
_rows, _items = table_rewrite_table.c, lake_item_table.c


def identify_rewriting(connection: Connection, secret: str, now: datetime) -> tuple[Narrowing, WorkToken] | None:
    """The table of this secret; None for other secrets, and once the job has ended."""
    if not is_well_formed(secret, Sort.work):
        return None
    mine = (_rows.digest == digest(secret), _rows.state == RUNNING, _rows.lease_until > now)
    joined = table_rewrite_table.join(lake_item_table, _items.id == _rows.table_id)
    query = select(_rows.pass_id, _rows.table_id, _rows.lease_until, _items.layer_id).select_from(joined).where(*mine)
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    only = frozenset({row.table_id})
    narrowing = Narrowing(only=only, layers=frozenset({row.layer_id}), expires=row.lease_until, writes=only)
    return narrowing, WorkToken(row.pass_id, PURPOSE, reach=(DeclaredTable(row.table_id, "write", row.layer_id),))
