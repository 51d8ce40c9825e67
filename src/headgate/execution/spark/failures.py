"""Translates Spark's errors into messages for members.

Only messages written for users are passed on: those of Spark's error classes and of Headgate's catalog. Any other error
becomes a generic message, with the details in the operator's log.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from headgate.execution.spark import error_messages
from headgate.execution.spark.errors import CANCELED, SparkUnavailable, SqlFailed, StatementRefused
from headgate.kit.errors import DiskFull
from headgate.kit.log import get_logger

UNKNOWN = SqlFailed("SPARK_FAILED", "Spark failed to run this statement; see the server's log")
STOPPED = SqlFailed(CANCELED, "The statement was cancelled")
MOST_CHARACTERS = 2000

_log = get_logger("headgate.engine")
_REFUSED = re.compile(r"HEADGATE_REFUSED: ?([^\n]*)")
_GUARD = "headgate.guard.Refused"
_CODE = re.compile(r"^\s*\[([A-Z][A-Z0-9_.]*)\]\s*")
_SQLSTATE = re.compile(r"\s*SQLSTATE: [0-9A-Z]{5}")
_PLAN = re.compile(r"(;\s*line \d+,? pos \d+)?;\s*\n['!+: ]*[A-Z]\w*.*", re.DOTALL)
_CONTEXT = re.compile(r"\n== [^\n]* ==\n.*", re.DOTALL)
_INSIDES = re.compile(
    r"(?:\b(?:org|com|java|javax|scala|io|sun|jdk|headgate)(?:\.[a-z_][\w$]*)+(?:\.[A-Z][\w$]*)*)"
    r"|(?:\b(?:file|s3a?|hdfs|https?|jdbc):/[^\s'\"`),;]*)"
    r"|(?:(?<![\w/.*<])/(?:[\w.@=+-]+/)+[\w.@=+-]*)"
    r"|(?:\bspark\.[a-z][\w.]+)"
    r"|(?:\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b)"
)
_SILENT = ("INTERNAL_ERROR", "_LEGACY_ERROR_TEMP", "FAILED_EXECUTE_UDF", "CONNECT", "INVALID_HANDLE", "FAILED_READ")
"""Error classes whose messages describe Spark's internals."""

_MISSING = frozenset({error_messages.NO_TABLE, error_messages.NO_LAYER})
_RAISED = "USER_RAISED_EXCEPTION"
"""The error class whose message is the member's own."""

_CATALOG = "org.apache.iceberg.exceptions."
_SENTENCES = {
    "ForbiddenException": ("FORBIDDEN", "Forbidden: "),
    "NotAuthorizedException": ("NOT_AUTHORIZED", "Not authorized: "),
    "NoSuchTableException": ("TABLE_OR_VIEW_NOT_FOUND", ""),
    "NoSuchNamespaceException": ("SCHEMA_NOT_FOUND", ""),
    "AlreadyExistsException": ("ALREADY_EXISTS", ""),
    "NamespaceNotEmptyException": ("SCHEMA_NOT_EMPTY", ""),
    "CommitFailedException": ("COMMIT_CONFLICT", "Commit failed: "),
    "BadRequestException": ("BAD_REQUEST", "Malformed request: "),
    "UnprocessableEntityException": ("BAD_REQUEST", ""),
    "ValidationException": ("INVALID", ""),
}
"""Iceberg exceptions that carry a message of Headgate's catalog, and Iceberg's prefix."""

_ARGUMENT = "java.lang.IllegalArgumentException"
_NO_SNAPSHOT = re.compile(
    r"Cannot find snapshot with ID -?\d+|Cannot find a snapshot older than [\dTZ:.+-]+"
    r"|Cannot find matching snapshot ID or reference name for version [\w-]{1,128}"
)
"""Iceberg's message for a missing snapshot. It has no exception class of its own, so the whole sentence must match."""

_ANALYSIS = "org.apache.spark.sql.AnalysisException"
_PARSER = "org.apache.spark.sql.catalyst.parser.ParseException"
_UNSUPPORTED = "java.lang.UnsupportedOperationException"
_CYCLE = "Recursive cycle in view detected: "
_READS_ITSELF = SqlFailed("VIEW_READS_ITSELF", "A view of this query reads itself; remove the view from the query")

_TYPE = re.compile(r"Not a supported type: ([a-z][a-z ]{0,60})")
_NOT_A_VIEW = "Cannot rename a table with ALTER VIEW."
_TIME_ZONE = SqlFailed(
    "INVALID_TIME_ZONE", "Set the time zone as text before the statement: SET TIME ZONE 'Europe/Madrid'; SELECT …"
)

_FULL = SqlFailed(
    "DISK_FULL", "The disk that Spark writes to is full, so nothing was written; the operator must free space on it"
)
_NO_SPACE = re.compile(r"java\.io\.\w*(?:Exception|Error): (?:No space left on device|Disk quota exceeded)")
_SERVER_FULL = SqlFailed("DISK_FULL", f"{DiskFull.title}. Nothing was written")
_DOUBT = ("CommitStateUnknownException", "ServiceFailureException", "ServiceUnavailableException", "RESTException")
_UNSURE = SqlFailed(
    "CATALOG_FAILED", "The catalog timed out during commit; check whether the change was applied before you try again"
)


@dataclass(frozen=True)
class Cause:
    """One error in a chain of causes."""

    classes: tuple[str, ...]
    message: str
    code: str | None


