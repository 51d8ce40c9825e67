"""Reading REST APIs, without Spark around it."""

import json
from typing import Any

from headgate.execution.sources.rest.failures import ApiFailed
from headgate.execution.sources.rest.requests import Auth, Limits, Pages, RequestOptions
from headgate.execution.sources.rest.source import shares, texts
from tests.support.api import Api


def asked(
    api: Api, path: str, *, pages: dict[str, Any] | None = None, limits: dict[str, Any] | None = None, **more: Any
) -> RequestOptions:
    """What is asked of an API in a test: patience is short."""
    few = Limits(**{"attempts": 3, "call_seconds": 5.0, "longest_wait": 5.0, **(limits or {})})
    return RequestOptions(api.url, path, pages=Pages(**(pages or {})), limits=few, **more)


def read(wanted: RequestOptions) -> list[Any]:
    """The rows that are read, in the order of the tasks."""
    return [json.loads(text) for share in shares(wanted) for page in texts(wanted, share) for text in page]


def failure(wanted: RequestOptions) -> ApiFailed:
    """What goes wrong."""
    try:
        read(wanted)
    except ApiFailed as error:
        return error
    raise AssertionError("it was read")


def auth(style: str, name: str = "", secret: str = "", **more: Any) -> Auth:
    """Who asks."""
    return Auth(style, name, secret, **more)
