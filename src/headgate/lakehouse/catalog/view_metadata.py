"""View metadata in Iceberg's format: a new view, and the result of a client's updates.

Clients choose the schema, the SQL, the default namespace and the properties. The catalog determines the rest.
"""

import uuid as uuids
from collections.abc import Callable
from datetime import datetime
from typing import Any

from headgate.lakehouse.catalog import properties
from headgate.lakehouse.catalog.errors import CommitFailed, Malformed, NotValid
from headgate.lakehouse.catalog.table_schemas import check_schema

FORMAT = 1
DIALECT = "spark"
MAX_SQL = 200_000
MAX_VERSIONS = 10
"""Maximum number of versions kept per view."""
MAX_UPDATES = 100
_LAST = -1
_NOTED = frozenset({"engine_version", "create_engine_version", "spark.query-column-names", "queryColumnNames"})

Document = dict[str, Any]


def new(body: Document, location: str, now: datetime) -> Document:
    """The metadata of a new view; raises Malformed or NotValid."""
    schema = {**_schema(body.get("schema")), "schema-id": 0}
    version = {**_version(body.get("view-version"), now), "version-id": 1, "schema-id": 0}
    given = body.get("properties")
    return {
        "view-uuid": str(uuids.uuid4()),
        "format-version": FORMAT,
        "location": location,
        "schemas": [schema],
        "current-version-id": 1,
        "versions": [version],
        "version-log": [_entry(version)],
        "properties": _properties({} if given is None else given),
    }


def changed(base: Document, body: Document, now: datetime) -> Document:
    """The metadata after a client's updates; CommitFailed if its requirements do not hold."""
    for requirement in _objects(body, "requirements"):
        _require(requirement, base)
    draft = _Draft(base, now)
    for update in _objects(body, "updates"):
        draft.apply(update)
    return draft.done()


def current(document: Document) -> Document:
    """The current version of the view."""
    versions: list[Document] = document["versions"]
    return next(version for version in versions if version["version-id"] == document["current-version-id"])


def current_schema(document: Document) -> Document:
    """The schema of the current version."""
    schemas: list[Document] = document["schemas"]
    wanted = current(document)["schema-id"]
    return next(schema for schema in schemas if schema["schema-id"] == wanted)


def sql(document: Document) -> str:
    """The query of the view."""
    return str(current(document)["representations"][0]["sql"])


def shown(document: Document) -> Document:
    """The metadata with the current version only: earlier versions may name items hidden from the reader."""
    now = current(document)
    last = [value for value in document["version-log"] if value["version-id"] == now["version-id"]][-1:]
    return {**document, "schemas": [current_schema(document)], "versions": [now], "version-log": last}


class _Draft:
    """The metadata while the updates of one request are applied."""

    def __init__(self, base: Document, now: datetime) -> None:
        self._found = {**base, "schemas": [*base["schemas"]], "versions": [*base["versions"]]}
        self._found |= {"version-log": [*base["version-log"]], "properties": dict(base["properties"])}
        self._now = now
        self._last_schema: int | None = None
        self._last_version: int | None = None

    def apply(self, update: Document) -> None:
        """Apply one update."""
        known: dict[str, Callable[[Document], None]] = {
            "assign-uuid": self._assign_uuid,
            "upgrade-format-version": self._upgrade,
            "set-location": self._set_location,
            "set-properties": self._set_properties,
            "remove-properties": self._remove_properties,
            "add-schema": self._add_schema,
            "add-view-version": self._add_version,
            "set-current-view-version": self._set_current,
        }
        action = update.get("action")
        if not isinstance(action, str) or action not in known:
            raise NotValid(f"The update {str(action)[:60]!r} is not supported for a view")
        known[action](update)

    def done(self) -> Document:
        """The resulting metadata, with the newest versions and their schemas."""
        current_id = self._found["current-version-id"]
        newest = sorted(
            self._found["versions"], key=lambda value: (value["version-id"] == current_id, value["version-id"])
        )
        kept = sorted(newest[-MAX_VERSIONS:], key=lambda value: value["version-id"])
        schemas, versions = ({value[name] for value in kept} for name in ("schema-id", "version-id"))
        return {
            **self._found,
            "versions": kept,
            "schemas": [value for value in self._found["schemas"] if value["schema-id"] in schemas],
            "version-log": [value for value in self._found["version-log"] if value["version-id"] in versions][
                -MAX_VERSIONS:
            ],
        }

    def _assign_uuid(self, update: Document) -> None:
        if update.get("uuid") != self._found["view-uuid"]:
            raise NotValid("The uuid of a view cannot change")

    def _upgrade(self, update: Document) -> None:
        if update.get("format-version") != FORMAT:
            raise NotValid(f"Format version {str(update.get('format-version'))[:20]} is not supported for views")

    def _set_location(self, update: Document) -> None:
        if update.get("location") != self._found["location"]:
            raise NotValid("The location of a view cannot change")

    def _set_properties(self, update: Document) -> None:
        self._found["properties"] |= _properties(update.get("updates"))
        if len(self._found["properties"]) > properties.MAX_PROPERTIES:
            raise NotValid(f"A view has at most {properties.MAX_PROPERTIES} properties")

    def _remove_properties(self, update: Document) -> None:
        removals = update.get("removals")
        if not isinstance(removals, list):
            raise Malformed("remove-properties: removals must be a list of names")
        for name in removals:
            self._found["properties"].pop(str(name), None)

    def _add_schema(self, update: Document) -> None:
        schema = _schema(update.get("schema"))
        bare = _bare(schema)
        same = next((value["schema-id"] for value in self._found["schemas"] if _bare(value) == bare), None)
        self._last_schema = same
        if same is None:
            self._last_schema = 1 + max(value["schema-id"] for value in self._found["schemas"])
            self._found["schemas"].append({**schema, "schema-id": self._last_schema})

    def _add_version(self, update: Document) -> None:
        given = update.get("view-version")
        version = _version(given, self._now)
        schema = given.get("schema-id") if isinstance(given, dict) else None
        schema = self._last_schema if schema == _LAST else schema
        if schema not in {value["schema-id"] for value in self._found["schemas"]}:
            raise NotValid(f"The view has no schema {str(schema)[:20]}")
        self._last_version = 1 + max(value["version-id"] for value in self._found["versions"])
        self._found["versions"].append({**version, "version-id": self._last_version, "schema-id": schema})

    def _set_current(self, update: Document) -> None:
        wanted = update.get("view-version-id")
        wanted = self._last_version if wanted == _LAST else wanted
        result = next((value for value in self._found["versions"] if value["version-id"] == wanted), None)
        if result is None:
            raise NotValid(f"The view has no version {str(wanted)[:20]}")
        self._found["current-version-id"] = wanted
        self._found["version-log"].append(_entry(result))


