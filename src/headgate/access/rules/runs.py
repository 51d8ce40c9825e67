"""Rule tables of what follows its parent: pipeline triggers and runs."""

from headgate.access.atoms import ADMIN
from headgate.access.conditions import Can, OfMember, OnRelated, all_of
from headgate.access.rules.paths import Path, Rules

PIPELINE_TRIGGER = Rules(
    "pipeline_trigger",
    "Pipeline trigger",
    "see",
    (
        Path("admin", ADMIN, ("see", "manage", "see_access")),
        Path("seen with its pipeline", OnRelated("pipeline", Can("see")), ("see",)),
        Path("opened with its task", OnRelated("task", Can("open")), ("see",)),
        Path("managed with its pipeline", OnRelated("pipeline", Can("edit")), ("manage",)),
        Path("scheduled with its task", OnRelated("task", Can("edit_attributes")), ("manage",)),
        Path(
            "asked with its task",
            all_of(OnRelated("task", Can("open")), OnRelated("task", Can("see_access"))),
            ("see_access",),
        ),
        Path("creator, of a pipeline", OnRelated("pipeline", Can("edit")), ("create",)),
        Path("creator, of a task", OnRelated("task", Can("edit_attributes")), ("create",)),
        Path("author, of a pipeline", OfMember("author", OnRelated("pipeline", Can("start"))), ("fire",)),
        Path(
            "author, of a task",
            all_of(OfMember("author", OnRelated("task", Can("update"))), OnRelated("task", Can("ready"))),
            ("fire",),
        ),
    ),
)

RUN = Rules(
    "run",
    "Run",
    "see",
    (
        Path("admin", ADMIN, ("see", "delete", "see_access")),
        Path("seen with its data mart", OnRelated("data_mart", Can("see")), ("see",)),
        Path("seen with its report", OnRelated("report", Can("see")), ("see",)),
        Path("seen with its pipeline", OnRelated("pipeline", Can("see_runs")), ("see",)),
        Path("seen with its task", OnRelated("task", Can("open")), ("see",)),
    ),
)

TABLES = (PIPELINE_TRIGGER, RUN)
