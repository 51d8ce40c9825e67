"""The words of the access model: roles, levels, plans, and what each action means."""

ROLES = ("owner", "admin", "technical", "business")
ADMINS = ("owner", "admin")
SECURITY_ROLES = ("tenant_admin", "data_admin", "space_creator")
SPACE_ROLES = ("can_view", "can_view_data", "can_consume_data", "can_manage", "can_operate", "can_edit")
SCOPES = ("entire", "selected")
PLANS = ("starter", "growth", "custom")
INVITES = ("by-role", "admins-only")
PIPELINE_KINDS = ("source", "query", "notebook", "history", "delivery")
LEVELS = {"viewer": 1, "editor": 2, "manager": 3}
LEVEL_NAMES = {number: name for name, number in LEVELS.items()}

READ_ONLY = frozenset({"see", "list", "open", "see_runs", "follow", "execute", "view_data", "consume_data"})
"""What a read-only token can do."""

INVITATIONS = frozenset({"invite_owner", "invite_admin", "invite_technical", "invite_business"})
CREDENTIAL_ACTIONS = INVITATIONS | {"reset_password", "make_magic_link", "manage_tokens"}
"""What no narrowed token can do: it makes or changes no token, password or session, and no link that begins one."""

DATA_READING = frozenset({"execute", "view_data", "consume_data"})
"""Actions that give rows of data to someone; each decision about them is an audit event."""

DRAFT_ACTIONS = frozenset({"create", "add"})
"""Actions about something that does not exist yet: they are asked of a draft."""

DESCRIPTIONS = {
    "activate": "Turn the pipeline on or off",
    "add": "Add one here",
    "answer": "Approve or decline it",
    "ask_about_members": "Ask what another member can do, and why",
    "change_owner": "Make another member its owner",
    "change_role": "Give the member another role",
    "change_space": "Move it to another space",
    "configure_sharing": "Change the sharing toggles",
    "confirm": "Confirm where it reads or writes after a connection or destination was repointed",
    "connect": "Use it in pipelines",
    "consume_data": "Use the rows of the task's output tables elsewhere",
    "control": "Run, stop, resume, reload: the caller's right alone",
    "copy_credentials": "Read the connection credentials",
    "create": "Create one here",
    "create_group": "Create a group",
    "create_layer": "Create a layer",
    "create_space": "Create a data space and own it",
    "delete": "Delete it",
    "describe": "Change titles and descriptions, of fields too",
    "edit": "Change it; on a table, write and alter; on a layer, create in it",
    "edit_attributes": "Change name and description, activate, schedule, validate",
    "execute": "Query its rows",
    "fire": "Start by schedule: its author's right and that of everyone it is judged for",
    "follow": "Know when it succeeds or changes, and start pipelines by that",
    "grant": "Grant, change and revoke Viewer and Editor",
    "grant_manager": "Grant, change and revoke Manager",
    "invite_admin": "Invite an admin",
    "invite_business": "Invite a business member",
    "invite_owner": "Invite an owner",
    "invite_technical": "Invite a technical member",
    "list": "See it in lists, with what is known about it",
    "make_magic_link": "Make a link that signs the member in",
    "manage": "Create, change and delete the trigger",
    "manage_billing": "Manage billing and change the plan",
    "manage_contexts": "Create, rename and delete contexts",
    "manage_groups": "Change who is in a group; rename and delete groups",
    "manage_members": "Change members and their roles",
    "manage_owners": "Assign and revoke ownership",
    "manage_settings": "Change settings of the organization",
    "manage_triggers": "Create, change and delete its triggers",
    "open": "Open it",
    "operate": "Operate the project's tasks",
    "read_audit": "Read the audit log",
    "read_secrets": "Let the code of one's notebooks read its secrets",
    "remove": "Remove the member",
    "resend": "Send it again, with a new link",
    "reset_password": "Reset the member's password",
    "restore": "Bring back a deleted one",
    "revoke": "End it at once",
    "run": "Run it by hand: the caller's right alone",
    "see": "See it in lists and open it",
    "see_access": "Ask who can do what on it",
    "see_change": "See all of the change that answered it",
    "see_runs": "See its runs",
    "see_settings": "See settings of the organization",
    "start": "Start it now: the caller's right and that of everyone it is judged for",
    "start_with_secrets": "Start it, its code reading secrets of its connections",
    "test": "Test it, list what is there, and look at samples",
    "test_changes": "Test a place or secrets that are not saved",
    "trigger": "Start it by hand: the caller's right alone",
    "update": "Change it; of a task, its definition",
    "use": "Link it to other things",
    "view_data": "Preview rows of the task's output tables",
    "withdraw": "Take it back",
}


MEANINGS = {
    ("edit", "layer"): "Create tables and volumes in it",
    ("edit", "table"): "Write to and alter it",
    ("edit", "volume"): "Put and delete files in it",
}
"""What an action means for one kind, where that says more."""


def words(action: str, kind: str = "", what: str = "") -> str:
    """An action as it stands in a sentence: its name, and what it means; of what, if that is named."""
    meaning = MEANINGS.get((action, kind)) or DESCRIPTIONS.get(action)
    name = action.replace("_", " ")
    if not meaning:
        return f"{name} ({what})" if what else name
    told = f"{meaning[0].lower()}{meaning[1:]}"
    if what:
        told = f"{told.removesuffix(' it')} {what}" if told.endswith(" it") else f"{told} ({what})"
        if told.startswith((f"{name} ", f"{name},")):
            return told
    return f"{name}: {told}"
