"""The modules outside access/ that store, show or change facts of access, for tools/lint_access.py."""

ANY = "any fact"

EXCEPTIONS = {
    # The facts themselves: stored, loaded, and changed after a decision.
    "platform/authorization/fact_tables.py": (ANY, "", "declares the tables"),
    "platform/authorization/facts.py": (ANY, ANY, "loads the facts that the rule tables decide by"),
    "platform/authorization/questions.py": ("role", "role", "passes the new role of change_role to the rule tables"),
    "platform/authorization/list_index.py": ("audience", "", "fills the index from statements that access/ writes"),
    "platform/authorization/repository.py": ("audience", "", "reads the index by keys that access/ gives"),
    "organization/access/changes/plans.py": (ANY, ANY, "works out what a change does to the rows, after the decision"),
    "organization/access/changes/delta.py": ("former_owners", "", "writes the rows of a change"),
    "organization/access/changes/reach.py": (
        "author_id, grantee_id, grants, owner_id",
        "",
        "finds whom a change may concern; each of them is decided again",
    ),
    "organization/access/changes/removal.py": (
        "grantee_id, owner_id, principal_id",
        "owner_id",
        "ends what a removed member holds, after the decision",
    ),
    "worlds/exporter.py": (ANY, "", "writes every fact out as a world"),
    "worlds/loader.py": (ANY, "", "writes the facts of a world"),
    # The operator of the machine is no member: the rule tables have a path of their own for them.
    "organization/access/authzen.py": ("operator", "operator", "names the operator as the subject of a question"),
    "organization/access/changes/targets.py": ("operator", "operator", "the operator sees everything"),
    "worlds/endpoints.py": ("operator", "operator", "the operator exports every saved query"),
    "organization/access/endpoints.py": (
        "entire, grants, role",
        "entire, grants",
        "shows the caller to themselves; the operator has no page of their own",
    ),
    "organization/access/service.py": ("operator", "operator", "the operator asks about members, not about themselves"),
    "platform/unit_of_work/call.py": (
        "operator",
        "operator",
        "makes the subject that the rule tables know the operator by",
    ),
    "platform/http/guards.py": ("operator", "operator", "routes for members refuse the operator"),
    "platform/unit_of_work/stages.py": ("operator", "operator", "the operator works without a session"),
    # Shown to readers who were found by a decision.
    "lakehouse/items/repository.py": ("grantee_id", "grantee_id", "shows the grants on a table, with names"),
    "lakehouse/layers/endpoints.py": ("grants", "", "calls the list of grants"),
    "lakehouse/tables/endpoints.py": ("grants", "", "calls the list of grants"),
    "lakehouse/volumes/endpoints.py": ("grants", "", "calls the list of grants"),
    "lakehouse/trash/retained_rows.py": ("grantee_id", "grantee_id", "restores no grant of a removed member"),
    "lakehouse/trash/service.py": ("grantee_id, grants", "grants", "decides about what was deleted, by its grants"),
    "marts/destinations/repository.py": ("shared_for_maintenance, shared_for_use", "", "shows the toggles"),
    "organization/access_requests/candidates.py": (
        "contexts, entire, grantee, grants, role, the value 'owner'",
        "ownership, role",
        "lists the changes to try; the rule tables decide about each",
    ),
    "organization/access_requests/proposals.py": (
        "contexts, grantee, operator",
        "contexts, grantee",
        "names only contexts that the reader works in, and ends of their own grants",
    ),
    "organization/access_requests/service.py": (
        "for_maintenance, for_use, ownership, role, security_role, space_role",
        "",
        "names the parts of a change that are shown",
    ),
    "organization/groups/endpoints.py": ("grants, space_roles", "", "shows what a group holds"),
    "organization/groups/guards.py": ("the value 'starter'", "", "words the refusal of the rule tables"),
    "organization/groups/repository.py": (
        "grantee_id, principal_id, space_role",
        "grantee_id, principal_id",
        "shows what a group holds",
    ),
    "organization/groups/service.py": ("grantee_id, principal_id", "", "ends what a deleted group held"),
    "organization/invitations/endpoints.py": (
        "contexts, entire, role, the value 'entire'",
        "",
        "shows invitations, and asks for the action of the invited role",
    ),
    "organization/invitations/service.py": (
        "contexts, entire, role, the value 'entire', the value 'owner'",
        "role",
        "makes a member of the invited role; an installation without an owner gets one",
    ),
    "organization/members/endpoints.py": ("role", "", "shows members to admins"),
    "organization/members/holdings.py": (
        "author_id, former_owners, owner_id, owners, ownership",
        "",
        "lists what a removal leaves without an owner",
    ),
    "organization/members/repository.py": ("role, security_role", "", "shows members to admins"),
    "organization/members/schemas.py": ("role", "", "names an order of the list"),
    "organization/profile/repository.py": ("role", "role", "counts members by role"),
    "pipelines/runs/start.py": ("owner_id", "", "a task runs as the owner of its project"),
    "pipelines/service.py": ("owner_id, the value 'editor'", "", "asks for each member whom a run is judged for"),
    "pipelines/triggers/fire.py": ("author_id", "", "asks the rule tables for the author"),
    "pipelines/triggers/presentation.py": ("author_id", "", "shows the author"),
    "pipelines/triggers/repository.py": ("author_id", "author_id", "joins the author's name"),
    "pipelines/triggers/service.py": ("author_id", "", "records who was the author before"),
    "platform/notifications/repository.py": ("ownership", "", "finds the owners to warn; the rule tables decide"),
    "spaces/connections/repository.py": (
        "code_allowed_by_id, owner, owner_id, the value 'owner'",
        "code_allowed_by_id, owner, owner_id",
        "shows the owner, and whether they allow code",
    ),
    "spaces/spaces/repository.py": ("owner, owner_id, personal", "owner, owner_id", "shows spaces with their owners"),
    # A word that means something else there.
    "platform/http/logs.py": ("a field with a computed name", "", "reads the number of a log level"),
}
"""By module: the facts that it reads, those that stand in its conditions, and why."""
