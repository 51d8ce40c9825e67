"""Pipelines outside a data project (sections 4 and 6.1)."""

from .levels import EDITOR, MANAGER, VIEWER, holds, holds_all, kind_of_data
from .marts import uses_destination
from .spaces import draws_on_connections
from .world import Member, Resource, World

LEVEL_OF_ACTION = {
    "see": VIEWER,
    "see_runs": VIEWER,
    "follow": VIEWER,  # section 10: event triggers need see on the pipeline
    "edit": EDITOR,
    "activate": EDITOR,
    "trigger": EDITOR,
    "delete": MANAGER,
}

# A delivery writes to a destination; all other kinds write tables.
KINDS_WITHOUT_OUTPUT_LAYER = ("delivery",)

# What can be saved without touching the definition (section 6.1).
OUTSIDE_DEFINITION = frozenset({"name", "description", "active", "activation", "schedule"})


def enabled_reads(pipeline: Resource) -> tuple[str, ...]:
    """Return what the enabled streams read, the only inputs that count (section 4)."""
    return tuple(name for name in pipeline.demands("reads") if name not in pipeline.people("disabled"))


def enabled_writes(pipeline: Resource) -> tuple[str, ...]:
    """Return what the enabled streams write, the only outputs that count (section 4)."""
    return tuple(name for name in pipeline.demands("writes") if name not in pipeline.people("disabled"))


def derived(world: World, member: Member, pipeline: Resource, wanted: int) -> bool:
    """Tell whether a member has the level that a pipeline derives from its tables."""
    if member.is_admin:
        return True
    counted = enabled_reads(pipeline) + enabled_writes(pipeline)
    if counted:
        # the weakest table or volume decides
        return holds_all(world, member, counted, wanted)
    # no stream remains: the output layer stands in
    return holds_output_layer(world, member, pipeline, wanted)


def holds_output_layer(world: World, member: Member, pipeline: Resource, wanted: int) -> bool:
    """Tell whether a member has a level on the output layer; a pipeline without one is for admins."""
    if member.is_admin:
        return True
    layer = pipeline.ref("output_layer")
    return layer is not None and holds(world, member, layer, wanted)


def pipeline_right(world: World, member: Member, action: str, pipeline: Resource) -> bool:
    """Answer an action on a stored pipeline, without section 6."""
    wanted = LEVEL_OF_ACTION.get(action)
    return wanted is not None and derived(world, member, pipeline, wanted)


def adds_pipeline(world: World, member: Member, pipeline: Resource) -> bool:
    """Answer adding a pipeline with this definition."""
    if not _names_its_place(world, pipeline):
        return False
    if not derived(world, member, pipeline, EDITOR):
        return False
    # a new pipeline needs its output layer even if its tables exist
    if pipeline.ref("output_layer") is not None and not holds_output_layer(world, member, pipeline, EDITOR):
        return False
    nothing = Resource("pipeline", "", "", {})
    return _adds_streams(world, member, nothing, pipeline) and saver_reaches(world, member, pipeline)


def _names_its_place(world: World, pipeline: Resource) -> bool:
    """Tell whether the output layer exists, or is rightly left out."""
    layer = pipeline.ref("output_layer")
    if layer is None:
        return pipeline.fields.get("pipeline_kind") in KINDS_WITHOUT_OUTPUT_LAYER
    return world.find("layer", layer) is not None


def saves_pipeline(world: World, member: Member, before: Resource, after: Resource) -> bool:
    """Answer saving a definition, which both the old and the new one must allow (section 4)."""
    if not derived(world, member, before, EDITOR) or not derived(world, member, after, EDITOR):
        return False
    layer = after.ref("output_layer")
    if layer is not None and layer != before.ref("output_layer") and world.find("layer", layer) is None:
        return False
    return _adds_streams(world, member, before, after) and saver_reaches(world, member, after)


def changes_definition(change: dict[str, object]) -> bool:
    """Tell whether a state after touches the definition; an empty one saves the stored definition again."""
    return not change or any(key not in OUTSIDE_DEFINITION for key in change)


def added(before: Resource, after: Resource, key: str) -> tuple[str, ...]:
    """Return the tables of the streams that a save adds or retargets, disabled or not."""
    return tuple(name for name in after.demands(key) if name not in before.demands(key))


def _adds_streams(world: World, member: Member, before: Resource, after: Resource) -> bool:
    """Tell whether the member may add or retarget the streams in which the two states differ."""
    inputs, outputs = added(before, after, "reads"), added(before, after, "writes")
    # a new or redirected stream counts even while disabled
    if not holds_all(world, member, inputs + outputs, EDITOR):
        return False
    # its run will create the missing table in the output layer
    if any(kind_of_data(world, output) is None for output in outputs):
        return holds_output_layer(world, member, after, EDITOR)
    return True


def saver_reaches(world: World, member: Member, pipeline: Resource) -> bool:
    """Tell whether the saver reaches the destination, the connections and their gateways (section 6.1)."""
    destination = pipeline.ref("destination")
    if destination is not None and not uses_destination(world, member, destination):
        return False
    return draws_on_connections(world, member, pipeline.demands("connections"))


def runs_with_levels(world: World, member: Member | None, pipeline: Resource) -> bool:
    """Tell whether a member is Viewer of its inputs and Editor of its outputs (section 6.5)."""
    if member is None:
        return False
    if not holds_all(world, member, enabled_reads(pipeline), VIEWER):
        return False
    return holds_all(world, member, enabled_writes(pipeline), EDITOR)
