"""The kinds of resources: the table each lives in, and how they hang together.

SQL here and in conditions.py is written with `{t}` for the resource's row and `{x}` for the related one. It reads
the same on SQLite and PostgreSQL. Beside it stands the attribute by which facts know the same.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """Where resources of a kind are stored, and which rows of that table they are."""

    table: str
    where: str = "TRUE"


@dataclass(frozen=True, slots=True)
class Relation:
    """One resource that another hangs on."""

    kind: str
    python: str
    link: str
    words: str


@dataclass(frozen=True, slots=True)
class Collection:
    """Several resources that another names: `rows` is what follows FROM."""

    kind: str
    attribute: str
    rows: str
    words: str


@dataclass(frozen=True, slots=True)
class Person:
    """A member whom a resource names, and whose rights count beside the caller's."""

    attribute: str
    id_sql: str
    words: str


KINDS = {
    "organization": Kind("organization"),
    "member": Kind("members", "{t}.removed_at IS NULL"),
    "storage": Kind("storages"),
    "data_mart": Kind("data_marts"),
    "destination": Kind("destinations"),
    "report": Kind("reports"),
    "data_mart_trigger": Kind("triggers", "{t}.kind = 'data_mart_trigger'"),
    "report_trigger": Kind("triggers", "{t}.kind = 'report_trigger'"),
    "pipeline_trigger": Kind("triggers", "{t}.kind = 'pipeline_trigger'"),
    "run": Kind("runs"),
    "layer": Kind("layers"),
    "table": Kind("lake_items", "{t}.kind = 'table'"),
    "volume": Kind("lake_items", "{t}.kind = 'volume'"),
    "ref": Kind("table_refs"),
    "pipeline": Kind("pipelines", "{t}.project_id IS NULL"),
    "task": Kind("pipelines", "{t}.project_id IS NOT NULL"),
    "integration": Kind("integrations"),
    "saved_query": Kind("saved_queries"),
    "space": Kind("spaces"),
    "project": Kind("projects"),
    "connection": Kind("connections"),
    "gateway": Kind("gateways"),
}

STORED_KINDS = {"task": "pipeline"}
"""The kind that the database, the API and worlds know a rule kind by, where they differ."""


def stored_kind(kind: str) -> str:
    """What the database calls a kind: a task is a pipeline there."""
    return STORED_KINDS.get(kind, kind)


def rule_kinds(stored: str) -> tuple[str, ...]:
    """The rule tables that decide about resources of a stored kind."""
    return ("pipeline", "task") if stored == "pipeline" else (stored,)


def _relation(kind: str, attribute: str, words: str, column: str | None = None) -> Relation:
    return Relation(kind, f"{{t}}.{attribute}", f"{{x}}.id = {{t}}.{column or attribute + '_id'}", words)


def _parent_relation(kind: str, words: str) -> Relation:
    return Relation(kind, f"parent({{t}}, {kind!r})", "{x}.id = {t}.parent_id", words)


RELATIONS: dict[tuple[str, str], Relation] = {
    ("data_mart", "storage"): _relation("storage", "storage", "its storage"),
    ("report", "data_mart"): _relation("data_mart", "data_mart", "its data mart"),
    ("report", "destination"): _relation("destination", "destination", "its destination"),
    ("data_mart_trigger", "data_mart"): _parent_relation("data_mart", "its data mart"),
    ("report_trigger", "report"): _parent_relation("report", "its report"),
    ("pipeline_trigger", "pipeline"): _parent_relation("pipeline", "its pipeline"),
    ("pipeline_trigger", "task"): _parent_relation("task", "its task"),
    ("run", "data_mart"): _parent_relation("data_mart", "its data mart"),
    ("run", "report"): _parent_relation("report", "its report"),
    ("run", "pipeline"): _parent_relation("pipeline", "its pipeline"),
    ("run", "task"): _parent_relation("task", "its task"),
    ("table", "layer"): _relation("layer", "layer", "its layer"),
    ("volume", "layer"): _relation("layer", "layer", "its layer"),
    ("access_request", "about"): Relation("layer", "{t}.about", "FALSE", "what it is about"),
    ("grant", "resource"): Relation("layer", "{t}.resource", "FALSE", "the layer, table or volume"),
    ("pipeline", "output_layer"): _relation("layer", "output_layer", "its output layer"),
    ("task", "project"): _relation("project", "project", "its project"),
    ("project", "space"): _relation("space", "space", "its space"),
    ("connection", "space"): _relation("space", "space", "its space"),
    ("gateway", "space"): _relation("space", "space", "its space"),
}

_REFS = "table_refs {x} WHERE {x}.resource_id = {t}.id"
_TASK_CONNECTIONS = (
    "SELECT pc.connection_id FROM pipeline_connections pc WHERE pc.pipeline_id = {t}.id "
    "UNION ALL SELECT pj.target_id FROM projects pj WHERE pj.id = {t}.project_id"
)
_PIPELINE_CONNECTIONS = "SELECT pc.connection_id FROM pipeline_connections pc WHERE pc.pipeline_id = {t}.id"


def _refs(attribute: str, words: str, where: str = "") -> Collection:
    return Collection("ref", attribute, _REFS + where, words)


