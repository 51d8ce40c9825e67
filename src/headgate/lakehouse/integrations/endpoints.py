"""Integration endpoints. Admins create, change and delete integrations; members who may read all their tables
see them.
"""

from typing import Annotated

from fastapi import Path, Query

from headgate.kit.paging import DEFAULT_LIMIT
from headgate.lakehouse.integrations import service
from headgate.lakehouse.integrations.schemas import (
    IntegrationChange,
    IntegrationDeleted,
    IntegrationIn,
    IntegrationMade,
    IntegrationOut,
    IntegrationPage,
    TokenIn,
)
from headgate.platform.authorization.repository import ResourceSort
from headgate.platform.http.guards import MemberOn, OwnCredentials, SignedIn
from headgate.platform.http.paging import After, Limit, Prefix
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.resources import presentation
from headgate.platform.unit_of_work.call import Call

router = GovernedRouter(prefix="/api/integrations", tags=["integrations"])

IntegrationId = Annotated[str, Path(pattern="^int_[0-9a-z]{20}$", examples=["int_01k6x3v9c2m4n8p0q7rs"])]
Sort = Annotated[ResourceSort, Query(description="The sort order; a leading minus reverses it")]


@router.governed("GET", "", SignedIn("sees the integrations whose tables they may all read"), Audit.reads)
def list_integrations(
    call: Call, sort: Sort = ResourceSort.name, prefix: Prefix = "", limit: Limit = DEFAULT_LIMIT, cursor: After = None
) -> IntegrationPage:
    """List integrations, each with the time of its last use."""
    resources, following = presentation.listed(call, service.KIND, sort, prefix, limit, cursor)
    return IntegrationPage(items=service.items(call, resources), next_cursor=following)


@router.governed("POST", "", OwnCredentials("makes integrations, as an admin"), Audit.changes)
def create_integration(call: Call, body: IntegrationIn) -> IntegrationMade:
    """Create an integration. Its token, shown once, reads only the listed tables, with its creator's rights."""
    identifier, secret = service.make(call, body)
    return IntegrationMade(**service.shown(call, identifier).model_dump(), secret=secret)


@router.governed("GET", "/{integration_id}", MemberOn("see", "integration_id"), Audit.reads)
def get_integration(call: Call, integration_id: IntegrationId) -> IntegrationOut:
    """Get an integration: the tables it may read, and its reads in the last thirty days."""
    return service.shown(call, integration_id)


@router.governed("PATCH", "/{integration_id}", MemberOn("edit", "integration_id"), Audit.changes)
def change_integration(call: Call, integration_id: IntegrationId, body: IntegrationChange) -> IntegrationOut:
    """Change the name, the description, or the readable tables; its token changes immediately."""
    if body.tables is not None:
        OwnCredentials("changes what a token reads").check(call, {})
    service.change(call, integration_id, body)
    return service.shown(call, integration_id)


@router.governed("POST", "/{integration_id}/token", MemberOn("edit", "integration_id"), Audit.changes)
def renew_integration_token(call: Call, integration_id: IntegrationId, body: TokenIn) -> IntegrationMade:
    """Renew the token, shown once; it reads with the caller's rights. The previous token is revoked immediately."""
    OwnCredentials("renews tokens").check(call, {})
    secret = service.renew(call, integration_id, body.expires)
    return IntegrationMade(**service.shown(call, integration_id).model_dump(), secret=secret)


@router.governed("DELETE", "/{integration_id}", MemberOn("delete", "integration_id"), Audit.changes)
def delete_integration(call: Call, integration_id: IntegrationId) -> IntegrationDeleted:
    """Delete an integration and revoke its token."""
    OwnCredentials("ends a token").check(call, {})
    return IntegrationDeleted(id=integration_id, name=service.remove(call, integration_id))
