"""Rule tables of the marts area: access model, section 3, with the data rules of section 6."""

from headgate.access.atoms import (
    ADMIN,
    ANYONE,
    DELETED,
    IN_SCOPE,
    LIVE,
    PUBLISHED,
    SHARED_FOR_MAINTENANCE,
    SHARED_FOR_REPORTING,
    SHARED_FOR_USE,
    owns,
    role_is,
)
from headgate.access.conditions import AllRelated, Can, Condition, NoneOf, OfMember, OnRelated, all_of, any_of
from headgate.access.rules.paths import Path, Remedy, Rules
from headgate.access.rules.terms import held

TECHNICAL = role_is("technical")
ANY_USER = role_is("technical", "business")

SHARE = Remedy("turn the sharing toggle on", "configure_sharing")
MAKE_OWNER = Remedy("make you an owner", "manage_owners")

_RESOURCE = (
    "see",
    "use",
    "edit",
    "delete",
    "copy_credentials",
    "configure_sharing",
    "manage_owners",
    "see_access",
    "test",
    "test_changes",
)
_MAINTAIN = ("see", "use", "copy_credentials", "edit", "delete", "test", "test_changes")
_DATA_MART = (
    "see",
    "use",
    "edit",
    "delete",
    "configure_sharing",
    "manage_owners",
    "manage_triggers",
    "see_access",
)
_REPORT = ("see", "edit", "delete", "run", "manage_owners", "manage_triggers", "see_access")

STORAGE = Rules(
    "storage",
    "Storage",
    "see",
    (
        Path("admin", ADMIN, (*_RESOURCE, "create")),
        Path("technical", TECHNICAL, ("create",)),
        Path("owner", all_of(owns("owner"), TECHNICAL), _RESOURCE, MAKE_OWNER),
        Path("shared for use", all_of(SHARED_FOR_USE, TECHNICAL, IN_SCOPE), ("see", "use", "test"), SHARE),
        Path("shared for maintenance", all_of(SHARED_FOR_MAINTENANCE, TECHNICAL, IN_SCOPE), _MAINTAIN, SHARE),
    ),
)

_MAY_BUILD_ON_STORAGE = OnRelated("storage", Can("use"))

DATA_MART = Rules(
    "data_mart",
    "Data mart",
    "see",
    (
        Path("admin", ADMIN, _DATA_MART),
        Path("technical owner", all_of(owns("technical"), TECHNICAL), _DATA_MART, MAKE_OWNER),
        Path("ownership floor", owns("technical", "business"), ("see", "use"), MAKE_OWNER),
        Path("shared for reporting", all_of(SHARED_FOR_REPORTING, ANY_USER, IN_SCOPE), ("see", "use"), SHARE),
        Path(
            "shared for maintenance",
            all_of(SHARED_FOR_MAINTENANCE, TECHNICAL, IN_SCOPE),
            ("see", "use", "edit", "delete", "manage_triggers"),
            SHARE,
        ),
        Path(
            "creator",
            all_of(role_is("owner", "admin", "technical"), _MAY_BUILD_ON_STORAGE, AllRelated("reads", held(1))),
            ("create",),
        ),
        Path("new storage", AllRelated("new_storage", Can("use")), ("retarget",)),
        Path("own tables", AllRelated("reads", held(1)), ("save",)),
        Path("ready", any_of(NoneOf("reads"), OfMember("acts_for", AllRelated("reads", held(1)))), ("ready",)),
    ),
    internal=frozenset({"retarget", "save", "ready"}),
)

DESTINATION = Rules(
    "destination",
    "Destination",
    "see",
    (
        Path("admin", all_of(ADMIN, LIVE), _RESOURCE),
        Path("any member", ANYONE, ("create",)),
        Path("owner", all_of(owns("owner"), LIVE), _RESOURCE, MAKE_OWNER),
        Path("shared for use", all_of(SHARED_FOR_USE, IN_SCOPE, LIVE), ("see", "use"), SHARE),
        Path("shared for maintenance", all_of(SHARED_FOR_MAINTENANCE, IN_SCOPE, LIVE), _MAINTAIN, SHARE),
        Path("restore by admin", all_of(ADMIN, DELETED), ("restore",)),
        Path("restore by owner", all_of(owns("owner"), DELETED), ("restore",)),
        Path("restore by maintenance", all_of(SHARED_FOR_MAINTENANCE, IN_SCOPE, DELETED), ("restore",)),
    ),
)


def _mart_data(*readers: Condition) -> Condition:
    """What the mart lends to everyone, or what these may read themselves."""
    lends = OfMember("mart_acts_for", AllRelated("mart_reads", held(3)))
    is_read = OfMember("mart_acts_for", AllRelated("mart_reads", held(1)))
    return any_of(NoneOf("mart_reads"), all_of(is_read, any_of(lends, all_of(*readers))))


_OWN_VIEWER = AllRelated("mart_reads", held(1))

REPORT = Rules(
    "report",
    "Report",
    "see",
    (
        Path("admin", ADMIN, _REPORT),
        Path(
            "by the mart",
            OnRelated("data_mart", Can("see")),
            ("see",),
            Remedy("share the data mart", "configure_sharing", "data_mart"),
        ),
        Path(
            "maintenance",
            OnRelated("data_mart", Can("edit")),
            _REPORT,
            Remedy("share the data mart for maintenance", "configure_sharing", "data_mart"),
        ),
        Path(
            "owner",
            all_of(owns("owner"), OnRelated("data_mart", Can("see")), OnRelated("destination", LIVE)),
            _REPORT,
            MAKE_OWNER,
        ),
        Path(
            "creator",
            all_of(
                OnRelated("data_mart", Can("use")),
                OnRelated("data_mart", PUBLISHED),
                OnRelated("destination", Can("use")),
            ),
            ("create",),
        ),
        Path(
            "new places",
            all_of(AllRelated("new_data_mart", Can("use")), AllRelated("new_destination", Can("use"))),
            ("retarget",),
        ),
        Path(
            "start",
            all_of(
                Can("run"), OnRelated("destination", LIVE), _mart_data(_OWN_VIEWER, OfMember("acts_for", _OWN_VIEWER))
            ),
            ("start",),
        ),
        Path(
            "confirm",
            all_of(Can("run"), OnRelated("destination", Can("use")), _mart_data(_OWN_VIEWER)),
            ("confirm",),
        ),
    ),
    internal=frozenset({"retarget"}),
)


def _trigger(parent: str, title: str, fire: Path) -> Rules:
    return Rules(
        f"{parent}_trigger",
        title,
        "see",
        (
            Path("admin", ADMIN, ("see", "manage", "see_access")),
            Path("seen with its parent", OnRelated(parent, Can("see")), ("see",)),
            Path("managed with its parent", OnRelated(parent, Can("manage_triggers")), ("manage",)),
            Path("asked with its parent", OnRelated(parent, Can("see_access")), ("see_access",)),
            Path("creator", OnRelated(parent, Can("manage_triggers")), ("create",)),
            fire,
        ),
    )


DATA_MART_TRIGGER = _trigger(
    "data_mart",
    "Data mart trigger",
    Path(
        "author",
        all_of(
            OfMember("author", OnRelated("data_mart", Can("manage_triggers"))), OnRelated("data_mart", Can("ready"))
        ),
        ("fire",),
    ),
)
REPORT_TRIGGER = _trigger(
    "report", "Report trigger", Path("author", OfMember("author", OnRelated("report", Can("start"))), ("fire",))
)

TABLES = (STORAGE, DATA_MART, DESTINATION, REPORT, DATA_MART_TRIGGER, REPORT_TRIGGER)