def _draft_only(kind: str, attribute: str, words: str) -> Collection:
    """Something that only a draft has: nothing, for what is stored."""
    table = KINDS[kind].table
    return Collection(kind, attribute, f"{table} {{x}} WHERE FALSE", words)


def _flow_collections(kind: str, connections: str) -> dict[tuple[str, str], Collection]:
    read, write = " AND {x}.enabled AND {x}.mode = 'read'", " AND {x}.enabled AND {x}.mode = 'write'"
    values = {
        "counted": _refs("counted", "table that it reads or writes", " AND {x}.enabled"),
        "enabled_reads": _refs("enabled_reads", "table that it reads", read),
        "enabled_writes": _refs("enabled_writes", "table that it writes", write),
        "judged_reads": _refs("judged_reads", "table that it reads", read),
        "judged_writes": _refs("judged_writes", "table that it writes", write),
        "added": _draft_only("ref", "added", "table that is added"),
        "destinations": Collection(
            "destination",
            "destinations",
            "destinations {x} WHERE {x}.id = {t}.destination_id",
            "destination",
        ),
        "connections": Collection(
            "connection",
            "connections",
            f"connections {{x}} WHERE {{x}}.id IN ({_PIPELINE_CONNECTIONS})",
            "connection of its own",
        ),
        "gateways": Collection(
            "gateway",
            "gateways",
            "gateways {x} WHERE {x}.id IN "
            f"(SELECT cg.gateway_id FROM connections cg WHERE cg.id IN ({_PIPELINE_CONNECTIONS}))",
            "gateway of its own connections",
        ),
        "used_connections": Collection(
            "connection",
            "used_connections",
            f"connections {{x}} WHERE {{x}}.id IN ({connections})",
            "connection that it uses",
        ),
        "used_gateways": Collection(
            "gateway",
            "used_gateways",
            "gateways {x} WHERE {x}.id IN "
            f"(SELECT cg.gateway_id FROM connections cg WHERE cg.id IN ({connections}))",
            "gateway that it uses",
        ),
    }
    return {(kind, name): collection for name, collection in values.items()}


COLLECTIONS: dict[tuple[str, str], Collection] = {
    **_flow_collections("pipeline", _PIPELINE_CONNECTIONS),
    **_flow_collections("task", _TASK_CONNECTIONS),
    ("task", "outputs"): _refs(
        "outputs",
        "output table",
        " AND {x}.enabled AND {x}.mode = 'write' AND EXISTS "
        "(SELECT 1 FROM lake_items oi WHERE oi.id = {x}.item_id AND oi.kind = 'table')",
    ),
    ("pipeline", "new_outputs"): _draft_only("ref", "new_outputs", "output that does not exist yet"),
    ("data_mart", "reads"): _refs("reads", "table that it reads"),
    ("data_mart", "new_storage"): _draft_only("storage", "new_storage", "storage it is pointed at"),
    ("report", "mart_reads"): Collection(
        "ref",
        "mart_reads",
        "table_refs {x} WHERE {x}.resource_id = {t}.data_mart_id",
        "table that its data mart reads",
    ),
    ("report", "new_data_mart"): _draft_only("data_mart", "new_data_mart", "data mart it is pointed at"),
    ("report", "new_destination"): _draft_only("destination", "new_destination", "destination it is pointed at"),
    ("integration", "counted"): _refs("counted", "table that it lists"),
    ("saved_query", "reads"): _refs("reads", "table that it reads"),
    ("connection", "gateways"): Collection(
        "gateway",
        "gateways",
        "gateways {x} WHERE {x}.id = {t}.gateway_id",
        "gateway it goes through",
    ),
    ("connection", "new_space"): _draft_only("space", "new_space", "space it is moved to"),
}

_AUTHOR = Person("author", "{t}.author_id", "its author")
_SAVER = "the member who last saved its definition"

PERSONS: dict[tuple[str, str], Person] = {
    ("data_mart", "acts_for"): Person("acts_for", "{t}.acts_for_id", _SAVER),
    ("report", "acts_for"): Person(
        "acts_for",
        "{t}.acts_for_id",
        "the member who last saved what the report delivers and where",
    ),
    ("report", "mart_acts_for"): Person(
        "mart_acts_for",
        "(SELECT am.acts_for_id FROM data_marts am WHERE am.id = {t}.data_mart_id)",
        "the member who last saved its data mart",
    ),
    ("pipeline", "acts_for"): Person("acts_for", "{t}.acts_for_id", _SAVER),
    ("task", "acts_for"): Person("acts_for", "{t}.acts_for_id", _SAVER),
    ("task", "project_owner"): Person(
        "project_owner",
        "(SELECT po.owner_id FROM projects po WHERE po.id = {t}.project_id)",
        "the project's owner",
    ),
    ("ref", "acts_for"): Person(
        "acts_for",
        "(SELECT ap.acts_for_id FROM pipelines ap WHERE ap.id = {t}.resource_id)",
        "the member who last saved the task",
    ),
    ("ref", "project_owner"): Person(
        "project_owner",
        "(SELECT po.owner_id FROM projects po JOIN pipelines pp ON pp.project_id = po.id "
        "WHERE pp.id = {t}.resource_id)",
        "the project's owner",
    ),
    ("data_mart_trigger", "author"): _AUTHOR,
    ("report_trigger", "author"): _AUTHOR,
    ("pipeline_trigger", "author"): _AUTHOR,
}