def _bare(schema: Document) -> Document:
    return {name: value for name, value in schema.items() if name != "schema-id"}


def _entry(version: Document) -> Document:
    return {"timestamp-ms": version["timestamp-ms"], "version-id": version["version-id"]}


def _require(requirement: Document, base: Document) -> None:
    kind = requirement.get("type")
    if kind != "assert-view-uuid":
        raise NotValid(f"The requirement {str(kind)[:60]!r} is not supported for a view")
    if requirement.get("uuid") != base["view-uuid"]:
        wanted, result = str(requirement.get("uuid"))[:60], base["view-uuid"]
        raise CommitFailed(f"Requirement failed: view UUID does not match: expected {wanted} != {result}")


def _objects(body: Document, name: str) -> list[Document]:
    response = body.get(name, [])
    if (
        not isinstance(response, list)
        or len(response) > MAX_UPDATES
        or not all(isinstance(value, dict) for value in response)
    ):
        raise Malformed(f"{name} must be a list of at most {MAX_UPDATES} objects")
    return response


def _schema(value: Any) -> Document:
    from pyiceberg.schema import Schema

    try:
        schema = Schema.model_validate(value)
        check_schema(schema)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise NotValid("Invalid schema: it does not match the Iceberg specification") from None
    values: Document = schema.model_dump(mode="json", by_alias=True)
    return values


def _version(value: Any, now: datetime) -> Document:
    if not isinstance(value, dict):
        raise Malformed("view-version is required")
    namespace = value.get("default-namespace")
    if not isinstance(namespace, list) or not all(isinstance(value, str) for value in namespace) or len(namespace) > 1:
        raise Malformed("default-namespace must be a list with at most one layer")
    summary = value.get("summary") or {}
    if not isinstance(summary, dict) or not all(isinstance(value, str) for value in (*summary, *summary.values())):
        raise Malformed("summary must be an object of strings")
    kept = {name: summary[name][:200] for name in ("engine-name", "engine-version", "operation") if name in summary}
    return {
        "timestamp-ms": int(now.timestamp() * 1000),
        "summary": kept,
        "representations": [_representation(value.get("representations"))],
        # Without a default catalog, an engine uses the catalog in which it found the view, whatever its name there.
        "default-namespace": namespace,
    }


def _properties(value: Any) -> dict[str, str]:
    """Allowed properties: those of tables, and those in which Spark records the session that created a view."""
    noted = {name for name in value if name in _NOTED} if isinstance(value, dict) else set()
    if not all(isinstance(value[name], str) and len(value[name]) <= properties.MAX_VALUE for name in noted):
        raise NotValid(f"properties must be an object of strings of at most {properties.MAX_VALUE} characters")
    rest = {name: result for name, result in value.items() if name not in noted} if noted else value
    return {**{name: value[name] for name in sorted(noted)}, **properties.check(rest, creating=True)}


def _representation(value: Any) -> Document:
    if not isinstance(value, list) or len(value) != 1 or not isinstance(value[0], dict):
        raise NotValid(f"A view must have exactly one representation: SQL in the dialect {DIALECT!r}")
    values = value[0]
    text = values.get("sql")
    if values.get("type") != "sql" or str(values.get("dialect")).lower() != DIALECT or not isinstance(text, str):
        raise NotValid(f"A view must have exactly one representation: SQL in the dialect {DIALECT!r}")
    if not text.strip() or len(text) > MAX_SQL or "\0" in text:
        raise NotValid(f"The SQL of a view must have 1 to {MAX_SQL:,} characters")
    return {"type": "sql", "sql": text, "dialect": DIALECT}
