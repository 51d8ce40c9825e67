"""Sets, shows and removes the organization's webhook, and queues deliveries."""

import secrets
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from headgate.kit.encryption import Sealer
from headgate.kit.ids import new_id
from headgate.kit.urls import read_url
from headgate.platform.authorization.questions import Question, decide
from headgate.platform.directory.models import member_table
from headgate.platform.webhooks.models import webhook_delivery_table, webhook_table

CHANNEL = "runs"
GIVE_UP_AFTER = timedelta(days=2)

_hooks, _deliveries, _members = webhook_table.c, webhook_delivery_table.c, member_table.c


def current(connection: Connection) -> Any:
    """The webhook, with the name of the member who set it, or None."""
    joined = webhook_table.outerjoin(member_table, (_members.id == _hooks.set_by_id) & _members.removed_at.is_(None))
    query = select(webhook_table, _members.name.label("set_by")).select_from(joined)
    return connection.execute(query).one_or_none()


def set_webhook(connection: Connection, sealer: Sealer, url: str, member: str, now: datetime) -> str:
    """Replace the webhook; returns the signing key, which is shown once."""
    connection.execute(delete(webhook_table))
    identifier, secret = new_id("webhook"), "whsec_" + secrets.token_urlsafe(32)
    connection.execute(
        insert(webhook_table).values(
            id=identifier,
            url=sealer.seal(url, webhook_table.name, identifier, "url"),
            host=read_url(url).spelt[:300],
            secret=sealer.seal(secret, webhook_table.name, identifier, "secret"),
            set_by_id=member,
            set_at=now,
        )
    )
    return secret


def remove_webhook(connection: Connection) -> bool:
    """Remove the webhook; returns whether there was one."""
    return connection.execute(delete(webhook_table)).rowcount > 0


def may_receive(connection: Connection, member: str, now: datetime) -> bool:
    """Whether the member who set the webhook may still set one."""
    return bool(decide(connection, Question(member, "manage_settings", "organization", "organization"), now))


def enqueue(connection: Connection, notice: Any, knowing: frozenset[str] | None, now: datetime) -> None:
    """Queue a delivery in this transaction, if the member who set the webhook may know the notice."""
    if notice.channel != CHANNEL or (notice.recipients is not None and notice.resource_id is None):
        return
    hook = connection.execute(select(webhook_table)).one_or_none()
    if hook is None or (knowing is not None and hook.set_by_id not in knowing):
        return
    if not may_receive(connection, hook.set_by_id, now):
        return
    values = {"notice_id": notice.id, "webhook_id": hook.id, "created_at": now, "due_at": now, "attempts": 0}
    connection.execute(insert(webhook_delivery_table).values(**values, expires_at=now + GIVE_UP_AFTER))


def last_delivery(connection: Connection, webhook: str) -> Any:
    """The last attempted delivery, or None."""
    query = select(webhook_delivery_table).where(_deliveries.webhook_id == webhook, _deliveries.attempts > 0)
    return connection.execute(query.order_by(_deliveries.created_at.desc()).limit(1)).one_or_none()
