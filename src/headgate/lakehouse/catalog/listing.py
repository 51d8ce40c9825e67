"""Lists of layers, tables and views visible to the caller, all at once or by page.

The number of SQL statements does not depend on the number of names.
"""

from dataclasses import dataclass
from typing import Any

from headgate.kit.database import among, fetch, many
from headgate.kit.paging import BadCursor, Cursor
from headgate.lakehouse.catalog import access
from headgate.lakehouse.catalog.errors import Malformed
from headgate.lakehouse.catalog.names import Ident
from headgate.platform.authorization.repository import Query, names
from headgate.platform.unit_of_work.call import Call

MAX_PAGE = 1_000
MOST = 100_000
"""Maximum number of names in a response to clients without paging."""


@dataclass(frozen=True, slots=True)
class NamePage:
    """A page of names, and the start of the next page."""

    items: list[Any]
    following: str | None


def namespaces(call: Call, token: str | None, size: int | None) -> NamePage:
    """The layers that the caller may see."""
    ids, following = _page(call, "layer", "", token, size)
    values = _names(call, "SELECT id, name FROM resources WHERE {chosen}", ids)
    return NamePage([[values[id_]] for id_ in ids if id_ in values], following)


def tables(call: Call, ident: Ident, token: str | None, size: int | None) -> NamePage:
    """The tables of a layer that the caller may see and that have content; a run also sees its own new tables."""
    layer = access.require_layer(call, "see", ident)
    ids, following = _page(call, "table", f"{ident.layer_key}.", token, size)
    values = _names(call, _WRITTEN, ids)
    shown = [values[id_] for id_ in ids if id_ in values]
    if not token:
        shown = sorted({*shown, *_own(call, layer)})
    return NamePage([{"namespace": [ident.layer_key], "name": name} for name in shown], following)


def views(call: Call, ident: Ident, token: str | None, size: int | None) -> NamePage:
    """The views of a layer that the caller may see."""
    access.require_layer(call, "see", ident)
    ids, following = _page(call, "table", f"{ident.layer_key}.", token, size)
    values = _names(call, _VIEWS, ids)
    return NamePage([{"namespace": [ident.layer_key], "name": values[id_]} for id_ in ids if id_ in values], following)


_VIEWS = "SELECT id, name FROM resources JOIN views ON view_id = id WHERE {chosen}"
_WRITTEN = "SELECT id, name FROM resources JOIN table_pointers ON table_id = id WHERE {chosen}"
"""Tables that have content."""


def _names(call: Call, statement: str, ids: list[str]) -> dict[str, str]:
    """The names of the given resources that a statement selects, by id."""
    if not ids:
        return {}
    text = statement.format(chosen=among(call.connection, "id", "ids"))
    return dict(fetch(call.connection, text, {"ids": many(call.connection, ids)}))


def _page(call: Call, kind: str, prefix: str, token: str | None, size: int | None) -> tuple[list[str], str | None]:
    purpose = f"iceberg {kind} {prefix}"
    limit = MOST if token is None else min(size or MAX_PAGE, MAX_PAGE)
    try:
        after = Cursor.decode(token, purpose) if token else None
    except BadCursor as error:
        raise Malformed(f"pageToken: {error}") from None
    narrowing = call.caller.narrowing
    if not narrowing.permits_action("see", call.now):
        return [], None
    query = Query(call.caller.member, kind, call.now, prefix=prefix, limit=limit, after=after, narrowing=narrowing)
    rows, following = names(call.connection, query)
    return [row[0] for row in rows], following.encode(purpose) if following else None


def _own(call: Call, layer_id: str) -> set[str]:
    """The names of tables that exist only in the caller's run."""
    run = call.caller.work.run if call.caller.work else None
    if run is None:
        return set()
    own = "run_id = :run AND fence = :fence AND layer_id = :layer AND base_version IS NULL"
    text = f"SELECT name FROM run_pointers WHERE {own}"
    return {row[0] for row in fetch(call.connection, text, {"run": run[0], "fence": run[1], "layer": layer_id})}
