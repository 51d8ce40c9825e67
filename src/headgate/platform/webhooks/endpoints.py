"""Webhook endpoints."""

from typing import Any

from headgate.kit.call_errors import CallRefused
from headgate.kit.errors import Invalid, NotFound
from headgate.outgoing.client import check_url
from headgate.platform.http.guards import MemberOnOrganization, OnOrganization
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.unit_of_work.call import Call
from headgate.platform.webhooks import service
from headgate.platform.webhooks.schemas import WebhookIn, WebhookOut, WebhookSet

router = GovernedRouter(prefix="/api/webhook", tags=["notifications"])
SET, REMOVED = "webhook.set", "webhook.removed"


@router.governed("GET", "", OnOrganization("manage_settings"), Audit.nothing)
def get_webhook(call: Call) -> WebhookOut:
    """Get the webhook and the result of its last delivery."""
    return WebhookOut(**_shown(call))


@router.governed("PUT", "", MemberOnOrganization("manage_settings"), Audit.changes)
def put_webhook(call: Call, body: WebhookIn) -> WebhookSet:
    """Set the webhook. It gets the notices about runs that the caller may see, while the caller is an admin."""
    try:
        check_url(body.url, call.settings.outgoing)
    except CallRefused as error:
        raise Invalid(f"url: {error}") from None
    secret = service.set_webhook(call.connection, call.services.sealer, body.url, call.caller.member, call.now)
    webhook = _shown(call)
    call.record(call.event(SET, allowed=True, action="manage_settings", kind="organization", after=_told(webhook)))
    return WebhookSet(**webhook, secret=secret)


@router.governed("DELETE", "", OnOrganization("manage_settings"), Audit.changes, errors=[NotFound])
def delete_webhook(call: Call) -> WebhookOut:
    """Delete the webhook and drop pending deliveries."""
    before = _told(_shown(call))
    if not service.remove_webhook(call.connection):
        raise NotFound("There is no webhook; set one with `headgate notifications webhook set URL`")
    call.record(call.event(REMOVED, allowed=True, action="manage_settings", kind="organization", before=before))
    return WebhookOut(**_shown(call))


def _shown(call: Call) -> dict[str, Any]:
    hook = service.current(call.connection)
    last = service.last_delivery(call.connection, hook.id) if hook else None
    return {
        "host": hook.host if hook else None,
        "set_by": hook.set_by if hook else None,
        "set_at": hook.set_at if hook else None,
        "active": bool(hook and service.may_receive(call.connection, hook.set_by_id, call.now)),
        "last_sent_at": last.sent_at if last else None,
        "last_error": last.error if last else None,
    }


def _told(webhook: dict[str, Any]) -> dict[str, Any]:
    return {"host": webhook["host"], "set_by": webhook["set_by"]}
