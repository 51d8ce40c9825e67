"""SQL over HTTP: submit, follow, cancel; pages and downloads of results; the history. All of it one's own."""

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
    """Wait for the end of a statement of the caller's own; whoever asks for another's does not wait at all."""
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
    """Have a statement run, as oneself. It waits for a worker; `GET` with `wait` follows it."""

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
    """One's own statements, the newest first, as long as `sql.history_days` says."""
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
    """How a statement stands: its progress while it runs; then its columns and the first page of its rows, or why it
    failed. The rows are judged each time: `withheld` says that one may no longer read what they were read from.
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
    """A page of the rows, from 0: as JSON, or as an Arrow stream with `Accept: application/vnd.apache.arrow.stream`."""
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
    """All rows that were kept, as CSV or Parquet. Values are as they are: nothing is added that a spreadsheet might
    want. Each page is judged when it is sent; if one may no longer be read, the download breaks off.
    """
    row = stages.read(lambda call: service.require_rows(call, statement_id))
    names, pages = [value["name"] for value in row["columns"] or ()], row["pages"]
    parts = _pages(stages, statement_id, pages)
    stream = results.csv(names, parts) if format == "csv" else results.parquet(parts)
    media_type = results.CSV if format == "csv" else results.PARQUET
    disposition = f'attachment; filename="{statement_id}.{format}"'
    return _Broken(stream, media_type=media_type, headers={"Content-Disposition": disposition})


def _pages(stages: Stages, statement: str, pages: int) -> Iterator[bytes]:
    """All pages, each judged when its turn comes. What that records is written when the last was taken."""
    stages.recorded.clear()
    try:
        for number in range(pages):
            yield service.read_page(stages, statement, number)[0]
    finally:
        stages.finish()


class _Broken(StreamingResponse):
    """A download that breaks off when it is refused on the way, so that nobody takes a part for the whole."""

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        except Problem as problem:
            _log.info("a download was interrupted", reason=problem.code)


@router.governed("POST", "/{statement_id}/cancel", SignedIn("cancels their own"), Audit.changes, staged=True)
def cancel_statement(stages: Stages, statement_id: StatementId) -> StatementOut:
    """Stop a statement: from now on nothing is committed for it, and Spark is interrupted. What is over stays so."""

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
    """Delete a statement that is over, and its rows."""
    stages.read(lambda call: service.require_forgettable(call, statement_id))
    # Rows first: what has no row in the database is found by nobody.
    stages.services.store.delete_folder(f"results/{statement_id}")
    stages.write(lambda call: service.forget(call, statement_id))
    return StatementDeleted(id=statement_id)
