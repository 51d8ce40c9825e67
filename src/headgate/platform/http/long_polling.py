"""Long polling: waits for a change of the caller's own data before the response, without holding a thread or
transaction.
"""

from collections.abc import Callable

from fastapi import Request
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool

from headgate.kit.clock import now
from headgate.kit.errors import NotSignedIn
from headgate.platform.http.authentication import caller
from headgate.platform.unit_of_work.services import Services


async def until(
    services: Services, request: Request, is_over: Callable[[Connection, str], bool], seconds: float
) -> None:
    """Wait until the condition holds for the calling member, up to a timeout; unknown callers do not wait."""
    if not seconds:
        return

    def member() -> str:
        with services.database.peek() as connection:
            return caller(connection, request, services.settings, now()).member

    try:
        who = member() if services.database.is_in_process else await run_in_threadpool(member)
    except NotSignedIn:
        return
    await services.watch.wait(lambda connection: is_over(connection, who), seconds)
