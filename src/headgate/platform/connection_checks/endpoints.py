"""Endpoints of connection checks: have a worker check a connection or destination, and follow the result. Members see
only their own checks.
"""

from typing import Annotated, Any

from fastapi import Path, Query, Request
from sqlalchemy import Connection

from headgate.kit.errors import Conflict, TooManyAttempts
from headgate.platform.connection_checks import service
from headgate.platform.connection_checks.schemas import (
    CheckIn,
    ConnectionCheckIn,
    ConnectionCheckOut,
    DestinationCheckIn,
)
from headgate.platform.external_systems.schemas import ConnectionId, DestinationId
from headgate.platform.http.guards import MemberOn, SignedIn
from headgate.platform.http.long_polling import until
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.services import Services
from headgate.platform.unit_of_work.stages import Stages
from headgate.platform.unit_of_work.watch import LONGEST

router = GovernedRouter(prefix="/api", tags=["connection checks"])

CheckId = Annotated[str, Path(pattern="^cck_[0-9a-z]{20}$", examples=["cck_01k6x3v9c2m4n8p0q7rs"])]
Wait = Annotated[
    float, Query(ge=0, le=LONGEST, description="Wait up to this many seconds for the end; 0 returns at once")
]


async def until_over(services: Services, request: Request, parameters: dict[str, Any]) -> None:
    """Wait until one of the caller's own checks ends; return at once for others."""
    check = parameters["check_id"]

    def is_over(connection: Connection, member: str) -> bool:
        return service.has_ended(connection, member, check)

    await until(services, request, is_over, parameters["wait"])


def _ask(stages: Stages, place: str, body: CheckIn) -> ConnectionCheckOut:
    def work(call: Call) -> ConnectionCheckOut:
        return service.shown(service.own(call, service.ask(call, place, body)))

    check = stages.write(work)
    stages.services.watch.ring()
    return check


@router.governed(
    "POST",
    "/connections/{connection_id}/checks",
    MemberOn("test", "connection_id"),
    Audit.changes,
    errors=[Conflict, TooManyAttempts],
    staged=True,
)
def check_connection(stages: Stages, connection_id: ConnectionId, body: ConnectionCheckIn) -> ConnectionCheckOut:
    """Check a connection: whether its host responds, or which tables or files exist. `GET
    /api/connection-checks/{check_id}` with `wait` follows the check. With `place`, the check uses an unsaved
    configuration. That requires the right to edit the connection, and the secrets must be in the same request,
    because stored secrets are sent only to the stored endpoint.
    """
    return _ask(stages, connection_id, body)


@router.governed(
    "POST",
    "/destinations/{destination_id}/checks",
    MemberOn("test", "destination_id"),
    Audit.changes,
    errors=[Conflict, TooManyAttempts],
    staged=True,
)
def check_destination(stages: Stages, destination_id: DestinationId, body: DestinationCheckIn) -> ConnectionCheckOut:
    """Check a destination, or the given `place`, without writing to it. Testing requires `edit`."""
    return _ask(stages, destination_id, body)


@router.governed(
    "GET",
    "/connection-checks/{check_id}",
    SignedIn("sees their own, while they may still reach what it is about"),
    Audit.reads,
    wait=until_over,
)
def get_connection_check(call: Call, check_id: CheckId, wait: Wait = 0) -> ConnectionCheckOut:
    """Get the status and the result of a check. It is deleted after an hour."""
    return service.shown(service.own(call, check_id))
