"""Confirm the current endpoints of a pipeline's connections and destination after an endpoint changed.

This requires the same rights as saving the pipeline. The caller becomes the pipeline's last saver, so the pipeline then
runs with the caller's rights.
"""

from typing import Any

from sqlalchemy import select, update

from headgate.contracts.pipelines import definitions
from headgate.kit.errors import Conflict
from headgate.kit.ids import kind_of
from headgate.pipelines import save, source_reads
from headgate.pipelines.models import pipeline_definition_table, pipeline_table
from headgate.pipelines.schemas import EndpointOut
from headgate.platform.external_systems import service as places
from headgate.platform.resources import presentation
from headgate.platform.unit_of_work.call import Call

_LOOK = "check the current hosts in `endpoints` of the pipeline, and confirm their versions"
SEES = {"connection": ("connect", "edit"), "destination": ("see",)}
"""The actions that allow a member to see the endpoint; any of them is enough."""


def shown(call: Call, confirmed: dict[str, int]) -> list[EndpointOut]:
    """The current endpoints of the connections and the destination, as far as the caller may see them."""
    return [endpoint for value, version in confirmed.items() if (endpoint := _shown(call, value, version)) is not None]


def _shown(call: Call, identifier: str, confirmed: int) -> EndpointOut | None:
    kind = kind_of(identifier) or ""
    place = places.shown(call, identifier)
    if place is None or not call.may_see(identifier):
        return None
    is_open = any(call.decide(action, kind, identifier) for action in SEES[kind])
    return EndpointOut(
        id=identifier,
        name=presentation.one(call, identifier).name,
        kind=place.kind,
        config=place.config if is_open else None,
        version=place.version,
        confirmed=confirmed,
        moved_at=place.moved_at,
    )


def confirm(call: Call, pipeline_id: str, seen: dict[str, int]) -> None:
    """Confirm the changed endpoints, each by the version that the caller was shown. The caller is then responsible for
    the pipeline.
    """
    decision = call.require("confirm", save.KIND, pipeline_id)
    mine = pipeline_definition_table.c.pipeline_id == pipeline_id
    row = call.connection.execute(select(pipeline_definition_table).where(mine)).mappings().one_or_none()
    if row is None:
        raise Conflict("This pipeline has no definition; save one first")
    definition = definitions.parse(row["definition"])
    if isinstance(definition, definitions.Notebook):
        for connection in definitions.connections(definition):
            source_reads.require_code(call, connection)
    now = save.place_versions(call, definition)
    _check(call, row["place_versions"], now, seen)
    member = call.caller.member
    values = {"place_versions": now, "saved_by_id": member, "saved_at": call.now}
    call.connection.execute(update(pipeline_definition_table).where(mine).values(values))
    own = pipeline_table.c.id == pipeline_id
    call.connection.execute(update(pipeline_table).where(own).values(acts_for_id=member))
    before = {"places": row["place_versions"], "saved_by": row["saved_by_id"]}
    after = {"places": now, "saved_by": member}
    about: dict[str, Any] = {"action": "confirm", "kind": save.KIND, "resource_id": pipeline_id}
    call.record(call.event(save.CONFIRMED, allowed=True, **about, via=list(decision.via), before=before, after=after))


def _check(call: Call, confirmed: dict[str, int], now: dict[str, int], seen: dict[str, int]) -> None:
    """Check that the request names every changed endpoint with its current version."""
    moved = {entry: version for entry, version in now.items() if confirmed.get(entry) != version}
    if not moved:
        raise Conflict("There is nothing to confirm: no host has changed since the pipeline was saved or confirmed")
    for value, version in moved.items():
        name = presentation.one(call, value).name
        if value not in seen:
            raise Conflict(f"The host of {name!r} has changed, and `versions` does not contain it; {_LOOK}")
        if seen[value] != version:
            raise Conflict(
                f"The host of {name!r} has changed again since version {seen[value]}, which you confirm; {_LOOK}"
            )
