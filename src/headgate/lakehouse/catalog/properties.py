"""Allowed table properties: user-defined ones, and those that only affect how a table is written.

A property that engines interpret could redirect a table, its data or its metadata. Of the names that engines know, only
those in the lists below are allowed. Any other name is user-defined and stored as given.
"""

import json
import re
from typing import Any

from headgate.kit.names import name_key
from headgate.lakehouse.catalog.errors import NotValid
from headgate.lakehouse.catalog.table_schemas import MAX_ID

MAX_NAME = 300
MAX_VALUE = 8_192
MAX_MAPPING = 1 << 20
MAX_PROPERTIES = 500
FORMAT_VERSION = "format-version"
NAME_MAPPING = "schema.name-mapping.default"
PREVIOUS_VERSIONS = "write.metadata.previous-versions-max"
MAX_PREVIOUS = 1000

KNOWN = frozenset(
    {
        "comment",
        "owner",
        "created-by",
        "provider",
        "format",
        "gc.enabled",
        "commit.retry.num-retries",
        "commit.retry.min-wait-ms",
        "commit.retry.max-wait-ms",
        "commit.retry.total-timeout-ms",
        "commit.status-check.num-retries",
        "commit.status-check.min-wait-ms",
        "commit.status-check.max-wait-ms",
        "commit.status-check.total-timeout-ms",
        "commit.manifest.target-size-bytes",
        "commit.manifest.min-count-to-merge",
        "commit.manifest-merge.enabled",
        "compatibility.snapshot-id-inheritance.enabled",
        "history.expire.max-snapshot-age-ms",
        "history.expire.max-ref-age-ms",
        "history.expire.min-snapshots-to-keep",
        "read.data-planning-mode",
        "read.delete-planning-mode",
        "read.split.target-size",
        "read.split.metadata-target-size",
        "read.split.planning-lookback",
        "read.split.open-file-cost",
        "read.split.adaptive-size.enabled",
        "read.parquet.vectorization.enabled",
        "read.parquet.vectorization.batch-size",
        "read.orc.vectorization.enabled",
        "read.orc.vectorization.batch-size",
        "schema.name-mapping.default",
        "write.format.default",
        "write.delete.format.default",
        "write.target-file-size-bytes",
        "write.delete.target-file-size-bytes",
        "write.distribution-mode",
        "write.fanout.enabled",
        "write.object-storage.enabled",
        "write.object-storage.partitioned-paths",
        "write.manifest-lists.enabled",
        "write.metadata.compression-codec",
        "write.metadata.delete-after-commit.enabled",
        PREVIOUS_VERSIONS,
        "write.metadata.metrics.default",
        "write.metadata.metrics.max-inferred-column-defaults",
        "write.summary.partition-limit",
        "write.upsert.enabled",
        "write.wap.enabled",
    }
)
_FORMS = re.compile(
    r"write\.(delete\.)?(parquet|orc|avro)\.[a-z0-9.-]+"
    r"|write\.(delete|update|merge)\.(mode|isolation-level|distribution-mode|granularity)"
    r"|write\.spark\.[a-z0-9.-]+"
    r"|write\.metadata\.metrics\.column\..+"
    r"|write\.parquet\.bloom-filter-(enabled|fpp|max-bytes|ndv)\.column\..+"
)
_INTERPRETED = (
    # Iceberg
    *("write", "read", "commit", "history", "gc", "schema", "compatibility", "encryption", "format", "scan", "metrics"),
    *("rest", "io", "cache", "lock", "catalog", "table", "snapshot", "view", "client", "header", "signer", "auth"),
    *("oauth2", "credential", "token", "warehouse", "headgate", "iceberg"),
    # File storage
    *("s3", "s3a", "s3n", "gcs", "gs", "adls", "abfs", "abfss", "wasb", "wasbs", "azure", "oss", "cos", "hdfs", "fs"),
    *("hf", "file", "aws", "gcp", "glue", "dynamodb", "nessie", "jdbc", "dlf", "ecs"),
    # Engines, and the properties they pass on
    *("hadoop", "hive", "spark", "flink", "trino", "presto", "impala", "dremio", "snowflake", "starrocks", "doris"),
    *("duckdb", "clickhouse", "databricks", "delta", "hudi", "paimon", "pyarrow", "fsspec", "pyiceberg", "engine"),
    *("option", "options", "connector", "parquet", "orc", "avro"),
)
"""First parts, up to a dot or hyphen, of property names that engines interpret."""
_INTERPRETED_NAMES = frozenset(
    {
        *("path", "location", "external_location", "uri", "url", "prefix", "external", "is_external", "table_type"),
        *("storage_handler", "metadata_location", "previous_metadata_location", "buffer-size", "partition_spec"),
    }
)
_RESERVED = frozenset(
    {
        FORMAT_VERSION,
        "uuid",
        "snapshot-count",
        "current-snapshot-summary",
        "current-snapshot-id",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)
"""Names reserved for parts of the metadata; on creation, engines may set the first."""


OF_NEW = {"write.parquet.compression-codec": "zstd"}
"""Defaults for new tables, as in Iceberg's own catalogs. Without them, engines use gzip, which is several times slower
to write.
"""


def check(result: Any, *, creating: bool = False) -> dict[str, str]:
    """Check properties set by a client; returns them without the reserved ones."""
    if not isinstance(result, dict) or len(result) > MAX_PROPERTIES:
        raise NotValid(f"properties must be an object of at most {MAX_PROPERTIES} strings")
    kept: dict[str, str] = {}
    for name, value in result.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise NotValid("properties must be an object of strings")
        if name == FORMAT_VERSION and creating:
            _check_version(value)
            continue
        _check_one(name, value)
        kept[name] = value
    return kept


def _check_version(value: str) -> None:
    if value != "2":
        raise NotValid(f"format-version {value[:20]!r} is not supported; use format version 2")


def is_note(name: str) -> bool:
    """Whether a property is user-defined, that is, no engine interprets its name in any spelling."""
    key = name_key(name)
    begin = re.split(r"[.-]", key, maxsplit=1)[0]
    is_interpreted = begin in _INTERPRETED or key in _INTERPRETED_NAMES or key.endswith("impl")
    return bool(key) and len(name) <= MAX_NAME and name.isprintable() and name == name.strip() and not is_interpreted


def _check_one(name: str, value: str) -> None:
    if name_key(name) in _RESERVED:
        raise NotValid(
            f"The property {name!r} cannot be set, because it is part of the table's metadata; remove it from the "
            "request"
        )
    if name not in KNOWN and not _FORMS.fullmatch(name) and not is_note(name):
        raise NotValid(
            f"The property {name[:MAX_NAME]!r} is reserved, because engines interpret it; use another name, such "
            "as 'custom.NAME'"
        )
    limit = MAX_MAPPING if name == NAME_MAPPING else MAX_VALUE
    if len(value) > limit or "\0" in value:
        raise NotValid(f"The value of the property {name!r} is longer than {limit} characters, or not text")
    if name == PREVIOUS_VERSIONS and not (value.isascii() and value.isdigit() and 1 <= int(value) <= MAX_PREVIOUS):
        raise NotValid(f"{name} must be a number from 1 to {MAX_PREVIOUS}")
    if name == NAME_MAPPING:
        _check_mapping(value)


def _check_mapping(value: str) -> None:
    try:
        ids = _mapped(json.loads(value))
    except (ValueError, RecursionError):
        ids = None
    if ids is None or len(ids) != len(set(ids)):
        raise NotValid(
            f"The property {NAME_MAPPING!r} is not a valid name mapping; write JSON such as "
            f'[{{"field-id": 1, "names": ["id"]}}], with unique ids and names'
        )


def _mapped(fields: Any) -> list[int]:
    """The ids in a name mapping; ValueError if it is invalid.

    The check is as strict as Iceberg's Java library, because engines that use it cannot load a table whose mapping it
    cannot parse.
    """
    if not isinstance(fields, list) or not all(isinstance(field, dict) for field in fields):
        raise ValueError
    ids: list[int] = []
    taken: list[str] = []
    for field in fields:
        number, names = field.get("field-id"), field.get("names")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError
        if number is not None:
            if type(number) is not int or not 0 <= number <= MAX_ID:
                raise ValueError
            ids.append(number)
        taken += dict.fromkeys(names)
        ids += _mapped(field.get("fields", []))
    if len(taken) != len(set(taken)):
        raise ValueError
    return ids
