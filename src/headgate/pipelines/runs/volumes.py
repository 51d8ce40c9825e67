"""File lists of the volumes that a run declared, for its worker."""

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.engine import RowMapping

from headgate.kit.errors import NotFound
from headgate.lakehouse.files.models import volume_file_table
from headgate.lakehouse.models import table_ref_table
from headgate.platform.authorization.questions import Question, decide

MOST = 100_000
_refs, _files = table_ref_table.c, volume_file_table.c


def files(connection: Connection, now: datetime, run: RowMapping, volume: str) -> list[dict[str, Any]]:
    """The files of a volume by path; NotFound if the run did not declare the volume or may no longer see it."""
    declared = select(_refs.item_id).where(
        _refs.resource_id == run["parent_id"], _refs.item_id == volume, _refs.enabled
    )
    if connection.execute(declared).first() is None:
        raise NotFound
    if not decide(connection, Question(run["acts_for_id"], "see", "volume", volume), now):
        raise NotFound
    query = select(_files.id, _files.path, _files.size, _files.created_at.label("created"))
    rows = connection.execute(query.where(_files.volume_id == volume).order_by(_files.path).limit(MOST)).mappings()
    return [dict(row) for row in rows]
