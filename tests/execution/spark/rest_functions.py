"""Functions that tests call on the platform's Spark: an API, read there."""

from typing import Any

from headgate.execution.sources.api_requests import explain_error, proxied
from headgate.execution.sources.rest.requests import Auth, Limits, Pages, RequestOptions
from headgate.execution.sources.rest.source import NAME, register
from headgate.execution.spark.step_session import Step


def read(arguments: dict[str, Any], step: Step) -> dict[str, Any]:
    """What an API gives, with the plan by which Spark reads it."""
    step.explains(explain_error)
    given = dict(arguments)
    if own := given.pop("auth", None):
        given["auth"] = Auth(**own)
    if own := given.pop("pages", None):
        given["pages"] = Pages(**own)
    limits = Limits(**{"attempts": 2, **given.pop("limits", {})})
    name = register(step.spark, RequestOptions(**given, limits=limits, proxy=proxied(step.proxy)))
    rows: Any = step.spark.read.format(name).load()
    return {"rows": [row[0] for row in rows.collect()], "plan": rows._explain_string(extended=True)}


def read_of_others(arguments: dict[str, Any], step: Step) -> dict[str, Any]:
    """What is read of a source that another session made."""
    return {"rows": len(step.spark.read.format(NAME).load().collect())}