def translate(
    error: Exception, details: Callable[[str], Any], own: Callable[[Cause], Exception | None] = lambda _: None
) -> Exception:
    """The exception for a gRPC error: SqlFailed, StatementRefused or SparkUnavailable. `details` gets more from the
    server.

    A cause that `own` recognizes, such as a driver's, uses its message.
    """
    from grpc import RpcError, StatusCode  # noqa: PLC0415 - heavy

    if not isinstance(error, RpcError):
        return error
    code = error.code()
    if code in (StatusCode.UNAVAILABLE, StatusCode.CANCELLED, StatusCode.DEADLINE_EXCEEDED, StatusCode.UNAUTHENTICATED):
        return SparkUnavailable(f"Spark does not respond: {code.name}")
    chain = list(_chain(error, details))
    tried = (error for tell in (own, _full_disk, _told) for error in map(tell, chain))
    result = next((error for error in tried if error is not None), None)
    if result is None:
        _log.error("a statement failed in Spark", causes=[f"{cause.classes[:1]}: {cause.message}" for cause in chain])
        return UNKNOWN
    return result


def _chain(error: Any, details: Callable[[str], Any]) -> Iterator[Cause]:
    """The error and its causes, outermost first."""
    from google.rpc import error_details_pb2  # noqa: PLC0415 - heavy
    from grpc_status import rpc_status  # noqa: PLC0415 - heavy

    status = rpc_status.from_call(error)
    info = error_details_pb2.ErrorInfo()
    for detail in status.details if status else ():
        detail.Unpack(info)
    told = dict(info.metadata)
    full = _full(told.get("errorId"), details)
    if full is None:
        classes = tuple(json.loads(told.get("classes") or "[]"))
        yield Cause(classes, status.message if status else error.details() or "", told.get("errorClass"))
        return
    place = full.root_error_idx
    for _ in full.errors:
        value = full.errors[place]
        code = value.spark_throwable.error_class if value.HasField("spark_throwable") else ""
        yield Cause(tuple(value.error_type_hierarchy), value.message, code or None)
        if not value.HasField("cause_idx"):
            return
        place = value.cause_idx


def _full(error_id: str | None, details: Callable[[str], Any]) -> Any:
    if error_id is None:
        return None
    from grpc import RpcError  # noqa: PLC0415 - heavy

    try:
        result = details(error_id)
    except RpcError:
        return None
    return result if result.HasField("root_error_idx") else None


def _full_disk(cause: Cause) -> Exception | None:
    """The failure for a full disk anywhere in the chain; None otherwise."""
    if cause.code == _RAISED:
        return None
    said = f"{next(iter(cause.classes), '')}: {cause.message}"
    return _FULL if _NO_SPACE.search(said) else None


def _told(cause: Cause) -> Exception | None:
    """The part of an error that a member may read; None if nothing."""
    refused = _REFUSED.search(cause.message)
    if refused and (_GUARD in cause.classes or _GUARD in cause.message):
        return StatementRefused(_clean(refused[1]))
    if cause.code is not None:
        return _of_spark(cause.code, cause.message) or _by_sentence(cause)
    for name in cause.classes:
        if name.startswith(_CATALOG):
            return _of_catalog(name.removeprefix(_CATALOG), cause.message)
    if _ARGUMENT in cause.classes and _NO_SNAPSHOT.fullmatch(cause.message):
        return SqlFailed("SNAPSHOT_NOT_FOUND", cause.message)
    return _by_sentence(cause)


def _by_sentence(cause: Cause) -> Exception | None:
    """The failure for an error without a code, recognized by its text."""
    kind = _TYPE.fullmatch(cause.message)
    if _UNSUPPORTED in cause.classes and kind is not None:
        return SqlFailed(
            "UNSUPPORTED_TYPE", f"Tables and views do not support the type {kind[1]}; cast the value to STRING"
        )
    if _ANALYSIS in cause.classes and cause.message.startswith(_CYCLE):
        return _READS_ITSELF
    if _ANALYSIS in cause.classes and cause.message.startswith(_NOT_A_VIEW):
        return SqlFailed("EXPECT_VIEW_NOT_TABLE", "This is a table, not a view; use ALTER TABLE … RENAME TO")
    if _PARSER in cause.classes and cause.message.lstrip().startswith("Invalid time zone displacement value"):
        return _TIME_ZONE
    return None


def _of_spark(code: str, message: str) -> Exception | None:
    if code == CANCELED:
        return STOPPED
    if code.startswith(_SILENT):
        return None
    text = _CODE.sub("", message)
    text = _CONTEXT.sub("", text)
    text = _SQLSTATE.sub("", _PLAN.sub("", text))
    if code in _MISSING:
        code, text = error_messages.of_missing(code, text)
    elif code != _RAISED:
        text = error_messages.without_settings(error_messages.without_catalog(text))
    return SqlFailed(code, _clean(text))


def _of_catalog(name: str, message: str) -> Exception | None:
    if name in _DOUBT:
        return _UNSURE
    if name not in _SENTENCES:
        return None
    code, before = _SENTENCES[name]
    text = (message.splitlines() or [""])[0].removeprefix(before)
    if text.startswith(DiskFull.title):
        return _SERVER_FULL
    if code in _MISSING:
        code, text = error_messages.of_missing(code, text)
    return SqlFailed(code, _clean(text))


def _clean(text: str) -> str:
    """The message without class names, paths, settings and session ids."""
    text = _INSIDES.sub("…", text).strip().rstrip(";").strip()
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
