"""Rule tables of what follows its parent: pipeline triggers and runs."""

from headgate.access.atoms import ADMIN
from headgate.access.conditions import As, Can, On, all_of
from headgate.access.rules.paths import Path, Rules

PIPELINE_TRIGGER = Rules(
    "pipeline_trigger",
    "Pipeline trigger",
    "see",
    (
        Path("admin", ADMIN, ("see", "manage", "see_access")),
        Path("seen with its pipeline", On("pipeline", Can("see")), ("see",)),
        Path("opened with its task", On("task", Can("open")), ("see",)),
        Path("managed with its pipeline", On("pipeline", Can("edit")), ("manage",)),
        Path("scheduled with its task", On("task", Can("edit_attributes")), ("manage",)),
        Path("asked with its task", all_of(On("task", Can("open")), On("task", Can("see_access"))), ("see_access",)),
        Path("creator, of a pipeline", On("pipeline", Can("edit")), ("create",)),
        Path("creator, of a task", On("task", Can("edit_attributes")), ("create",)),
        Path("author, of a pipeline", As("author", On("pipeline", Can("start"))), ("fire",)),
        Path(
            "author, of a task",
            all_of(As("author", On("task", Can("update"))), On("task", Can("ready"))),
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
        Path("seen with its data mart", On("data_mart", Can("see")), ("see",)),
        Path("seen with its report", On("report", Can("see")), ("see",)),
        Path("seen with its pipeline", On("pipeline", Can("see_runs")), ("see",)),
        Path("seen with its task", On("task", Can("open")), ("see",)),
    ),
)

TABLES = (PIPELINE_TRIGGER, RUN)
