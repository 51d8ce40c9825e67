"""Endpoints for sign-in, sign-out, passwords and the caller's sessions."""

from dataclasses import dataclass
from typing import Annotated, NoReturn

from fastapi import Path, Request

from headgate.kit.clock import now as clock
from headgate.kit.errors import Conflict, LinkSpent, NotFound, PasswordEnded, Problem, TooManyAttempts, WrongPassword
from headgate.kit.names import MAX_LENGTH, email_key
from headgate.organization.sessions import accounts, passwords, service, throttle
from headgate.organization.sessions.cookies import device_cookie, is_proof, session_cookie, set_cookie, set_device
from headgate.organization.sessions.schemas import (
    Confirmation,
    LinkWanted,
    PasswordByLink,
    PasswordChange,
    SessionOut,
    Sessions,
    SessionsEnded,
    SignedInAs,
    SignIn,
    SignInLinkIn,
)
from headgate.platform.audit.events import Event, record
from headgate.platform.authorization.provenance import CredentialOrigin
from headgate.platform.directory.repository import member_names
from headgate.platform.http.authentication import caller, refuse_cross_site
from headgate.platform.http.guards import OwnCredentials, Public, SignedIn
from headgate.platform.http.routes import Audit, GovernedRouter
from headgate.platform.mail.outbox import enqueue
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.services import Services
from headgate.settings.settings import Settings

router = GovernedRouter(prefix="/api", tags=["sign-in"])

OPENED, FAILED, ENDED, PASSWORD = "session.opened", "session.refused", "session.ended", "password.changed"


def browser(request: Request) -> service.Browser:
    """The recorded facts about the calling browser."""
    agent = "".join(c if c.isprintable() else " " for c in request.headers.get("user-agent", ""))
    return service.Browser(agent[:MAX_LENGTH], request.client.host[:64] if request.client else "")


def sign_in_member(call: Call, request: Request, member: str, method: str, origin: CredentialOrigin) -> SignedInAs:
    """Open a session for a member with this `origin`, and set its cookie."""
    settings = call.settings.sign_in
    secret = service.open_session(call.connection, member, method, browser(request), call.now, settings, origin)
    cookie = set_cookie(request, session_cookie(request), secret, settings.session_days * 86400)
    call.recorded.cookies += [cookie, set_device(request, call.services.device_key, member)]
    details = {"method": method, "origin": origin.id, "tainted": origin.tainted}
    call.record(Event(call.now, OPENED, True, member, request_id=call.request_id, after=details))  # noqa: FBT003
    return SignedInAs(id=member, name=member_names(call.connection, [member])[member])


@dataclass(frozen=True, slots=True)
class Attempt:
    """A password that was verified before the transaction."""

    member: str
    stored: str
    fresh: str | None
    of_account: throttle.Counter
    of_address: throttle.Counter


def _attempt(services: Services, request: Request, parameters: dict[str, SignIn]) -> Attempt:
    """Verify a password outside of any transaction. An unknown account takes as long as a wrong password."""
    body, now, settings = parameters["body"], clock(), services.settings
    refuse_cross_site(request, settings, must_tell=False)
    with services.database.read() as connection:
        account = accounts.by_email(connection, body.email)
        proof = request.cookies.get(device_cookie(request), "")
        known_device = is_proof(services.device_key, account.id if account else None, proof)
        of_account = throttle.of_account(email_key(body.email), settings.sign_in, known_browser=known_device)
        of_address = throttle.of_address(browser(request).address, settings.sign_in)
    services.database.write(lambda connection: throttle.take(connection, (of_account, of_address), now))
    password = body.password.get_secret_value()
    stored = account.password if account else None
    if not passwords.is_right(stored, password) or account is None or stored is None:
        _failed(services, request, account.id if account else None)
    if account.password_ended_at is not None:
        _failed(services, request, account.id, PasswordEnded(_choose_another(settings)))
    fresh = passwords.hashed(password) if passwords.needs_new_hash(stored) else None
    return Attempt(account.id, stored, fresh, of_account, of_address)


def _choose_another(settings: Settings) -> str:
    """The message for a correct password that has expired."""
    how = "request a link by mail with `headgate login --forgot-password`, or POST /api/password/links"
    if settings.mail.host is None:
        how = "ask another owner for a link by `headgate member reset-password`, or the operator for a token"
    return (
        "Your password was deleted: it was set with an invitation, link or reset that another person requested, "
        f"and you have become an owner since. Choose a new one: {how}"
    )


