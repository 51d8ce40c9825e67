"""Connection checks as jobs. The member is authorized again before secrets are sent to a worker."""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, delete, select
from sqlalchemy.engine import RowMapping

from headgate.contracts.connection_checks import CheckPayload, Findings
from headgate.kit.errors import Problem
from headgate.kit.ids import kind_of
from headgate.platform.authorization.questions import check
from headgate.platform.connection_checks import unsaved
from headgate.platform.connection_checks.models import connection_check_table
from headgate.platform.external_systems.repository import place_of
from headgate.platform.jobs import queue
from headgate.platform.jobs.kinds import Begun, CannotBegin, JobKind, Outcome, result_bytes
from headgate.platform.unit_of_work.call import Call
from headgate.settings.settings import Settings

SECONDS = 60.0
"""Time limit of a check in seconds."""
LEASE = timedelta(seconds=SECONDS + 30)
KEPT = timedelta(hours=1)
TEST, TEST_CHANGES = "test", "test_changes"
"""The required actions for checking the stored configuration and an unsaved one."""
_rows = connection_check_table.c


class ConnectionChecks(JobKind):
    """Checks of connections and destinations: they take seconds and are deleted after an hour."""

    name = "connection_check"
    table = connection_check_table
    result = Findings
    lost = ("LOST", "The worker of this check died; ask again")

    def lease(self, settings: Settings) -> timedelta:
        return LEASE

    def begin(self, call: Call, row: RowMapping) -> Begun:
        resource = row["place_id"]
        if not may_ask(call.connection, call.now, row):
            raise CannotBegin("failed", "DENIED", "You may not use this any more")
        place = place_of(call.connection, resource)
        if place is None or place.version != row["place_version"]:
            raise CannotBegin("failed", "MOVED", "It was pointed somewhere else after you asked; ask again")
        try:
            endpoint = unsaved.endpoint(call.connection, call.services, row)
        except Problem as problem:
            raise CannotBegin("failed", "CANNOT_OPEN", problem.detail) from None
        payload = CheckPayload(
            check=row["operation"],
            question=row["question"],
            writes=kind_of(resource) == "destination",
            endpoint=endpoint,
            max_bytes=result_bytes(call.settings),
        )
        return Begun(payload, SECONDS)

    def finish(self, call: Call, row: RowMapping, outcome: Outcome) -> str:
        found = outcome.result.model_dump(mode="json") if outcome.result else None
        values = {"code": outcome.error_code, "message": outcome.error, "result": found}
        return queue.end(self, call.connection, call.now, row["id"], outcome.state, **values)

    def end_values(self, connection: Connection, now: datetime, job: str) -> dict[str, Any]:
        return {"expires_at": now + KEPT, "sealed": None}

    def is_outdated(self, connection: Connection, now: datetime) -> bool:
        return connection.execute(select(_rows.id).where(_rows.expires_at < now).limit(1)).first() is not None

    def expire(self, connection: Connection, now: datetime) -> None:
        connection.execute(delete(connection_check_table).where(_rows.expires_at < now))


def may_ask(connection: Connection, now: datetime, row: RowMapping) -> bool:
    """Whether the member may still run the check; with an unsaved configuration or secrets, only if they may
    save them.
    """
    resource = row["place_id"]
    action = TEST_CHANGES if row["place"] or row["sealed"] else TEST
    return bool(check(connection, row["member_id"], action, resource, now))


CONNECTION_CHECKS = ConnectionChecks()
