"""SQL endpoints: submit, follow and cancel statements, read results, view the history. Members see only their own
statements.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from fastapi import Path, Query, Request, Response
from sqlalchemy import Connection
from starlette.responses import StreamingResponse
from starlette.types import Send

from headgate.kit.errors import Conflict, Expired, Problem, TooManyAttempts
from headgate.kit.log import get_logger
from headgate.kit.paging import DEFAULT_LIMIT, Cursor
from headgate.lakehouse.sql import repository, results, service
from headgate.lakehouse.sql.schemas import ResultPage, StatementDeleted, StatementIn, StatementOut, StatementPage
from headgate.platform.http.guards import SignedIn
from headgate.platform.http.long_polling import until
from headgate.platform.http.paging import After, Limit, begins_after
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.services import Services
from headgate.platform.unit_of_work.stages import Stages
from headgate.platform.unit_of_work.watch import LONGEST

router = GovernedRouter(prefix="/api/sql/statements", tags=["sql"])

_ID = r"^stm_[0-9a-z]{20}$"
StatementId = Annotated[str, Path(pattern=_ID, examples=["stm_01k6x3v9c2m4n8p0q7rs"])]
Wait = Annotated[
    float, Query(ge=0, le=LONGEST, description="Wait up to this many seconds for the end; 0 returns at once")
]
_log = get_logger("headgate.workbench")


async def until_over(services: Services, request: Request, parameters: dict[str, Any]) -> None:
    """Wait until one of the caller's own statements ends; return at once for others."""
    statement = parameters["statement_id"]

    def is_over(connection: Connection, member: str) -> bool:
        return repository.has_ended(connection, member, statement)

    await until(services, request, is_over, parameters["wait"])


@router.governed(
    "POST",
    "",
    SignedIn("runs SQL with their own rights, which the catalog asks for table by table"),
    Audit.changes,
    errors=[TooManyAttempts],
    staged=True,
)
def submit_statement(stages: Stages, body: StatementIn) -> StatementOut:
    """Submit a statement as the caller. It waits for a worker; follow it with `GET` and `wait`."""

    def work(call: Call) -> StatementOut:
        return service.shown(call, service.own(call, service.submit(call, body.sql, body.max_rows)))

    statement = stages.write(work)
    stages.services.watch.ring()
    return statement


@router.governed(
    "GET", "", SignedIn("sees their own; a token that is narrowed to a list, those submitted by it"), Audit.nothing
)
def list_statements(
    call: Call,
    active: Annotated[bool, Query(description="Only queued or running statements")] = False,
    limit: Limit = DEFAULT_LIMIT,
    cursor: After = None,
) -> StatementPage:
    """List the caller's statements, newest first. Statements are kept for `sql.history_days`."""
    purpose = f"statements {active}"
    after = begins_after(cursor, purpose)
    statement_items = service.history(call, is_active=active, before=after.id if after else None, limit=limit + 1)
    following = Cursor("", statement_items[limit - 1].id).encode(purpose) if len(statement_items) > limit else None
    return StatementPage(items=statement_items[:limit], next_cursor=following)


@router.governed(
    "GET",
    "/{statement_id}",
    SignedIn("sees their own; its rows only while they may read what it read"),
    Audit.reads,
    wait=until_over,
)
def get_statement(call: Call, statement_id: StatementId, wait: Wait = 0) -> StatementOut:
    """Get the status of a statement: its progress, then its columns and the first page of rows, or the error. Access to
    the rows is checked each time: `withheld` means that the caller may no longer read the tables behind them.
    """
    return service.shown(call, service.own(call, statement_id))


@router.governed(
    "GET",
    "/{statement_id}/pages/{number}",
    SignedIn("sees their own, while they may read what it read"),
    Audit.reads,
    errors=[Conflict, Expired],
    staged=True,
)
def get_statement_page(
    stages: Stages, request: Request, statement_id: StatementId, number: Annotated[int, Path(ge=0, le=10**6)]
) -> ResultPage:
    """Get a page of rows, from 0, as JSON, or as an Arrow stream with `Accept: application/vnd.apache.arrow.stream`."""
    page, pages = service.read_page(stages, statement_id, number)
    if results.ARROW in request.headers.get("accept", ""):
        return Response(page, media_type=results.ARROW)  # type: ignore[return-value]
    data = results.rows(results.open_page(page))
    return ResultPage(number=number, data=data, next=number + 1 if number + 1 < pages else None)


@router.governed(
    "GET",
    "/{statement_id}/download",
    SignedIn("sees their own, while they may read what it read"),
    Audit.reads,
    errors=[Conflict, Expired],
    text="text/csv",
    staged=True,
)
def download_statement(
    stages: Stages,
    statement_id: StatementId,
    format: Annotated[Literal["csv", "parquet"], Query(description="CSV (RFC 4180) or Parquet")] = "csv",  # noqa: A002 - the API's word
) -> Response:
    """Download all stored rows as CSV or Parquet. Values are written unchanged, without escaping for spreadsheets.
    Access is checked for each page; if it is lost, the download is aborted.
    """
    row = stages.read(lambda call: service.require_rows(call, statement_id))
    names, pages = [value["name"] for value in row["columns"] or ()], row["pages"]
    parts = _pages(stages, statement_id, pages)
    stream = results.csv(names, parts) if format == "csv" else results.parquet(parts)
    media_type = results.CSV if format == "csv" else results.PARQUET
    disposition = f'attachment; filename="{statement_id}.{format}"'
    return _Broken(stream, media_type=media_type, headers={"Content-Disposition": disposition})


def _pages(stages: Stages, statement: str, pages: int) -> Iterator[bytes]:
    """All pages, each authorized before it is sent. The audit events are written after the last one."""
    stages.recorded.clear()
    try:
        for number in range(pages):
            yield service.read_page(stages, statement, number)[0]
    finally:
        stages.finish()


class _Broken(StreamingResponse):
    """Aborts a download that is refused midway, so that a partial file is not mistaken for a complete one."""

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        except Problem as problem:
            _log.info("a download was interrupted", reason=problem.code)


@router.governed("POST", "/{statement_id}/cancel", SignedIn("cancels their own"), Audit.changes, staged=True)
def cancel_statement(stages: Stages, statement_id: StatementId) -> StatementOut:
    """Cancel a statement: nothing more is committed for it, and Spark is interrupted. A finished statement is not
    changed.
    """

    def work(call: Call) -> StatementOut:
        service.cancel(call, statement_id)
        return service.shown(call, service.own(call, statement_id))

    statement = stages.write(work)
    stages.services.watch.ring()
    return statement


@router.governed(
    "DELETE", "/{statement_id}", SignedIn("deletes their own"), Audit.changes, errors=[Conflict], staged=True
)
def delete_statement(stages: Stages, statement_id: StatementId) -> StatementDeleted:
    """Delete a finished statement and its rows."""
    stages.read(lambda call: service.require_forgettable(call, statement_id))
    # Delete the rows first, because files without a database row are not found later.
    stages.services.store.delete_folder(f"results/{statement_id}")
    stages.write(lambda call: service.forget(call, statement_id))
    return StatementDeleted(id=statement_id)