def _failed(services: Services, request: Request, member: str | None, problem: Problem | None = None) -> NoReturn:
    """Record a failure; the response is the same for an unknown account and a wrong password."""
    details = {"address": browser(request).address}
    event = Event(clock(), FAILED, False, member, request_id=request.scope.get("headgate.request_id"), after=details)  # noqa: FBT003
    services.database.write(lambda connection: record(connection, [event]))
    raise problem or WrongPassword


@router.governed(
    "POST",
    "/sign-in",
    Public("signs in by a password"),
    Audit.changes,
    errors=(WrongPassword, PasswordEnded, TooManyAttempts),
    prepare=_attempt,
)
def sign_in(call: Call, request: Request, body: SignIn, prepared: Attempt) -> SignedInAs:
    """Sign in with address and password. The session is stored in a cookie."""
    origin = accounts.origin_of_password(call.connection, prepared.member, prepared.stored)
    if origin is None:
        raise WrongPassword
    throttle.reset(call.connection, (prepared.of_account,))
    throttle.give_back(call.connection, (prepared.of_address,))
    if prepared.fresh:
        accounts.replace_hash(call.connection, prepared.member, prepared.stored, prepared.fresh)
    return sign_in_member(call, request, prepared.member, "password", origin)


def _count_link(services: Services, request: Request, parameters: dict[str, LinkWanted]) -> throttle.Counter:
    settings = services.settings.sign_in
    counter = throttle.of_address(browser(request).address, settings, "link address")
    with services.database.read() as connection:
        throttle.check(connection, (counter,), clock())
    return counter


@router.governed(
    "POST",
    "/sign-in/links",
    Public("asks for a sign-in link by mail"),
    Audit.changes,
    errors=(TooManyAttempts,),
    prepare=_count_link,
)
def send_sign_in_link(call: Call, body: LinkWanted, prepared: throttle.Counter) -> Confirmation:
    """Request a sign-in link by mail. The response is the same if no member has the address."""
    return _send_link(call, body, prepared, "sign_in")


@router.governed(
    "POST",
    "/password/links",
    Public("asks for a link by mail to choose a new password"),
    Audit.changes,
    errors=(TooManyAttempts,),
    prepare=_count_link,
)
def send_password_link(call: Call, body: LinkWanted, prepared: throttle.Counter) -> Confirmation:
    """Request a link to choose a new password by mail. The response is the same if no member has the address. The old
    password stays valid until the link is used.
    """
    return _send_link(call, body, prepared, "password")


def _send_link(call: Call, body: LinkWanted, prepared: throttle.Counter, purpose: str) -> Confirmation:
    if call.settings.mail.host is None:
        what = "a sign-in link" if purpose == "sign_in" else "a password reset"
        return Confirmation(
            detail=f"Mail is not configured on this installation; ask an admin for {what}. Owners ask another owner"
        )
    of_account = throttle.of_account(
        email_key(body.email), call.settings.sign_in, known_browser=False, purpose="link account"
    )
    answer = Confirmation(detail="If this is the address of a member, a link was sent to it")
    throttle.count(call.connection, (prepared,), call.now)
    try:
        throttle.check(call.connection, (of_account,), call.now)
    except TooManyAttempts:
        return answer
    throttle.count(call.connection, (of_account,), call.now)
    # The account is looked up when the mail is sent, so the response time is the same with and without one.
    enqueue(call.connection, call.services.sealer, purpose, body.email.strip(), "", None, call.now)
    return answer


@router.governed("POST", "/sign-in/by-link", Public("signs in by a link"), Audit.changes, errors=(LinkSpent,))
def sign_in_by_link(call: Call, request: Request, body: SignInLinkIn) -> SignedInAs:
    """Sign in with a one-time sign-in link."""
    used = service.use_link(call.connection, body.link.get_secret_value(), "sign_in", call.now)
    return sign_in_member(call, request, used.member, "link", used.origin)


def _hash_by_link(services: Services, request: Request, parameters: dict[str, PasswordByLink]) -> str:
    """Hash the new password if the link is valid."""
    body = parameters["body"]
    refuse_cross_site(request, services.settings, must_tell=False)
    with services.database.read() as connection:
        member = service.member_of_link(connection, body.link.get_secret_value(), "password", clock())
        account = accounts.by_id(connection, member)
    assert account is not None  # noqa: S101 - the link is a member's
    password = body.password.get_secret_value()
    passwords.check_strength(password, [account.name, account.email or ""])
    return passwords.hashed(password)


@router.governed(
    "POST",
    "/password/by-link",
    Public("chooses a password by a link"),
    Audit.changes,
    errors=(LinkSpent,),
    prepare=_hash_by_link,
)
def choose_password_by_link(call: Call, request: Request, body: PasswordByLink, prepared: str) -> SignedInAs:
    """Choose a password with a one-time link. All other sessions of the account end."""
    used = service.use_link(call.connection, body.link.get_secret_value(), "password", call.now)
    _set_password(call, used.member, prepared, used.origin)
    service.end(call.connection, used.member, call.now)
    return sign_in_member(call, request, used.member, "link", used.origin)


