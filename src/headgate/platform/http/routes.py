"""Routes: each declares its guard and audit entry, and runs in one transaction that is committed before the response.

A route's function takes a `call` and its parameters, and runs in a worker thread. A write that conflicts with another
is retried as a whole.
"""

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass, replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, TypeAdapter
from pydantic_core import SchemaSerializer
from starlette.concurrency import run_in_threadpool
from starlette.routing import Match
from starlette.types import Scope

from headgate.kit.errors import (
    BadRequest,
    Denied,
    DiskFull,
    Invalid,
    NotFound,
    NotSignedIn,
    Problem,
    TooLarge,
    Unavailable,
)
from headgate.platform.http.authentication import NOBODY, caller, refuse_cross_site, worker
from headgate.platform.http.guards import ByWorker, Guard
from headgate.platform.unit_of_work.call import Call, Caller, Recorded
from headgate.platform.unit_of_work.services import Services
from headgate.platform.unit_of_work.stages import Stages

Prepare = Callable[[Services, Request, dict[str, Any]], Any]
Wait = Callable[[Services, Request, dict[str, Any]], Awaitable[None]]
T = TypeVar("T")


class Audit(StrEnum):
    """The audit entry of a route. Refusals are always recorded."""

    nothing = "nothing"
    changes = "changes"
    reads = "reads"
    decisions = "decisions"


@dataclass(frozen=True, slots=True)
class Declared:
    """The declaration of a route."""

    guard: Guard
    audit: Audit
    writes: bool
    is_quick: Callable[[dict[str, Any]], bool]
    prepare: Prepare | None = None
    offline: bool = False
    staged: bool = False
    limiter: CapacityLimiter | None = None
    wait: Wait | None = None


class GovernedRouter(APIRouter):
    """A router that requires a guard and an audit entry for each route."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether a route matches; a path outside of the prefix is rejected without trying any route.

        FastAPI compares a path with every route of every earlier router, twice, which took a sixth of the time of a
        read.
        """
        if not scope["path"].startswith(self.prefix):
            return Match.NONE, {}
        return super().matches(scope)

    def governed(  # noqa: PLR0913 - each is a word that a route may say of itself
        self,
        method: str,
        path: str,
        guard: Guard,
        audit: Audit,
        *,
        errors: Sequence[type[Problem]] = (),
        text: str | None = None,
        takes: str | None = None,
        also: Mapping[int, str] = MappingProxyType({}),
        quick: Callable[[dict[str, Any]], bool] | bool = False,
        offline: bool = False,
        prepare: Prepare | None = None,
        staged: bool = False,
        limiter: CapacityLimiter | None = None,
        wait: Wait | None = None,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Add a route. It is a write if its audit entry declares a change.

        The function's name is the operation id and summary, and its docstring the description.

        The response is the model that the function returns, or `text` of that media type, with a status of `also` where
        declared. A route that `takes` a media type reads its body itself. A `quick` route does a bounded read whose
        statement includes the authorization, so it needs no snapshot, and no thread on SQLite. `prepare` runs slow work
        without a transaction, such as hashing a password, before the function, which gets the result as `prepared`. An
        `offline` route does not use the database.

        A `staged` route works on files between transactions: its function takes `stages` instead of `call` and opens
        each transaction with it; the caller is identified and the guard checked in each. A `limiter` separates its
        threads from those of other routes. `wait` is awaited first, without a thread.
        """
        is_quick = quick if callable(quick) else (lambda parameters: bool(quick))
        declared = Declared(guard, audit, audit is Audit.changes, is_quick, prepare, offline, staged, limiter, wait)

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            signature = inspect.signature(function, eval_str=True)
            answer = signature.return_annotation
            is_model = isinstance(answer, type) and (issubclass(answer, BaseModel) or is_dataclass(answer))
            responses = _responses(guard, errors, signature.parameters.values(), takes)
            responses |= {status: {"description": meaning} for status, meaning in also.items()}
            summary = function.__name__.replace("_", " ").capitalize()
            if text is not None:
                responses[200] = {"description": summary, "content": {text: {"schema": {"type": "string"}}}}
            self.add_api_route(
                path,
                _endpoint(function, declared),
                methods=[method],
                response_model=answer if is_model else None,
                response_class=JSONResponse if is_model else Response,
                summary=summary,
                description=inspect.getdoc(function),
                responses=responses,
                operation_id=function.__name__,
                openapi_extra=_raw_body(takes) if takes else None,
            )
            return function

        return add


def _responses(
    guard: Guard, errors: Sequence[type[Problem]], parameters: Iterable[inspect.Parameter], takes: str | None
) -> dict[int | str, dict[str, Any]]:
    """The errors that a route declares: its own, and those of all routes of its type."""
    common: list[type[Problem]] = [Unavailable, DiskFull]
    path_parameters = [parameter for parameter in parameters if parameter.name not in GIVEN]
    if path_parameters:
        common.append(Invalid)
    if takes or any(parameter.name == "body" for parameter in path_parameters):
        common += [BadRequest, TooLarge]
    if not guard.public:
        common += [NotSignedIn, Denied, NotFound]
    responses: dict[int | str, dict[str, Any]] = {}
    for problem in sorted(dict.fromkeys([*common, *errors]), key=lambda problem: problem.status):
        example = {"type": "about:blank", "title": problem.title, "status": problem.status, "code": problem.code}
        example["detail"] = problem.title
        body = {"schema": {"$ref": "#/components/schemas/ProblemBody"}, "example": example}
        responses[problem.status] = {"description": problem.title, "content": {"application/problem+json": body}}
    return responses


def _raw_body(media_type: str) -> dict[str, Any]:
    content = {media_type: {"schema": {"type": "string", "format": "binary"}}}
    return {"requestBody": {"description": "The bytes", "required": True, "content": content}}


GIVEN = frozenset({"call", "stages", "request", "prepared"})
"""Parameters of a route's function that the framework provides; the others come from the request."""


def _endpoint(function: Callable[..., Any], declared: Declared) -> Callable[..., Any]:
    """The function as FastAPI sees it: without `call`, in one thread, in one transaction."""
    signature = inspect.signature(function, eval_str=True)
    own = [parameter for name, parameter in signature.parameters.items() if name not in GIVEN]
    wants_request = "request" in signature.parameters
    request = inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY, annotation=Request)
    own = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]

    @functools.wraps(function)
    def admitted(**_: Any) -> None:
        """No work: only the guard is checked."""

    @functools.wraps(function)
    async def endpoint(*, request: Request, **parameters: Any) -> Response:
        if declared.wait:
            await declared.wait(request.app.state.services, request, parameters)
        if declared.prepare:
            if not declared.guard.public:
                # The preparation costs more than the authorization, and must not reveal more.
                await run(admitted, replace(declared, writes=False, prepare=None), request, parameters)
            prepared = await run_in_threadpool(declared.prepare, request.app.state.services, request, parameters)
            parameters["prepared"] = prepared
        if wants_request:
            parameters["request"] = request
        if declared.staged:
            return await run_staged(function, declared, request, parameters)
        return await run(function, declared, request, parameters)

    endpoint.__signature__ = signature.replace(parameters=[request, *own])  # type: ignore[attr-defined]
    endpoint.declared = declared  # type: ignore[attr-defined]
    del endpoint.__wrapped__
    return endpoint


