"""Publishes a run: its state and all its outputs change in one transaction, or not at all."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, select, update

from headgate.kit.errors import Conflict
from headgate.lakehouse.catalog import publish as catalog
from headgate.lakehouse.catalog.pointers import Author, Move
from headgate.pipelines.runs.models import run_table
from headgate.platform.unit_of_work.services import Services

RUNNING, SUCCEEDED = "running", "succeeded"
_runs = run_table.c


class NotRunning(Conflict):
    """The run has ended or another worker has taken it over, so its results are discarded."""

    code, title = "not_running", "The run has ended, or another worker has claimed it"


def publish(
    services: Services,
    connection: Connection,
    now: datetime,
    run_id: str,
    fence: int,
    *,
    member: str,
    work_id: str | None = None,
    step: int | None = None,
    states: Mapping[str, Any] = MappingProxyType({}),
) -> list[Move]:
    """Publish the outputs of a run as a member and finish the run, in this transaction.

    `states` holds the cursor of each output for the next run; the ledger stores it only if the run is published.
    NotRunning, TableMoved or a refusal of the rule tables means that the transaction must be rolled back.
    """
    mine = (_runs.id == run_id, _runs.state == RUNNING, _runs.fence == fence)
    if connection.execute(update(run_table).where(*mine).values(state=SUCCEEDED)).rowcount != 1:
        raise NotRunning
    pipeline = connection.execute(select(_runs.parent_id).where(_runs.id == run_id)).scalar()
    author = Author(member, None, work_id, run_id, step, pipeline)
    return catalog.publish_outputs(services, connection, now, run_id, fence, member, author, states)
