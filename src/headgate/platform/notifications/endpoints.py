"""Notification endpoints: the caller's notifications and settings, and the subscribers of a channel."""

from typing import Annotated, Any

from fastapi import Query

from headgate.kit.errors import Denied, Invalid
from headgate.kit.ids import kind_of
from headgate.kit.paging import DEFAULT_LIMIT, MAX_LIMIT, Cursor
from headgate.platform.directory.repository import email_of
from headgate.platform.http.guards import OnOrganization, SignedIn
from headgate.platform.http.paging import begins_after
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.notifications import repository
from headgate.platform.notifications.dispatcher import about
from headgate.platform.notifications.schemas import (
    Channel,
    ChannelOut,
    NotificationOut,
    NotificationPage,
    NotificationSettings,
    NotificationSettingsIn,
    NotifiedResource,
    OwnerWarning,
    ReadIn,
    ReadOut,
    ReceiverOut,
    ReceiverPage,
    ReceiversIn,
)
from headgate.platform.notifications.service import CHANNELS, set_receiver
from headgate.platform.notifications.templates import sentence
from headgate.platform.notifications.visibility import NotificationReader
from headgate.platform.resources.names import require_names
from headgate.platform.unit_of_work.call import Call

router = GovernedRouter(prefix="/api", tags=["notifications"])

CHANGED = "notifications.changed"
MOST_SCANNED = 1000
"""Maximum number of notifications scanned per page, because hidden ones are skipped."""
MOST_WARNED = 200
_PURPOSE = "notifications"


def _reader(call: Call) -> NotificationReader:
    return NotificationReader(call.connection, call.caller.member, call.now, call.caller.narrowing)


@router.governed(
    "GET", "/notifications", SignedIn("sees their own, without those about what they may not see now"), Audit.nothing
)
def list_notifications(
    call: Call,
    unread: Annotated[bool, Query(description="Only unread notifications")] = False,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT,
    cursor: Annotated[str | None, Query(max_length=4000, description="The `next_cursor` of the previous page")] = None,
) -> NotificationPage:
    """List the caller's notifications, newest first, limited to what they may know now."""
    purpose = f"{_PURPOSE} {unread}"
    after = begins_after(cursor, purpose)
    before, scanned = after.id if after else None, 0
    page: list[tuple[Any, str | None]] = []
    more = True
    while more and len(page) <= limit and scanned < MOST_SCANNED:
        rows = repository.told(call.connection, call.caller.member, limit + 1, before, unread=unread)
        visible = _reader(call).shown(rows)
        page += [(row, visible[row.id]) for row in rows if row.id in visible]
        more, scanned = len(rows) > limit, scanned + len(rows)
        before = rows[-1].id if rows else before
    if len(page) > limit:
        before = page[limit - 1][0].id
    following = Cursor("", before).encode(purpose) if before and (more or len(page) > limit) else None
    return NotificationPage(items=_items(call, page[:limit]), next_cursor=following)


def _items(call: Call, page: list[tuple[Any, str | None]]) -> list[NotificationOut]:
    names = repository.names(
        call.connection, [identifier for row, _ in page for identifier in (row.member_id, row.actor_id)]
    )
    return [
        NotificationOut(
            id=row.id,
            channel=row.channel,
            event=row.event,
            sentence=sentence(row.event, about(row, name, names)),
            about=NotifiedResource(id=row.resource_id, kind=kind_of(row.resource_id) or "", name=name)
            if name
            else None,
            at=row.created_at,
            read_at=row.read_at,
        )
        for row, name in page
    ]


def _refuse_narrowed(call: Call) -> None:
    """Refuse tokens that are read-only or limited to some data: they may not change settings."""
    narrowing = call.caller.narrowing
    if narrowing.only is not None or not narrowing.permits_action("change_notifications", call.now):
        raise Denied("This token is restricted and may not change notifications; use a token without restrictions")


@router.governed("POST", "/notifications/read", SignedIn("marks their own"), Audit.changes)
def read_notifications(call: Call, body: ReadIn) -> ReadOut:
    """Mark notifications as read. Ids of other members' notifications are ignored."""
    _refuse_narrowed(call)
    repository.mark_read(call.connection, call.caller.member, body.ids, call.now)
    return ReadOut(read_at=call.now)