def _respond(answer: Any, *recorded: Recorded) -> Response:
    response = answer if isinstance(answer, Response) else _json(answer)
    for event in recorded:
        response.headers.update(event.headers)
        for cookie in event.cookies:
            response.headers.append("set-cookie", cookie)
    return response


def _json(answer: Any) -> Response:
    no_nulls = getattr(answer, "leave_out_none", False)
    serializer = _serializer(type(answer))  # type: ignore[arg-type]
    content = serializer.to_json(answer, by_alias=True, exclude_none=no_nulls)
    return Response(content, media_type="application/json")


@functools.cache
def _serializer(answer: type) -> SchemaSerializer:
    return TypeAdapter(answer).serializer


@contextmanager
def _refusals_recorded(call: Call, operation: str, parameters: dict[str, Any]) -> Iterator[None]:
    """Record refusals raised in this context, under the name of the operation unless the action is known."""
    try:
        yield
    except Problem as problem:
        if problem.status == Denied.status:
            call.note_refusal(operation, parameters)
        raise


def _stages(function: Callable[..., Any], declared: Declared, request: Request, parameters: dict[str, Any]) -> Stages:
    """The transactions of a request: each identifies the caller and checks the guard."""
    services: Services = request.app.state.services

    def identify(connection: Any, now: datetime) -> Caller:
        who = _caller(connection, request, declared, services, now)
        request.scope["headgate.member"] = who.member
        return who

    @contextmanager
    def admit(call: Call) -> Iterator[None]:
        with _refusals_recorded(call, function.__name__, parameters):
            declared.guard.check(call, parameters)
            yield

    header = request.headers.get("authorization", "")
    return Stages(services, identify, admit, request.scope.get("headgate.request_id"), header)


async def run(
    function: Callable[..., Any], declared: Declared, request: Request, parameters: dict[str, Any]
) -> Response:
    """Run a route's function: authentication, guard, work and commit, then deferred records."""
    stages = _stages(function, declared, request, parameters)

    def work(call: Call) -> Any:
        return function(call=call, **parameters)

    try:
        if declared.offline:
            answer = stages.offline(work)
        elif not declared.is_quick(parameters):
            answer = await run_in_threadpool(stages.write if declared.writes else stages.read, work)
        elif stages.services.database.is_in_process:
            answer = stages.peek(work)
        else:
            answer = await run_in_threadpool(stages.peek, work)
    finally:
        if stages.denials:
            await run_in_threadpool(stages.record_denials)
    stages.note()
    return _respond(answer, *stages.recorded)


async def run_staged(
    function: Callable[..., Any], declared: Declared, request: Request, parameters: dict[str, Any]
) -> Response:
    """Run a staged route's function in a thread; it opens its transactions itself."""
    stages = _stages(function, declared, request, parameters)

    def work() -> Any:
        try:
            return function(stages=stages, **parameters)
        finally:
            stages.finish()

    return _respond(await to_thread.run_sync(work, limiter=declared.limiter), *stages.recorded)


def _caller(connection: Any, request: Request, declared: Declared, services: Services, now: datetime) -> Caller:
    if isinstance(declared.guard, ByWorker):
        return worker(request, services.worker_secret)
    if not declared.guard.public:
        return caller(connection, request, services.settings, now)
    if declared.writes:
        refuse_cross_site(request, services.settings, must_tell=False)
    return NOBODY
