"""Routes: each shows its guard and its audit entry, and runs as one transaction that is committed before the answer.

A route's function takes a `call` and its own parameters, and runs in a worker thread. A write that met another one is
repeated whole.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass
from enum import StrEnum
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, TypeAdapter
from pydantic_core import SchemaSerializer
from starlette.concurrency import run_in_threadpool

from headgate.audit.events import Batches, record
from headgate.config import Settings
from headgate.edge.call import OPERATOR, Call, Caller, Recorded
from headgate.edge.guards import Guard
from headgate.edge.problems import ProblemBody
from headgate.errors import Denied, Invalid, NotFound, NotSignedIn, Problem, Unavailable
from headgate.kit.clock import now as clock
from headgate.kit.db import Database
from headgate.tokens.service import identify

OPERATOR_SCOPE = "headgate.operator"
"""Set in the ASGI scope by a process on the machine itself; it cannot come over the network."""


class Audit(StrEnum):
    """What a route adds to the audit log. Refusals are always recorded."""

    nothing = "nothing"
    changes = "changes"
    reads = "reads"
    decisions = "decisions"


@dataclass(frozen=True, slots=True)
class Services:
    """What the routes of one process share."""

    settings: Settings
    database: Database
    batches: Batches


@dataclass(frozen=True, slots=True)
class Declared:
    """What a route says of itself."""

    guard: Guard
    audit: Audit
    writes: bool
    is_quick: Callable[[dict[str, Any]], bool]


class GovernedRouter(APIRouter):
    """A router on which no route can be added without a guard and an audit entry."""

    def governed(
        self,
        method: str,
        path: str,
        *,
        guard: Guard,
        audit: Audit,
        summary: str,
        errors: Sequence[type[Problem]] = (),
        text: str | None = None,
        quick: Callable[[dict[str, Any]], bool] | bool = False,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Add a route. It writes if it changes something: that is its audit entry.

        It answers with the model that its function returns, or with `text` of that media type. A `quick` one does a
        bounded read whose decision is in the statement that reads: it needs no snapshot, and no thread on SQLite.
        """
        is_quick = quick if callable(quick) else (lambda parameters: bool(quick))
        declared = Declared(guard, audit, audit is Audit.changes, is_quick)

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            answer = inspect.signature(function, eval_str=True).return_annotation
            is_model = isinstance(answer, type) and (issubclass(answer, BaseModel) or is_dataclass(answer))
            responses = _responses(guard, errors)
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
            )
            return function

        return add


def _responses(guard: Guard, errors: Sequence[type[Problem]]) -> dict[int | str, dict[str, Any]]:
    """The errors that a route declares: its own, and those that every guarded route has."""
    common: list[type[Problem]] = [Invalid, Unavailable]
    if not guard.public:
        common += [NotSignedIn, Denied, NotFound]
    found: dict[int | str, dict[str, Any]] = {}
    for problem in sorted({*common, *errors}, key=lambda one: one.status):
        example = {"type": "about:blank", "title": problem.title, "status": problem.status, "code": problem.code}
        found[problem.status] = {
            "model": ProblemBody,
            "description": problem.title,
            "content": {"application/problem+json": {"example": {**example, "detail": problem.title}}},
        }
    return found


def _endpoint(function: Callable[..., Any], declared: Declared) -> Callable[..., Any]:
    """The function as FastAPI sees it: without `call`, in one thread, in one transaction."""
    signature = inspect.signature(function, eval_str=True)
    own = [parameter for name, parameter in signature.parameters.items() if name not in {"call", "request"}]
    wants_request = "request" in signature.parameters
    request = inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY, annotation=Request)
    own = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]

    @functools.wraps(function)
    async def endpoint(*, request: Request, **parameters: Any) -> Response:
        if wants_request:
            parameters["request"] = request
        return _respond(await run(function, declared, request, parameters))

    endpoint.__signature__ = signature.replace(parameters=[request, *own])  # type: ignore[attr-defined]
    endpoint.declared = declared  # type: ignore[attr-defined]
    del endpoint.__wrapped__
    return endpoint


def _respond(answer: Any) -> Response:
    if isinstance(answer, Response):
        return answer
    no_nulls = getattr(answer, "leave_out_none", False)
    serializer = _serializer(type(answer))  # type: ignore[arg-type]
    content = serializer.to_json(answer, by_alias=True, exclude_none=no_nulls)
    return Response(content, media_type="application/json")


@functools.cache
def _serializer(answer: type) -> SchemaSerializer:
    return TypeAdapter(answer).serializer


async def run(function: Callable[..., Any], declared: Declared, request: Request, parameters: dict[str, Any]) -> Any:
    """Run a route's function: identity, guard, work and commit; then what is to be recorded beside it."""
    services: Services = request.app.state.services
    database, recorded = services.database, Recorded()

    def work(connection: Any) -> Any:
        nonlocal recorded
        now = clock()
        caller = _caller(connection, request, declared, now)
        call = Call(connection, now, caller, services.settings, request.scope.get("headgate.request_id"))
        recorded = call.recorded
        request.scope["headgate.member"] = caller.member
        declared.guard.check(call, parameters)
        return function(call=call, **parameters)

    def in_transaction() -> Any:
        if declared.writes:
            return database.write(work)
        with database.read() as connection:
            return work(connection)

    def by_statement() -> Any:
        with database.peek() as connection:
            return work(connection)

    try:
        if not declared.is_quick(parameters):
            answer = await run_in_threadpool(in_transaction)
        elif database.is_in_process:
            answer = by_statement()
        else:
            answer = await run_in_threadpool(by_statement)
    except Problem:
        if recorded.denials:
            denials = recorded.denials
            await run_in_threadpool(database.write, lambda connection: record(connection, denials))
        raise
    for event in recorded.reads:
        services.batches.put(event)
    return answer


_NOBODY = Caller("")


def _caller(connection: Any, request: Request, declared: Declared, now: Any) -> Caller:
    if declared.guard.public:
        return _NOBODY
    if request.scope.get(OPERATOR_SCOPE):
        return OPERATOR
    header = request.headers.get("authorization", "")
    scheme, _, secret = header.partition(" ")
    identity = identify(connection, secret.strip(), now) if scheme.lower() == "bearer" else None
    if identity is None:
        raise NotSignedIn
    return Caller(identity.member, identity.token, identity.narrowing)
