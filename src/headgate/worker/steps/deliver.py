"""Delivers a table to the run's destination, by the destination's kind."""

from collections.abc import Callable
from importlib import import_module

from headgate.pipelines import sendings
from headgate.pipelines.steps import Deliver
from headgate.worker.delivering.rows import Rows, found
from headgate.worker.steps.context import Context, Endpoint, Result, StepFailed

KINDS = {
    "postgresql": "headgate.worker.delivering.tables",
    "mysql": "headgate.worker.delivering.tables",
    "folder": "headgate.worker.delivering.files",
    "object_store": "headgate.worker.delivering.files",
    "http": "headgate.worker.delivering.http",
}
"""By kind of destination, the module whose `deliver(rows, endpoint)` sends the rows; loaded when one comes."""


def run(step: Deliver, context: Context) -> Result:
    """Deliver a table."""
    endpoint = next(iter(context.job.endpoints.values()), None)
    if endpoint is None or endpoint.kind not in KINDS:
        raise StepFailed("NO_DESTINATION", "The destination of this delivery is gone; choose another and save it again")
    try:
        sendings.check(step.sending, endpoint.kind)
    except ValueError as error:
        raise StepFailed("DEFINITION", f"{error}") from None
    deliver: Callable[[Rows, Endpoint], Result] = import_module(KINDS[endpoint.kind]).deliver
    return deliver(found(step, context), endpoint)