def _set_password(call: Call, member: str, stored: str, origin: CredentialOrigin) -> None:
    service.set_password(call.connection, member, stored, origin, call.now)
    details = {"origin": origin.id, "tainted": origin.tainted}
    changed = Event(call.now, PASSWORD, True, member, request_id=call.request_id, resource_id=member, after=details)  # noqa: FBT003
    call.record(changed)


@dataclass(frozen=True, slots=True)
class NewPassword:
    """The hash of a new password, and of the one it replaces."""

    stored: str | None
    fresh: str
    counter: throttle.Counter


def _hash_own(services: Services, request: Request, parameters: dict[str, PasswordChange]) -> NewPassword:
    body, now, settings = parameters["body"], clock(), services.settings
    with services.database.read() as connection:
        who = caller(connection, request, settings, now)
        account = accounts.by_id(connection, who.member)
        if account is None:
            raise NotFound
    counter = throttle.of_account(who.member, settings.sign_in, known_browser=True, purpose="own password")
    services.database.write(lambda connection: throttle.take(connection, (counter,), now))
    current = body.current.get_secret_value() if body.current else ""
    works = account.password is not None and account.password_ended_at is None
    if works and not passwords.is_right(account.password, current):
        _failed(services, request, who.member)
    password = body.password.get_secret_value()
    passwords.check_strength(password, [account.name, account.email or ""])
    return NewPassword(account.password, passwords.hashed(password), counter)


@router.governed(
    "POST",
    "/me/password",
    OwnCredentials("changes their own password"),
    Audit.changes,
    errors=(WrongPassword, TooManyAttempts, Conflict),
    prepare=_hash_own,
)
def change_password(call: Call, body: PasswordChange, prepared: NewPassword) -> SessionsEnded:
    """Change the caller's password. All other sessions end. An expired password need not be given."""
    member = call.caller.member
    account = accounts.by_id(call.connection, member)
    if account is None or account.password != prepared.stored:
        raise Conflict("The password was changed concurrently; try again")
    throttle.reset(call.connection, (prepared.counter,))
    _set_password(call, member, prepared.fresh, call.caller.origin)
    return SessionsEnded(ended=service.end(call.connection, member, call.now, but=call.caller.session))


@router.governed("POST", "/sign-out", SignedIn("ends their own session"), Audit.changes, errors=[Conflict])
def sign_out(call: Call, request: Request) -> SessionsEnded:
    """End the current session."""
    if call.caller.session is None:
        raise Conflict("You authenticated with a token, not a session; revoke the token to end it")
    ended = service.end(call.connection, call.caller.member, call.now, only=call.caller.session)
    call.recorded.cookies.append(set_cookie(request, session_cookie(request), "", 0))
    call.record(call.event(ENDED, allowed=True, resource_id=call.caller.session))
    return SessionsEnded(ended=ended)


@router.governed("GET", "/me/sessions", OwnCredentials("sees their own sessions"), Audit.nothing)
def list_sessions(call: Call) -> Sessions:
    """List the caller's active sessions."""
    rows = service.alive(call.connection, call.caller.member, call.now, call.settings.sign_in)
    columns = ("id", "method", "agent", "address", "created_at", "last_seen_at", "expires_at", "tainted")
    return Sessions(
        items=[
            SessionOut(**{name: row[name] for name in columns}, current=row["id"] == call.caller.session)
            for row in rows
        ]
    )


@router.governed("DELETE", "/me/sessions/{session_id}", OwnCredentials("ends one of their own sessions"), Audit.changes)
def end_session(call: Call, session_id: Annotated[str, Path(pattern="^ses_[0-9a-z]{20}$")]) -> SessionsEnded:
    """End one of the caller's sessions."""
    ended = service.end(call.connection, call.caller.member, call.now, only=session_id)
    if not ended:
        call.hide("end_session", "session", session_id)
    call.record(call.event(ENDED, allowed=True, resource_id=session_id))
    return SessionsEnded(ended=ended)


@router.governed("DELETE", "/me/sessions", OwnCredentials("ends their other sessions"), Audit.changes)
def end_other_sessions(call: Call) -> SessionsEnded:
    """End all of the caller's sessions except the current one."""
    ended = service.end(call.connection, call.caller.member, call.now, but=call.caller.session)
    call.record(call.event(ENDED, allowed=True, after={"ended": ended}))
    return SessionsEnded(ended=ended)
