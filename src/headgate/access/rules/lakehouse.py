"""Rule tables of the lakehouse area: ACCESS.md section 4, with the joints of section 6."""

from headgate.access.actions import LEVEL_NAMES
from headgate.access.atoms import (
    ADMIN,
    AUTHOR,
    BELOW_MANAGER,
    GRANTED_INSIDE,
    GRANTS_COUNT,
    IS_DELIVERY,
    NO_OUTPUT_LAYER,
    NOT_TO_SELF,
    STARTER,
    ends_with_own,
    granted,
    held,
    space_role,
)
from headgate.access.conditions import As, Can, Every, Named, NoneOf, On, Some, all_of, any_of
from headgate.access.rules.paths import Path, Remedy, Rules

GRANT = Remedy("grant the level", "grant")
GRANT_MANAGER = Remedy("grant Manager", "grant_manager")
CONSUMES = ("can_consume_data", "can_edit", "can_manage")

MAY_USE_SPACE = any_of(ADMIN, space_role(*CONSUMES))
"""Consume, edit or manage in a space, or own it; security roles do not count, the role admin or owner does."""


def _data(kind: str, title: str, viewer: tuple[str, ...], *more: Path) -> Rules:
    editor = ("describe", "edit")
    return Rules(
        kind,
        title,
        "see",
        (
            Path("admin", ADMIN, (*viewer, *editor, "delete", "see_access")),
            Path("Starter plan", STARTER, (*viewer, *editor, "delete")),
            Path("Viewer", granted(1), viewer, GRANT),
            Path("Editor", granted(2), editor, GRANT),
            Path("Manager", granted(3), ("delete",), GRANT_MANAGER),
            Path("admin grants", all_of(ADMIN, GRANTS_COUNT), ("grant", "grant_manager")),
            Path("Manager grants", all_of(granted(3), GRANTS_COUNT), ("grant", "see_access"), GRANT_MANAGER),
            *more,
        ),
    )


_CREATE_IN_LAYER = Path("Editor of the layer", On("layer", Can("edit")), ("create",))

LAYER = _data(
    "layer",
    "Layer",
    ("see",),
    Path("derived Viewer", GRANTED_INSIDE, ("see",), GRANT),
    Path("admin creates", ADMIN, ("create",)),
)
TABLE = _data("table", "Table", ("see", "execute"), _CREATE_IN_LAYER)
VOLUME = _data("volume", "Volume", ("see",), _CREATE_IN_LAYER)

GRANT_RULES = Rules(
    "grant",
    "Grant",
    "",
    (
        Path("admin", On("resource", Can("grant_manager")), ("create",)),
        Path(
            "Manager",
            all_of(On("resource", Can("grant")), BELOW_MANAGER, NOT_TO_SELF, ends_with_own(3)),
            ("create",),
        ),
        Path("admin revokes", On("resource", Can("grant_manager")), ("delete",)),
        Path("Manager revokes", all_of(On("resource", Can("grant")), BELOW_MANAGER), ("delete",)),
    ),
)


def on_all_listed(level: int) -> Named:
    """The level on every table that is listed; if none is, nobody has it."""
    on_each = all_of(Some("counted", held(level)), Every("counted", held(level)))
    return Named("on all listed", level, f"{LEVEL_NAMES[level].title()} on every table that it lists", on_each)


def on_all_counted(level: int) -> Named:
    """The level on everything that counts for a pipeline; if nothing does, on its output layer."""
    instead = all_of(NoneOf("counted"), On("output_layer", held(level)))
    text = (
        f"{LEVEL_NAMES[level].title()} on every table that it reads or writes (if there is none, on its output layer)"
    )
    return Named("on all counted", level, text, any_of(on_all_listed(level).inner, instead))


PLACES = all_of(
    Every("destinations", Can("use")),
    Every("used_connections", On("space", MAY_USE_SPACE)),
    Every("used_gateways", On("space", MAY_USE_SPACE)),
)
"""What a definition needs of whoever it runs for, outside the lakehouse."""

_MAY_CREATE_OUTPUTS = any_of(NoneOf("new_outputs"), ADMIN, On("output_layer", held(2)))
"""Adding an output that does not exist yet needs Editor on the output layer."""

_ALL_PIPELINE = ("see", "see_runs", "edit", "activate", "trigger", "delete", "see_access")

PIPELINE = Rules(
    "pipeline",
    "Pipeline outside a data project",
    "see",
    (
        Path("admin", ADMIN, _ALL_PIPELINE),
        Path("Viewer on all", on_all_counted(1), ("see", "see_runs"), GRANT),
        Path("Editor on all", on_all_counted(2), ("edit", "activate", "trigger"), GRANT),
        Path("Manager on all", on_all_counted(3), ("delete",), GRANT_MANAGER),
        Path(
            "saver",
            all_of(
                Every("added", held(2)),
                _MAY_CREATE_OUTPUTS,
                PLACES,
            ),
            ("save",),
        ),
        Path(
            "creator",
            all_of(
                on_all_counted(2),
                Every("added", held(2)),
                any_of(On("output_layer", held(2)), all_of(IS_DELIVERY, NO_OUTPUT_LAYER)),
                _MAY_CREATE_OUTPUTS,
                PLACES,
            ),
            ("add",),
        ),
        Path(
            "admin delivers",
            all_of(ADMIN, IS_DELIVERY, NO_OUTPUT_LAYER, PLACES),
            ("add",),
        ),
        Path(
            "ready",
            As("acts_for", all_of(Every("enabled_reads", held(1)), Every("enabled_writes", held(2)), PLACES)),
            ("ready",),
        ),
        Path("start", all_of(Can("trigger"), Can("ready")), ("start",)),
    ),
    internal=frozenset({"save", "ready"}),
)

INTEGRATION = Rules(
    "integration",
    "Integration",
    "see",
    (
        Path("admin", ADMIN, ("see", "edit", "delete", "see_access", "add")),
        Path("Viewer on all", on_all_listed(1), ("see",), GRANT),
    ),
)

SAVED_QUERY = Rules(
    "saved_query",
    "Saved query",
    "see",
    (
        Path("author", AUTHOR, ("see",)),
        Path("author with Editor on all", all_of(AUTHOR, Every("reads", held(2))), ("delete",), GRANT),
        Path("Viewer on all", Every("reads", held(1)), ("create",)),
    ),
)

TABLES = (LAYER, TABLE, VOLUME, GRANT_RULES, PIPELINE, INTEGRATION, SAVED_QUERY)
