"""Accounts for sign-in by address and password."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, select, update

from headgate.kit.names import email_key
from headgate.kit.rows import columns_of, fetch_one
from headgate.platform.authorization.provenance import CredentialOrigin
from headgate.platform.directory.models import member_table

_members = member_table.c


@dataclass(frozen=True, slots=True)
class Account:
    """A member, with the password hash and its end."""

    id: str
    name: str
    email: str | None
    password: str | None
    password_ended_at: datetime | None


def by_email(connection: Connection, email: str) -> Account | None:
    """The account with this address."""
    return _account(connection, _members.email_key == email_key(email))


def by_id(connection: Connection, member: str) -> Account | None:
    """The account of a member, or None."""
    return _account(connection, _members.id == member)


def _account(connection: Connection, condition: ColumnElement[bool]) -> Account | None:
    query = select(*columns_of(member_table, Account)).where(condition, _members.removed_at.is_(None))
    return fetch_one(connection, query, Account)


def origin_of_password(connection: Connection, member: str, stored: str) -> CredentialOrigin | None:
    """The origin of a password, if it is the member's current one and still valid."""
    mine = (_members.id == member, _members.removed_at.is_(None), _members.password == stored)
    query = select(_members.password_origin_id, _members.password_tainted)
    row = connection.execute(query.where(*mine, _members.password_ended_at.is_(None))).one_or_none()
    return CredentialOrigin(row.password_origin_id, row.password_tainted) if row else None


def replace_hash(connection: Connection, member: str, stored: str, fresh: str) -> None:
    """Replace the hash of an unchanged password."""
    mine = (_members.id == member, _members.removed_at.is_(None), _members.password == stored)
    connection.execute(update(member_table).where(*mine).values(password=fresh))
