"""Connection checks of a member: limited in number, visible only to the member, and only while they are authorized."""

from typing import Any

from sqlalchemy import Connection, func, insert, select
from sqlalchemy.engine import RowMapping

from headgate.contracts.connection_checks import Findings
from headgate.kit.database import fetch
from headgate.kit.errors import Conflict, TooManyAttempts
from headgate.kit.ids import kind_of, new_id
from headgate.platform.connection_checks import unsaved
from headgate.platform.connection_checks.job import KEPT, TEST
from headgate.platform.connection_checks.models import connection_check_table
from headgate.platform.connection_checks.schemas import CheckIn, ConnectionCheckError, ConnectionCheckOut
from headgate.platform.external_systems.repository import place_of
from headgate.platform.jobs.models import ACTIVE, WAITING
from headgate.platform.unit_of_work.call import Call

ASKED = "connection_check.requested"
KIND = "connection_check"
AT_A_TIME = 10
_rows = connection_check_table.c


def ask(call: Call, place: str, given: CheckIn) -> str:
    """Submit a check and return its id. The guard has authorized the caller."""
    pointing = place_of(call.connection, place)
    if pointing is None:
        raise Conflict("It has no host configured; set `place` first")
    unsaved.check(call, place, given)
    own = select(func.count()).where(_rows.member_id == call.caller.member, _rows.state.in_(ACTIVE))
    if call.connection.execute(own).scalar_one() >= AT_A_TIME:
        raise TooManyAttempts(f"You have {AT_A_TIME} checks waiting or running; wait until one has ended", seconds=5)
    identifier = new_id(KIND)
    row = {
        "id": identifier,
        "member_id": call.caller.member,
        "place_id": place,
        "place_version": pointing.version,
        "operation": given.operation,
        "question": given.model_dump(exclude={"operation", "place", "secrets"}),
        "place": given.place.model_dump(mode="json") if given.place else None,
        "sealed": unsaved.sealed(call.services.sealer, identifier, given.secrets.given()),
        "state": WAITING,
        "queued_at": call.now,
        "expires_at": call.now + KEPT,
    }
    call.connection.execute(insert(connection_check_table).values(row))
    about: dict[str, Any] = {
        "kind": kind_of(place),
        "resource_id": place,
        "action": TEST,
    }
    after: dict[str, Any] = {"operation": given.operation, "pattern": given.pattern}
    if given.place is not None or given.secrets.model_fields_set:
        where = given.place.where() if given.place else None
        after |= {"place": where, "secrets": sorted(given.secrets.model_fields_set)}
    call.record(call.event(ASKED, allowed=True, **about, after=after))
    return identifier


def own(call: Call, check: str) -> RowMapping:
    """A check of the caller on a resource that they may still check; otherwise NotFound."""
    query = select(connection_check_table).where(_rows.id == check, _rows.member_id == call.caller.member)
    row = call.connection.execute(query).mappings().one_or_none()
    if row is None:
        call.hide("see", "connection_check", check)
    kind = kind_of(row["place_id"]) or ""
    if not call.decide(TEST, kind, row["place_id"]):
        call.hide(TEST, kind, row["place_id"])
    return row


def shown(row: RowMapping) -> ConnectionCheckOut:
    """A check as shown to its member."""
    names = ("id", "operation", "state", "expires_at")
    error = ConnectionCheckError(code=row["error_code"], message=row["error"] or "") if row["error_code"] else None
    result = Findings(**row["result"]) if row["result"] else None
    return ConnectionCheckOut(
        **{name: row[name] for name in names},
        about=row["place_id"],
        asked_at=row["queued_at"],
        finished_at=row["ended_at"],
        result=result,
        error=error,
    )


def has_ended(connection: Connection, member: str, check: str) -> bool:
    """Whether there is nothing to wait for: the check has ended or is not the member's."""
    text = "SELECT state FROM connection_checks WHERE id = :id AND member_id = :member"
    rows = fetch(connection, text, {"id": check, "member": member})
    return not rows or rows[0][0] not in ACTIVE
