"""Maintenance endpoints: start and follow a pass. The schedule is in the settings."""

from typing import Annotated

from fastapi import Path, Query

from headgate.kit.errors import Conflict
from headgate.lakehouse.maintenance import repository, service
from headgate.lakehouse.maintenance.schemas import PassDetail, PassIn, PassOut, PassPage
from headgate.platform.http.guards import OnOrganization
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.call import Call

router = GovernedRouter(prefix="/api/maintenance", tags=["maintenance"])

_ID = "^mnt_[0-9a-z]{20}$"
PassId = Annotated[str, Path(pattern=_ID, examples=["mnt_01k6x3v9c2m4n8p0q7rs"])]
After = Annotated[str | None, Query(pattern=_ID, description="The `next_cursor` of the previous page")]


@router.governed("POST", "/passes", OnOrganization("manage_settings"), Audit.changes, errors=[Conflict])
def start_maintenance(call: Call, body: PassIn) -> PassDetail:
    """Start a pass that expires snapshots, removes orphan files and compacts small files of all tables or one, by the
    settings. The scheduler starts it immediately, unless another pass is in progress.
    """
    return service.detail(call, service.ask(call, body))


@router.governed("GET", "/passes", OnOrganization("see_settings"), Audit.nothing)
def list_maintenance_passes(
    call: Call, limit: Annotated[int, Query(ge=1, le=100)] = 20, cursor: After = None
) -> PassPage:
    """List maintenance passes, newest first."""
    rows = repository.newest(call.connection, limit + 1, cursor)
    passes: list[PassOut] = [service.shown(call, row) for row in rows[:limit]]
    return PassPage(items=passes, next_cursor=passes[-1].id if len(rows) > limit else None)


@router.governed("GET", "/passes/{pass_id}", OnOrganization("see_settings"), Audit.nothing)
def get_maintenance_pass(call: Call, pass_id: PassId) -> PassDetail:
    """Get the status and the results of a pass."""
    return service.detail(call, pass_id)
