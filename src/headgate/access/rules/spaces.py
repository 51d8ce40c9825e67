"""Rule tables of the spaces area: access model, section 5, with the joints of section 6; cells as in seed 004."""

from headgate.access.atoms import (
    ADMIN,
    ALLOWS_CODE,
    CONNECTION_OWNER,
    NOT_PERSONAL,
    OWNERLESS,
    security_role,
    space_role,
)
from headgate.access.conditions import AllRelated, AnyRelated, Can, Condition, OfMember, OnRelated, all_of, any_of
from headgate.access.rules.paths import Path, Remedy, Rules
from headgate.access.rules.terms import MAY_USE_SPACE, PLACES, READS_SECRETS, held

ANY_ROLE = ("can_view", "can_view_data", "can_consume_data", "can_manage", "can_operate", "can_edit")
OPENS = ("can_view", "can_operate", "can_edit")
TENANT_OR_DATA_ADMIN = security_role("tenant_admin", "data_admin")
NOT_SHUT = OnRelated("space", NOT_PERSONAL)
"""Nothing in a personal space can be shared."""

ADD_TO_SPACE = Remedy("give you the role in the space", "manage_members")
ADD_TO_ITS_SPACE = Remedy("give you the role in the space", "manage_members", "space")


def _in_space(*roles: str) -> Condition:
    return OnRelated("space", space_role(*roles))


SPACE = Rules(
    "space",
    "Data space",
    "see",
    (
        Path("admin", ADMIN, ("see", "update", "delete", "see_access")),
        Path("admin shares", all_of(ADMIN, NOT_PERSONAL), ("manage_members", "change_owner")),
        Path("admin gives an owner", all_of(ADMIN, OWNERLESS), ("change_owner",)),
        Path("any role", space_role(*ANY_ROLE), ("see",), ADD_TO_SPACE),
        Path("Can manage", space_role("can_manage"), ("update", "delete"), ADD_TO_SPACE),
        Path(
            "Can manage members",
            all_of(space_role("can_manage"), NOT_PERSONAL),
            ("manage_members", "see_access"),
            ADD_TO_SPACE,
        ),
        Path("tenant or data admin", TENANT_OR_DATA_ADMIN, ("see", "update", "delete")),
        Path(
            "tenant or data admin shares",
            all_of(TENANT_OR_DATA_ADMIN, NOT_PERSONAL),
            ("manage_members", "change_owner", "see_access"),
        ),
        Path(
            "creator",
            any_of(ADMIN, security_role("tenant_admin", "data_admin", "space_creator")),
            ("create",),
        ),
    ),
)

_ASK = Path("asked with its space", OnRelated("space", Can("manage_members")), ("see_access",))

PROJECT = Rules(
    "project",
    "Data project",
    "list",
    (
        Path("admin", ADMIN, ("list", "update", "open", "delete", "operate", "see_access")),
        Path("any role", _in_space(*ANY_ROLE), ("list",), ADD_TO_ITS_SPACE),
        Path("Can view, operate or edit", _in_space(*OPENS), ("open",), ADD_TO_ITS_SPACE),
        Path("Can edit", _in_space("can_edit"), ("update", "delete"), ADD_TO_ITS_SPACE),
        Path("Can operate", _in_space("can_operate"), ("operate",), ADD_TO_ITS_SPACE),
        Path("tenant or data admin", TENANT_OR_DATA_ADMIN, ("list", "open", "delete")),
        Path("new owner", all_of(any_of(ADMIN, TENANT_OR_DATA_ADMIN), NOT_SHUT), ("change_owner",)),
        Path("creator", OnRelated("space", any_of(ADMIN, space_role("can_edit"))), ("create",)),
        _ASK,
    ),
)


def _task_cell(*roles: str) -> Condition:
    return OnRelated("project", OnRelated("space", space_role(*roles)))


_EDITS_TASKS = OnRelated("project", OnRelated("space", any_of(ADMIN, space_role("can_edit"))))

_OWN_LEVELS = all_of(AllRelated("judged_reads", held(1)), AllRelated("judged_writes", held(2)), PLACES)
"""A space never lends what its editor could not touch."""

_RUNS_AS_OWNER = all_of(
    OfMember(
        "project_owner",
        all_of(
            _EDITS_TASKS,
            AllRelated("enabled_reads", held(1)),
            AllRelated("enabled_writes", held(2)),
            PLACES,
        ),
    ),
    OfMember("acts_for", all_of(AllRelated("enabled_reads", held(1)), AllRelated("enabled_writes", held(2)))),
)

_SHOWN = AnyRelated(
    "outputs",
    any_of(held(1), all_of(OfMember("project_owner", held(3)), OfMember("acts_for", held(3)))),
)
"""An output may be shown if both who stand behind the task could grant it, or to who may read it anyway."""

_TASK_ASK = Path(
    "asked with its space", OnRelated("project", OnRelated("space", Can("manage_members"))), ("see_access",)
)
_TASK_ROLE = Remedy("give you the role in the space", "manage_members", "project.space")