@router.governed("GET", "/me/notifications", SignedIn("sees their own settings"), Audit.nothing)
def get_notification_settings(call: Call) -> NotificationSettings:
    """Get the caller's channels, and warnings if their role is too low for resources they own."""
    require_names(call)
    return _settings(call)


def _settings(call: Call) -> NotificationSettings:
    member = call.caller.member
    choices = repository.own_channels(call.connection, member)
    channels = [
        ChannelOut(channel=name, about=description, receives=name in choices, by_mail=choices.get(name, False))
        for name, description in CHANNELS.items()
    ]
    address = email_of(call.connection, member) if call.settings.mail.host else None
    return NotificationSettings(channels=channels, mail_to=address, warnings=_warnings(call))


def _warnings(call: Call) -> list[OwnerWarning]:
    """Resources that the caller owns, although the rule tables give their role no full control."""
    if call.caller.narrowing.only is not None:
        return []
    rows = repository.full_ownerships(call.connection, call.caller.member, MOST_WARNED)
    known_resources = NotificationReader(call.connection, call.caller.member, call.now).known(row.id for row in rows)
    warnings = []
    for row in rows:
        resource = known_resources.get(row.id)
        if resource is None or "manage_owners" in resource.actions:
            continue
        visible = "see" in resource.actions
        warnings.append(
            OwnerWarning(
                kind=row.kind,
                id=row.id if visible else None,
                name=resource.name if visible else None,
                warning=(
                    f"You are an owner of this {row.kind.replace('_', ' ')}, but your role is too low to "
                    f"{'change' if visible else 'see'} it; ask an admin for another role, or to transfer it to "
                    "another owner"
                ),
            )
        )
    return warnings


@router.governed("PUT", "/me/notifications", SignedIn("changes their own settings"), Audit.changes)
def put_notification_settings(call: Call, body: NotificationSettingsIn) -> NotificationSettings:
    """Subscribe to channels or unsubscribe, with or without mail. Channels that are not named stay unchanged."""
    _refuse_narrowed(call)
    for channel in body.channels:
        _set(call, call.caller.member, channel.channel.value, receives=channel.receives, by_mail=channel.by_mail)
    return _settings(call)


def _set(call: Call, member: str, channel: str, *, receives: bool, by_mail: bool) -> None:
    """Change a member's subscription to a channel, and audit a change."""
    choice = repository.receiver(call.connection, member, channel)
    before = {"channel": channel, "receives": choice is not None, "by_mail": bool(choice)}
    after = {"channel": channel, "receives": receives, "by_mail": receives and by_mail}
    if before == after:
        return
    set_receiver(call.connection, member, channel, receives=receives, by_mail=by_mail)
    call.record(call.event(CHANGED, allowed=True, kind="member", resource_id=member, before=before, after=after))


@router.governed("GET", "/notifications/receivers/{channel}", OnOrganization("manage_members"), Audit.nothing)
def list_receivers(
    call: Call,
    channel: Channel,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT,
    cursor: Annotated[str | None, Query(max_length=4000, description="The `next_cursor` of the previous page")] = None,
) -> ReceiverPage:
    """List the subscribers of a channel by name."""
    return _receivers(call, channel.value, limit, cursor)


def _receivers(call: Call, channel: str, limit: int, cursor: str | None) -> ReceiverPage:
    purpose = f"receivers {channel}"
    rows, following = repository.receivers(call.connection, channel, limit, begins_after(cursor, purpose))
    items = [ReceiverOut(id=row.id, name=row.name, email=row.email, by_mail=row.by_mail) for row in rows]
    return ReceiverPage(channel=channel, items=items, next_cursor=following.encode(purpose) if following else None)


@router.governed("PUT", "/notifications/receivers/{channel}", OnOrganization("manage_members"), Audit.changes)
def put_receivers(call: Call, channel: Channel, body: ReceiversIn) -> ReceiverPage:
    """Subscribe members to a channel or unsubscribe them; returns the first page of subscribers."""
    for place, receiver in enumerate(body.receivers):
        member = call.lookup.of("member", receiver.member)
        if member is None:
            raise Invalid(f"receivers.{place}.member: there is no member called {receiver.member!r}")
        _set(call, member, channel.value, receives=receiver.receives, by_mail=receiver.by_mail)
    return _receivers(call, channel.value, DEFAULT_LIMIT, None)
