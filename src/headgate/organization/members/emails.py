"""Finds members by their mail address."""

from typing import Any

from sqlalchemy import Connection, select

from headgate.kit.errors import Invalid
from headgate.kit.names import BadName, check_email, email_key
from headgate.platform.directory.models import member_table


def account(connection: Connection, email: str) -> Any:
    """The member with this address: id, name, email, and password with when it ended; None if there is none."""
    table = member_table.c
    where = (table.email_key == email_key(email), table.removed_at.is_(None))
    columns = (table.id, table.name, table.email, table.password, table.password_ended_at)
    return connection.execute(select(*columns).where(*where)).one_or_none()


def usable(email: str, place: str = "email") -> str:
    """The address as it is stored, or Invalid."""
    try:
        return check_email(email)
    except BadName as error:
        raise Invalid(f"{place}: {error}") from None