TASK = Rules(
    "task",
    "Data task (a pipeline in a data project)",
    "list",
    (
        Path(
            "admin",
            ADMIN,
            (
                "list",
                "edit_attributes",
                "open",
                "follow",
                "delete",
                "control",
                "see_access",
            ),
        ),
        Path("admin reads data", AnyRelated("outputs", ADMIN), ("view_data", "consume_data")),
        Path("any role", _task_cell(*ANY_ROLE), ("list",), _TASK_ROLE),
        Path("Can view, operate or edit", _task_cell(*OPENS), ("open", "follow"), _TASK_ROLE),
        Path("Can edit", _task_cell("can_edit"), ("edit_attributes", "delete"), _TASK_ROLE),
        Path("Can edit, with own levels", all_of(_EDITS_TASKS, _OWN_LEVELS), ("update", "confirm"), _TASK_ROLE),
        Path("Can operate", _task_cell("can_operate"), ("control",), _TASK_ROLE),
        Path("Can view data", all_of(_task_cell("can_view_data"), _SHOWN), ("view_data",), _TASK_ROLE),
        Path("Can consume data", all_of(_task_cell("can_consume_data"), _SHOWN), ("consume_data",), _TASK_ROLE),
        Path("tenant or data admin", TENANT_OR_DATA_ADMIN, ("list", "open", "follow", "delete")),
        Path(
            "new owner",
            all_of(any_of(ADMIN, TENANT_OR_DATA_ADMIN), OnRelated("project", NOT_SHUT)),
            ("change_owner",),
        ),
        Path(
            "creator",
            all_of(_EDITS_TASKS, _OWN_LEVELS),
            ("create",),
        ),
        Path("ready", _RUNS_AS_OWNER, ("ready",)),
        Path("start", all_of(Can("control"), Can("ready")), ("start",)),
        Path(
            "code", all_of(OfMember("project_owner", READS_SECRETS), OfMember("acts_for", READS_SECRETS)), ("secrets",)
        ),
        Path("start with secrets", all_of(Can("control"), Can("ready"), Can("secrets")), ("start_with_secrets",)),
        _TASK_ASK,
    ),
    internal=frozenset({"ready", "secrets"}),
)

_THROUGH_GATEWAY = AllRelated("gateways", OnRelated("space", MAY_USE_SPACE))
_ADD = OnRelated("space", any_of(ADMIN, space_role("can_manage")))
_MAKE_CONNECTION_OWNER = Remedy("make you the connection's owner", "change_owner")
_MOVES = any_of(ADMIN, TENANT_OR_DATA_ADMIN)

CONNECTION = Rules(
    "connection",
    "Connection",
    "list",
    (
        Path("admin", ADMIN, ("list", "delete", "see_access")),
        Path("any role", _in_space(*ANY_ROLE), ("list",), ADD_TO_ITS_SPACE),
        Path("Can manage", _in_space("can_manage"), ("delete",), ADD_TO_ITS_SPACE),
        Path(
            "its own owner",
            all_of(
                CONNECTION_OWNER,
                OnRelated("space", any_of(ADMIN, space_role(*ANY_ROLE))),
                _THROUGH_GATEWAY,
            ),
            ("edit",),
            _MAKE_CONNECTION_OWNER,
        ),
        Path("tenant or data admin", TENANT_OR_DATA_ADMIN, ("list", "delete")),
        Path("new owner", all_of(_MOVES, NOT_SHUT), ("change_owner",)),
        Path("new space", all_of(_MOVES, NOT_SHUT, AllRelated("new_space", NOT_PERSONAL)), ("change_space",)),
        Path("creator", all_of(_ADD, _THROUGH_GATEWAY), ("add",)),
        Path(
            "consume, edit or manage",
            all_of(OnRelated("space", MAY_USE_SPACE), _THROUGH_GATEWAY),
            ("connect", "test"),
            ADD_TO_ITS_SPACE,
        ),
        Path("tests what they edit", all_of(Can("test"), Can("edit")), ("test_changes",), _MAKE_CONNECTION_OWNER),
        Path("code", all_of(ALLOWS_CODE, OnRelated("space", MAY_USE_SPACE), _THROUGH_GATEWAY), ("read_secrets",)),
        _ASK,
    ),
)

GATEWAY = Rules(
    "gateway",
    "Gateway",
    "list",
    (
        Path("admin", ADMIN, ("list", "delete", "see_access")),
        Path("any role", _in_space(*ANY_ROLE), ("list",), ADD_TO_ITS_SPACE),
        Path("Can manage", _in_space("can_manage"), ("delete",), ADD_TO_ITS_SPACE),
        Path("tenant or data admin", TENANT_OR_DATA_ADMIN, ("list", "delete")),
        Path("creator", _ADD, ("add",)),
        _ASK,
    ),
)

TABLES = (SPACE, PROJECT, TASK, CONNECTION, GATEWAY)
