"""A request inside its transaction: the caller, authorization, and audit records."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NoReturn

from sqlalchemy import Connection

from headgate.access.book import BOOK
from headgate.access.decision import Decision
from headgate.access.explain import level_held
from headgate.access.facts import Subject
from headgate.access.kinds import KINDS, rule_kinds
from headgate.access.narrowing import UNLIMITED, Narrowing
from headgate.access.own import OWN_KINDS, OWN_PATH
from headgate.access.requests import can_be_asked_for
from headgate.access.system import decide_system
from headgate.kit.errors import Denied, NotFound
from headgate.kit.ids import kind_of
from headgate.platform.audit.events import CHANGED, DECIDED, DENIED, READ, Event, record
from headgate.platform.authorization.explanations import explain
from headgate.platform.authorization.facts import Facts
from headgate.platform.authorization.lookup import Lookup, VisibleLookup
from headgate.platform.authorization.names import Viewer
from headgate.platform.authorization.provenance import CredentialOrigin
from headgate.platform.authorization.questions import Question, decide
from headgate.platform.authorization.refusals import asked, listed, refusal
from headgate.platform.unit_of_work.services import Services
from headgate.platform.unit_of_work.work import WorkToken
from headgate.settings.settings import Settings


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller: a member with a token or session, or the operator on the machine itself."""

    member: str
    token: str | None = None
    narrowing: Narrowing = UNLIMITED
    operator: bool = False
    session: str | None = None
    seen: datetime | None = None
    """When the use of the token or session was last recorded, if ever."""
    work: WorkToken | None = None
    """The work of a work token, which only the catalog accepts."""
    system: bool = False
    """Whether the platform itself is the caller, for no member."""
    tainted: bool = True
    """Whether somebody else may know the token or session."""

    @property
    def author(self) -> str | None:
        """The member recorded as the author of changes; None if the caller is not a member."""
        return None if self.system else self.member

    @property
    def origin(self) -> CredentialOrigin:
        """The origin of a credential created in this call."""
        return CredentialOrigin(self.session or self.token, self.tainted)


SYSTEM = Caller("system", system=True)
"""Maintenance: not a member. Its permissions are in headgate.access.system."""

LAKE = frozenset({"layer", "table", "volume"})
"""Kinds whose names are unique."""

OPERATOR = Caller("operator", operator=True)
WORKER = Caller("worker", seen=datetime.max.replace(tzinfo=UTC))
"""A worker: not a member, so every authorization is denied."""


@dataclass(slots=True)
class Recorded:
    """Deferred audit records of a call, and response headers."""

    denials: list[Event] = field(default_factory=list)
    reads: list[Event] = field(default_factory=list)
    cookies: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)


