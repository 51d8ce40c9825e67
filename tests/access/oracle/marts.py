"""Storages, data marts, destinations and reports: the table of paths (section 3)."""

from .world import Member, Resource, World

CREDENTIAL_EVERYTHING = frozenset(
    {"see", "use", "edit", "delete", "copy_credentials", "configure_sharing", "manage_owners", "test", "test_changes"}
)
CREDENTIAL_MAINTENANCE = frozenset({"see", "use", "copy_credentials", "edit", "delete", "test", "test_changes"})
MART_EVERYTHING = frozenset({"see", "use", "edit", "delete", "configure_sharing", "manage_owners", "manage_triggers"})
MART_MAINTENANCE = frozenset({"see", "use", "edit", "delete", "manage_triggers"})
REPORT_EVERYTHING = frozenset({"see", "edit", "delete", "run", "manage_owners", "manage_triggers"})
SEE_AND_USE = frozenset({"see", "use"})


def in_scope(member: Member, resource: Resource) -> bool:
    """Tell whether sharing reaches the member: by an entire scope, or by a context in common."""
    if member.entire_scope:
        return True
    return any(context in member.contexts for context in resource.people("contexts"))


def storage_actions(member: Member, storage: Resource) -> frozenset[str]:
    """Return what a member may do with a storage."""
    allowed: frozenset[str] = frozenset()
    technical = member.role == "technical"
    if member.is_admin:
        allowed |= CREDENTIAL_EVERYTHING
    if technical and member.name in storage.people("owners"):
        allowed |= CREDENTIAL_EVERYTHING
    if technical and storage.is_on("shared_for_use") and in_scope(member, storage):
        allowed |= SEE_AND_USE | {"test"}  # a storage is tested by its users, a destination by its editors (section 9)
    if technical and storage.is_on("shared_for_maintenance") and in_scope(member, storage):
        allowed |= CREDENTIAL_MAINTENANCE
    return allowed


def data_mart_actions(member: Member, mart: Resource) -> frozenset[str]:
    """Return what a member may do with a data mart."""
    allowed: frozenset[str] = frozenset()
    technical = member.role == "technical"
    technical_owner = member.name in mart.people("technical_owners")
    business_owner = member.name in mart.people("business_owners")
    if member.is_admin:
        allowed |= MART_EVERYTHING
    if technical and technical_owner:
        allowed |= MART_EVERYTHING
    if technical_owner or business_owner:
        allowed |= SEE_AND_USE
    if mart.is_on("shared_for_reporting") and in_scope(member, mart):
        allowed |= SEE_AND_USE
    if technical and mart.is_on("shared_for_maintenance") and in_scope(member, mart):
        allowed |= MART_MAINTENANCE
    return allowed


def destination_actions(member: Member, destination: Resource) -> frozenset[str]:
    """Return what a member may do with a destination, deleted or not."""
    allowed = _live_destination_actions(member, destination)
    if not destination.is_marked("deleted"):
        return allowed
    # once deleted, it can only be restored, by those who could delete it
    return frozenset({"restore"}) if "delete" in allowed else frozenset()


def _live_destination_actions(member: Member, destination: Resource) -> frozenset[str]:
    """Return what a member may do, or could before it was deleted."""
    allowed: frozenset[str] = frozenset()
    if member.is_admin:
        allowed |= CREDENTIAL_EVERYTHING
    if member.name in destination.people("owners"):
        allowed |= CREDENTIAL_EVERYTHING
    if destination.is_on("shared_for_use") and in_scope(member, destination):
        allowed |= SEE_AND_USE
    if destination.is_on("shared_for_maintenance") and in_scope(member, destination):
        allowed |= CREDENTIAL_MAINTENANCE
    return allowed


def report_actions(world: World, member: Member, report: Resource) -> frozenset[str]:
    """Return what a member may do with a report."""
    mart = world.find("data_mart", report.ref("data_mart"))
    if mart is None:
        return frozenset()
    on_mart = data_mart_actions(member, mart)
    allowed: frozenset[str] = frozenset()
    if member.is_admin:
        allowed |= REPORT_EVERYTHING
    if "see" in on_mart:
        allowed |= {"see"}
    if "edit" in on_mart:
        allowed |= REPORT_EVERYTHING
    owner = member.name in report.people("owners")
    if owner and "see" in on_mart and live_destination(world, report) is not None:
        allowed |= REPORT_EVERYTHING
    return allowed


def live_destination(world: World, holder: Resource) -> Resource | None:
    """Return the destination of a report or pipeline, or None when it is missing or deleted."""
    destination = world.find("destination", holder.ref("destination"))
    if destination is None or destination.is_marked("deleted"):
        return None
    return destination


def uses_storage(world: World, member: Member, name: str | None) -> bool:
    """Tell whether a member has *use* on the storage of that name."""
    storage = world.find("storage", name)
    return storage is not None and "use" in storage_actions(member, storage)


def uses_mart(world: World, member: Member, name: str | None) -> bool:
    """Tell whether a member has *use* on the data mart of that name."""
    mart = world.find("data_mart", name)
    return mart is not None and "use" in data_mart_actions(member, mart)


def uses_destination(world: World, member: Member, name: str | None) -> bool:
    """Tell whether a member has *use* on the destination of that name."""
    destination = world.find("destination", name)
    return destination is not None and "use" in destination_actions(member, destination)
