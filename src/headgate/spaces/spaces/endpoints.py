"""Data space endpoints."""

from typing import Annotated

from fastapi import Path, Query

from headgate.kit.errors import Conflict
from headgate.kit.paging import DEFAULT_LIMIT
from headgate.platform.authorization.repository import ResourceSort
from headgate.platform.http.guards import MemberOn, OnOrganization, SignedIn
from headgate.platform.http.paging import After, Limit, Prefix
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.resources import presentation
from headgate.platform.unit_of_work.call import Call
from headgate.spaces.spaces import repository, service
from headgate.spaces.spaces.schemas import NewSpace, SpaceOut, SpacePage

router = GovernedRouter(prefix="/api/spaces", tags=["spaces"])

SpaceId = Annotated[str, Path(pattern="^spc_[0-9a-z]{20}$", examples=["spc_01k6x3v9c2m4n8p0q7rs"])]
Sort = Annotated[ResourceSort, Query(description="The sort order; a leading minus reverses it")]


@router.governed("GET", "", SignedIn("sees the spaces in which they have a role"), Audit.reads)
def list_spaces(
    call: Call, sort: Sort = ResourceSort.name, prefix: Prefix = "", limit: Limit = DEFAULT_LIMIT, cursor: After = None
) -> SpacePage:
    """List spaces: those in which the caller has a role, or all of them for admins."""
    resources, following = presentation.listed(call, "space", sort, prefix, limit, cursor)
    return SpacePage(items=repository.shown(call.connection, resources), next_cursor=following)


@router.governed("POST", "", OnOrganization("create_space"), Audit.changes, errors=[Conflict])
def create_space(call: Call, body: NewSpace) -> SpaceOut:
    """Create a data space and become its owner. `POST /api/access/changes` with `give_space_role` adds members."""
    return _shown(call, service.create(call, body.name))


@router.governed("GET", "/{space_id}", MemberOn("see", "space_id"), Audit.reads)
def get_space(call: Call, space_id: SpaceId) -> SpaceOut:
    """Get a space with the caller's actions on it."""
    call.note_read("see", "space", space_id)
    return _shown(call, space_id)


def _shown(call: Call, space: str) -> SpaceOut:
    return repository.shown(call.connection, [presentation.one(call, space)])[0]
