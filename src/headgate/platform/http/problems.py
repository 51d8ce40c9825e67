"""Problems as application/problem+json (RFC 9457)."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException

from headgate.kit.database import Busy, is_full, is_out_of_reach
from headgate.kit.errors import (
    BadRequest,
    DiskFull,
    Invalid,
    NotFound,
    NotSignedIn,
    Problem,
    TooLarge,
    Unavailable,
    WrongMethod,
)
from headgate.kit.log import get_logger
from headgate.platform.http.validation_errors import describe_errors

ProblemFormat = Callable[[Problem, dict[str, str] | None], Response]

MEDIA_TYPE = "application/problem+json"
_log = get_logger("headgate.http")


class ErrorPlace(BaseModel):
    """An invalid value: its location and the reason."""

    place: str = Field(examples=["sort"])
    message: str = Field(examples=["must be name, -name, created or -created"])


class ProblemBody(BaseModel):
    """A problem according to RFC 9457."""

    model_config = ConfigDict(extra="allow")

    type: str = "about:blank"
    title: str
    status: int
    code: str = Field(description="The error code")
    detail: str = Field(description="What to do about it")
    request_id: str | None = Field(None, description="Include it in bug reports")
    errors: list[ErrorPlace] | None = None


def respond(problem: Problem, request: Request, headers: dict[str, str] | None = None) -> Response:
    """A problem as a response; some paths use the format of their clients."""
    formats: Mapping[str, ProblemFormat] = request.app.state.problem_formats
    for prefix, in_own_form in formats.items():
        if request.scope["path"].startswith(prefix):
            return in_own_form(problem, headers)
    body = {
        "type": "about:blank",
        "title": problem.title,
        "status": problem.status,
        "code": problem.code,
        "detail": problem.detail,
        "request_id": request.scope.get("headgate.request_id"),
        **problem.more,
    }
    content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    return Response(content, problem.status, headers, MEDIA_TYPE)


def _problem_of(error: Exception, request: Request) -> Problem:
    """The problem for an error."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, RequestValidationError):
        errors = describe_errors(error.errors(), error.body)
        detail = "; ".join(f"{item['place']}: {item['message']}" for item in errors)
        kind = BadRequest if request.url.path.startswith("/access/v1/") else Invalid
        return kind(detail, errors=errors)
    if isinstance(error, Busy | PoolTimeout):
        return Unavailable("The database is busy; try again")
    if isinstance(error, HTTPException):
        problems: dict[int, type[Problem]] = {404: NotFound, 405: WrongMethod, 413: TooLarge}
        is_told = error.status_code not in {404, 405}
        return problems.get(error.status_code, BadRequest)(str(error.detail) if is_told else None)
    return Problem("Internal error; see the server's log for the request id")


def handle(request: Request, error: Exception) -> Response:
    """Respond to an error with a problem; log it if it is internal."""
    if is_out_of_reach(error):
        _log.warning("cannot connect to the database", error=str(error).splitlines()[0])
        error = Unavailable("Cannot connect to the database; try again")
    if is_full(error):
        _log.error("a disk is full", error=str(error).splitlines()[0])
        error = DiskFull()
    problem = _problem_of(error, request)
    headers: dict[str, str] = dict(getattr(error, "headers", None) or {})
    if isinstance(problem, NotSignedIn):
        headers["WWW-Authenticate"] = 'Bearer realm="headgate"'
    if problem.status == 503:
        headers["Retry-After"] = "1"
    if problem.status == 500:
        _log.error("unexpected error", exc_info=error, path=request.url.path)
    return respond(problem, request, headers)


def install(app: FastAPI, formats: Mapping[str, ProblemFormat]) -> None:
    """Install the error handlers of an application, with special formats for some paths.

    The outermost middleware handles the rest.
    """
    app.state.problem_formats = formats
    for kind in (Problem, RequestValidationError, Busy, PoolTimeout, HTTPException):
        app.add_exception_handler(kind, handle)


def describe(app: FastAPI) -> None:
    """Define the problem schema in the OpenAPI document; every route refers to it."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = plain()
            schema = ProblemBody.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas = document.setdefault("components", {}).setdefault("schemas", {})
            schemas.update({**schema.pop("$defs", {}), "ProblemBody": schema})
            schemas.pop("HTTPValidationError", None)
            schemas.pop("ValidationError", None)
        return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]
