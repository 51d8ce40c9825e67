"""Organization endpoints: name, plan and usage."""

from headgate.organization.profile import repository
from headgate.organization.profile.schemas import OrganizationName, OrganizationOut, Usage
from headgate.platform.http.guards import OnOrganization, SignedIn
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.resources.names import require_names
from headgate.platform.unit_of_work.call import Call

router = GovernedRouter(prefix="/api/organization", tags=["organization"])


def _shown(call: Call) -> OrganizationOut:
    row = repository.organization(call.connection)
    return OrganizationOut(name=row["name"], plan=row["plan"], invites=row["invites"])


@router.governed("GET", "", SignedIn("knows the organization they belong to", operator_too=True), Audit.nothing)
def get_organization(call: Call) -> OrganizationOut:
    """Get the organization: its name, its plan, and who may invite."""
    require_names(call)
    return _shown(call)


@router.governed("PATCH", "", OnOrganization("manage_settings"), Audit.changes)
def rename_organization(call: Call, body: OrganizationName) -> OrganizationOut:
    """Rename the organization."""
    decision = call.require("manage_settings", "organization", "organization")
    before = repository.organization(call.connection)["name"]
    repository.rename(call.connection, body.name)
    after = {"change": "rename_organization", "name": body.name}
    call.record_change(
        decision, "manage_settings", "organization", "organization", before={"name": before}, after=after
    )
    return _shown(call)


@router.governed("GET", "/usage", OnOrganization("manage_billing"), Audit.nothing)
def get_usage(call: Call) -> Usage:
    """Get the numbers of members, invitations, groups, contexts, tokens and resources."""
    return Usage(
        plan=repository.organization(call.connection)["plan"],
        members=repository.members_by_role(call.connection),
        resources=repository.resources_by_kind(call.connection),
        **repository.counts(call.connection, call.now),
    )
