"""Rule tables about members and the organization itself: access model, sections 3 and 4."""

from headgate.access.atoms import (
    ADMIN,
    GRANTS_COUNT,
    INVITES_BY_ROLE,
    NOT_AN_OWNER,
    NOT_MADE_OWNER,
    NOT_SELF,
    NOT_THE_LAST_OWNER,
    OPERATOR,
    role_is,
    security_role,
)
from headgate.access.conditions import all_of, any_of
from headgate.access.rules.paths import Path, Rules

OWNER = role_is("owner")
MANAGES = any_of(all_of(role_is("admin"), NOT_AN_OWNER), OWNER)

MEMBER = Rules(
    "member",
    "Member",
    "",
    (
        Path("admin", MANAGES, ("reset_password", "make_magic_link")),
        Path("admin removes", all_of(MANAGES, NOT_THE_LAST_OWNER), ("remove",)),
        Path("admin changes roles", all_of(MANAGES, NOT_SELF, any_of(NOT_MADE_OWNER, OWNER)), ("change_role",)),
    ),
)

ORGANIZATION = Rules(
    "organization",
    "Organization",
    "",
    (
        Path("owner", OWNER, ("invite_owner", "manage_billing")),
        Path(
            "admin",
            ADMIN,
            (
                "invite_admin",
                "invite_technical",
                "invite_business",
                "create_layer",
                "see_settings",
                "create_space",
                "manage_settings",
                "manage_members",
                "manage_groups",
                "manage_contexts",
                "read_audit",
                "ask_about_members",
            ),
        ),
        Path("technical invites", all_of(role_is("technical"), INVITES_BY_ROLE), ("invite_technical",)),
        Path("members invite", all_of(role_is("technical", "business"), INVITES_BY_ROLE), ("invite_business",)),
        Path("admin on Growth or Custom", all_of(ADMIN, GRANTS_COUNT), ("create_group",)),
        Path("security role", security_role("tenant_admin", "data_admin", "space_creator"), ("create_space",)),
        Path("operator", OPERATOR, ("ask_about_members", "read_audit", "see_settings")),
    ),
)

TABLES = (MEMBER, ORGANIZATION)
