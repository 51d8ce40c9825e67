"""Rule tables of the lakehouse area: access model, section 4, with the joints of section 6."""

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
)
from headgate.access.conditions import AllRelated, Can, NoneOf, NotEmpty, OfMember, OnRelated, all_of, any_of
from headgate.access.rules.paths import Path, Remedy, Rules
from headgate.access.rules.terms import PLACES, READS_SECRETS, held, on_all_counted, on_all_listed

GRANT = Remedy("grant the level", "grant")
GRANT_MANAGER = Remedy("grant Manager", "grant_manager")


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


_CREATE_IN_LAYER = Path("Editor of the layer", OnRelated("layer", Can("edit")), ("create",))

LAYER = _data(
    "layer",
    "Layer",
    ("see",),
    Path("derived Viewer", GRANTED_INSIDE, ("see",), GRANT),
    Path("admin creates", ADMIN, ("create",)),
)
TABLE = _data("table", "Table", ("see", "execute", "follow"), _CREATE_IN_LAYER)
VOLUME = _data("volume", "Volume", ("see",), _CREATE_IN_LAYER)

GRANT_RULES = Rules(
    "grant",
    "Grant",
    "",
    (
        Path("admin", OnRelated("resource", Can("grant_manager")), ("create",)),
        Path(
            "Manager",
            all_of(OnRelated("resource", Can("grant")), BELOW_MANAGER, NOT_TO_SELF, ends_with_own(3)),
            ("create",),
        ),
    ),
)


_ALL_PIPELINE = ("see", "see_runs", "follow", "edit", "activate", "trigger", "delete", "see_access")

PIPELINE = Rules(
    "pipeline",
    "Pipeline outside a data project",
    "see",
    (
        Path("admin", ADMIN, _ALL_PIPELINE),
        Path("Viewer on all", on_all_counted(1), ("see", "see_runs", "follow"), GRANT),
        Path("Editor on all", on_all_counted(2), ("edit", "activate", "trigger"), GRANT),
        Path("Manager on all", on_all_counted(3), ("delete",), GRANT_MANAGER),
        Path(
            "saver",
            all_of(
                AllRelated("added", held(2)),
                any_of(NoneOf("new_outputs"), ADMIN, OnRelated("output_layer", held(2))),
                PLACES,
            ),
            ("save",),
        ),
        Path(
            "creator",
            all_of(
                AllRelated("added", held(2)),
                any_of(
                    OnRelated("output_layer", held(2)),
                    all_of(IS_DELIVERY, NO_OUTPUT_LAYER, NotEmpty("counted"), NoneOf("new_outputs")),
                ),
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
            OfMember(
                "acts_for", all_of(AllRelated("enabled_reads", held(1)), AllRelated("enabled_writes", held(2)), PLACES)
            ),
            ("ready",),
        ),
        Path("start", all_of(Can("trigger"), Can("ready")), ("start",)),
        Path("confirm", all_of(Can("edit"), Can("save")), ("confirm",)),
        Path("code", OfMember("acts_for", READS_SECRETS), ("secrets",)),
        Path("start with secrets", all_of(Can("trigger"), Can("ready"), Can("secrets")), ("start_with_secrets",)),
    ),
    internal=frozenset({"save", "ready", "secrets"}),
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
        Path("author", AUTHOR, ("see", "edit")),
        Path("author with Editor on all", all_of(AUTHOR, AllRelated("reads", held(2))), ("delete",), GRANT),
        Path("Viewer on all", AllRelated("reads", held(1)), ("create",)),
    ),
)

TABLES = (LAYER, TABLE, VOLUME, GRANT_RULES, PIPELINE, INTEGRATION, SAVED_QUERY)
