"""Layers, tables and volumes as shown to a caller."""

from headgate.kit.errors import Invalid, NotFound
from headgate.kit.ids import kind_of
from headgate.kit.names import is_text
from headgate.lakehouse.items import repository, service
from headgate.lakehouse.items.schemas import GrantPage, LakePage, LakeResource
from headgate.platform.authorization.repository import ResourceSort
from headgate.platform.http.paging import begins_after
from headgate.platform.resources import presentation
from headgate.platform.unit_of_work.call import Call


def one(call: Call, identifier: str) -> LakeResource:
    """A layer, table or volume with the caller's actions; the guard has checked *see*."""
    return repository.shown(call.connection, [presentation.one(call, identifier)])[0]


def listed(
    call: Call, kind: str, sort: ResourceSort, prefix: str, limit: int, cursor: str | None, layer: str | None = None
) -> LakePage:
    """A page of the resources of a kind that the caller may see; tables and volumes can be limited to one layer."""
    if not is_text(prefix):
        raise Invalid("prefix: a name cannot contain control characters")
    if layer is not None:
        prefix = f"{service.full_name(call.connection, layer_asked(call, layer))}.{prefix}"
    resources, following = presentation.listed(call, kind, sort, prefix, limit, cursor)
    return LakePage(items=repository.shown(call.connection, resources), next_cursor=following)


def layer_asked(call: Call, text: str) -> str:
    """The id of a layer by name or id, if the caller may see it; otherwise NotFound."""
    result = text if kind_of(text) == "layer" else service.find_layer(call.connection, text)
    try:
        call.require("see", "layer", result)
    except NotFound:
        raise NotFound(f"There is no layer {text} that you may see") from None
    return str(result)


def grants(call: Call, identifier: str, limit: int, cursor: str | None) -> GrantPage:
    """A page of the grants on a resource and on its layer; the guard has checked *see_access*."""
    purpose = f"grants on {identifier}"
    after = begins_after(cursor, purpose)
    items, following = repository.grants_page(call.connection, identifier, call.now, limit, after, purpose)
    call.note_read("see_access", kind_of(identifier) or "", identifier)
    return GrantPage(items=items, next_cursor=following)
