"""The actions of each kind, as the world format enumerates them."""

ACTIONS: dict[str, tuple[str, ...]] = {
    "storage": ("see", "use", "edit", "delete", "copy_credentials", "configure_sharing", "manage_owners", "test",
        "test_changes",
    ),
    "destination": (
        "see", "use", "edit", "delete", "copy_credentials", "configure_sharing", "manage_owners", "restore",
        "test", "test_changes",
    ),
    "data_mart": ("see", "use", "edit", "delete", "configure_sharing", "manage_owners", "manage_triggers"),
    "report": ("see", "edit", "delete", "run", "manage_owners", "manage_triggers", "start", "confirm"),
    "data_mart_trigger": ("see", "manage", "fire"),
    "report_trigger": ("see", "manage", "fire"),
    "pipeline_trigger": ("see", "manage", "fire"),
    "run": ("see", "delete"),
    "layer": ("see", "describe", "edit", "delete", "grant", "grant_manager"),
    "table": ("see", "execute", "follow", "describe", "edit", "delete", "grant", "grant_manager"),
    "volume": ("see", "describe", "edit", "delete", "grant", "grant_manager"),
    "pipeline": (
        "see", "edit", "activate", "trigger", "delete", "see_runs", "follow", "start", "confirm",
        "start_with_secrets",
    ),
    "task": (
        "list", "edit_attributes", "open", "follow", "update", "delete", "control",
        "view_data", "consume_data", "change_owner", "start", "confirm", "start_with_secrets",
    ),
    "integration": ("see",),
    "saved_query": ("see", "edit", "delete"),
    "space": ("see", "update", "delete", "change_owner", "manage_members"),
    "project": ("list", "update", "open", "delete", "operate", "change_owner"),
    "connection": (
        "list", "edit", "delete", "change_owner", "change_space", "connect", "test", "test_changes", "read_secrets",
    ),
    "gateway": ("list", "delete"),
    "member": ("change_role", "remove", "reset_password", "make_magic_link"),
    "organization": (
        "invite_owner", "invite_admin", "invite_technical", "invite_business", "create_layer",
        "create_group", "see_settings", "manage_billing", "create_space",
    ),
}  # fmt: skip

# What a read-only token keeps (section 4).
READ_ONLY_ACTIONS = ("see", "list", "open", "see_runs", "follow", "execute", "view_data", "consume_data")