class Call:
    """The context of a route's function."""

    def __init__(
        self, connection: Connection, now: datetime, caller: Caller, services: Services, request_id: str | None = None
    ) -> None:
        self.connection, self.now, self.services, self.request_id = connection, now, services, request_id
        self.caller = caller
        self.recorded = Recorded()

    @property
    def settings(self) -> Settings:
        """The settings of this installation."""
        return self.services.settings

    @cached_property
    def facts(self) -> Facts:
        """Facts as of this transaction."""
        return Facts(self.connection, self.now)

    @cached_property
    def lookup(self) -> Lookup:
        """Resolves names among the resources that the caller sees."""
        if self.caller.operator:
            return Lookup(self.connection)
        return VisibleLookup(self.connection, Viewer(self.caller.member, self.now, self.caller.narrowing))

    @cached_property
    def subject(self) -> Subject:
        """The caller as the subject of decisions."""
        if self.caller.operator:
            plan = self.facts.organization().plan
            return Subject(self.caller.member, "operator", self.now, plan=plan, operator=True, name="the operator")
        if self.caller.system:
            # Maintenance is not a member, is not in the group All and has no plan, so the rule tables do not apply to
            # it.
            raise Denied("Maintenance may only change the files of tables")
        subject = self.facts.subject(self.caller.member)
        assert subject is not None  # noqa: S101 - the caller was identified in this transaction
        return subject

    def event(self, name: str, *, allowed: bool, **more: Any) -> Event:
        """An audit event about this call."""
        return Event(
            self.now,
            name,
            allowed,
            actor_id=self.caller.member,
            token_id=self.caller.token,
            request_id=self.request_id,
            **more,
        )

    def record(self, event: Event) -> None:
        """Write an event in the transaction of its change."""
        record(self.connection, [event])

    def record_change(
        self,
        decision: Decision,
        action: str,
        kind: str,
        resource: str | None,
        *,
        before: dict[str, Any] | None,
        after: dict[str, Any],
    ) -> None:
        """Record a change, with the paths that allowed it and the state before."""
        via = list(decision.via)
        about = self.event(
            CHANGED, allowed=True, action=action, kind=kind, resource_id=resource, via=via, before=before, after=after
        )
        self.record(about)

    def note_read(self, action: str, kind: str, resource: str | None, **more: Any) -> None:
        """Record a read of a resource, if the settings require it."""
        if self.settings.audit.reads == "all":
            event = self.event(READ, allowed=True, action=action, kind=kind, resource_id=resource, **more)
            self.recorded.reads.append(event)

    def note_data(self, action: str, kind: str, resource: str, decision: Decision, **what: Any) -> None:
        """Record a read of data, regardless of the settings for other reads."""
        via = list(decision.via)
        more = {"action": action, "kind": kind, "resource_id": resource, "via": via, "after": what}
        self.recorded.reads.append(self.event(READ, allowed=True, **more))

    def note_decision(self, question: Question, decision: Decision) -> None:
        """Record a decision that returns data or was denied on request."""
        about = self.event(
            DECIDED,
            allowed=decision.allowed,
            action=question.action,
            kind=question.kind,
            resource_id=question.resource,
            via=list(decision.via),
            after={"member": question.member},
        )
        self.recorded.reads.append(about)

    def decide(self, action: str, kind: str, resource: str | None) -> Decision:
        """Decide whether the caller has an action."""
        if self.caller.system:
            return decide_system(action, kind, resource, self.caller.narrowing if self.caller.work else None)
        if self.caller.operator:
            return BOOK.decide(self.subject, action, self.facts.thing(resource))
        question = Question(self.caller.member, action, kind, resource, narrowing=self.caller.narrowing)
        return decide(self.connection, question, self.now)

    def may_handle(self, action: str, kind: str, holder: str | None) -> bool:
        """Whether the caller may do an action on a member's property; with a narrowed token, only on their own."""
        decision = BOOK.decide(self.subject, action, OWN_KINDS[kind](holder=holder))
        limits = self.caller.narrowing
        reaches_others = limits.only is None and limits.permits_action("manage_members", self.now)
        return decision.allowed and (OWN_PATH in decision.via or reaches_others)

    def may_see(self, resource: str) -> bool:
        """Whether the caller may know that a resource exists."""
        kind = kind_of(resource)
        if kind is None or kind not in KINDS:
            return False
        actions = {BOOK.tables[rule_kind].listed_by for rule_kind in rule_kinds(kind)} | {"restore"}
        return any(self.decide(action, kind, resource) for action in sorted(actions - {""}))

    def require(self, action: str, kind: str, resource: str | None) -> Decision:
        """The decision if it allows; otherwise raise a refusal that reveals only what the caller may know."""
        decision = self.decide(action, kind, resource)
        if not decision:
            self.refuse(action, kind, resource)
        return decision

    def note_denial(self, action: str, kind: str, resource: str | None) -> None:
        """Record a refusal."""
        self.recorded.denials.append(self.event(DENIED, allowed=False, action=action, kind=kind, resource_id=resource))

    def note_refusal(self, action: str, parameters: dict[str, Any]) -> None:
        """Record a refusal by a route, unless it was already recorded in more detail."""
        if self.recorded.denials or not self.caller.member or self.caller is WORKER:
            return
        named = (value for name, value in parameters.items() if name.endswith("_id") and isinstance(value, str))
        resource = next((identifier for identifier in named if kind_of(identifier)), None)
        self.note_denial(action, (kind_of(resource) if resource else "") or "", resource)

    def hide(self, action: str, kind: str, resource: str | None) -> NoReturn:
        """Respond as for a missing resource, and record the attempt."""
        self.note_denial(action, kind, resource)
        raise NotFound

    def refuse(self, action: str, kind: str, resource: str | None) -> NoReturn:
        """Refuse: 403 with the reasons to callers who may see the resource, otherwise 404."""
        self.note_denial(action, kind, resource)
        if kind not in {"organization", "member"} and (resource is None or not self.may_see(resource)):
            raise NotFound
        raise Denied(**self.explanation(action, kind, resource))

    def explanation(self, action: str, kind: str, resource: str | None) -> dict[str, Any]:
        """Why the caller may not do it, and who could change that; also readable by programs."""
        resource_facts = self.facts.thing(resource)
        what = asked(action, resource_facts)
        if self.caller.system:
            return {"detail": f"Maintenance may not {what}"}
        if self.caller.operator:
            return {"detail": f"The operator may not {what}; act as a member: set HEADGATE_TOKEN to their token"}
        full = Question(self.caller.member, action, kind, resource)
        is_narrowed = self.caller.narrowing.is_narrowed
        if is_narrowed and decide(self.connection, full, self.now):
            return {"detail": f"This token is restricted and may not {what}; use a token without restrictions"}
        remedies = explain(self.facts, full, self.subject).ways
        detail = refusal(action, resource_facts, remedies)
        if resource_facts is not None and resource_facts.kind in LAKE:
            detail += f". You have {level_held(self.subject, resource_facts)}"
        body = {"detail": detail, "action": action, "ways": listed(remedies)}
        if is_narrowed or not can_be_asked_for(action, kind):
            return body
        name = f"{kind}:{resource_facts.name}" if resource_facts is not None and kind in LAKE else resource
        return {**body, "ask": "POST /api/access/requests", "resource": name}
