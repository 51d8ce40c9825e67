"""The delivery step: send a table to the run's destination."""

from collections.abc import Callable
from importlib import import_module

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.contracts.pipelines import delivery_targets
from headgate.contracts.pipelines.steps import Deliver
from headgate.execution.deliveries.rows import SnapshotRows, snapshot_rows
from headgate.execution.steps.context import Context, Result, StepFailed

KINDS = {
    "postgresql": "headgate.execution.deliveries.tables",
    "mysql": "headgate.execution.deliveries.tables",
    "folder": "headgate.execution.deliveries.files",
    "object_store": "headgate.execution.deliveries.files",
    "http": "headgate.execution.deliveries.http",
}
"""By kind of destination, the module whose `deliver(rows, endpoint)` sends the rows; loaded when one comes."""


def run(step: Deliver, context: Context) -> Result:
    """Deliver a table."""
    endpoint = next(iter(context.job.endpoints.values()), None)
    if endpoint is None or endpoint.kind not in KINDS:
        raise StepFailed(
            "NO_DESTINATION", "The destination of this pipeline was deleted; choose another one and save the pipeline"
        )
    try:
        delivery_targets.check(step.sending, endpoint.kind)
    except ValueError as error:
        raise StepFailed("DEFINITION", f"{error}") from None
    deliver: Callable[[SnapshotRows, Endpoint], Result] = import_module(KINDS[endpoint.kind]).deliver
    return deliver(snapshot_rows(step, context), endpoint)
