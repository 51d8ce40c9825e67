"""One request inside its transaction: who calls, what they may do, and what is to be recorded."""

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
    """Who calls: a member by a token or a session, or the operator on the machine itself."""

    member: str
    token: str | None = None
    narrowing: Narrowing = UNLIMITED
    operator: bool = False
    session: str | None = None
    seen: datetime | None = None
    """When the token or session was noted as used, if it ever was."""
    work: WorkToken | None = None
    """What a work token is for; the catalog alone takes those."""
    system: bool = False
    """Whether the platform itself calls, for no member."""
    tainted: bool = True
    """Whether somebody else may know the token or session."""

    @property
    def author(self) -> str | None:
        """The member who is named as the author of what is changed; None if it is no member."""
        return None if self.system else self.member

    @property
    def origin(self) -> CredentialOrigin:
        """What a credential that is made in this call comes from."""
        return CredentialOrigin(self.session or self.token, self.tainted)


SYSTEM = Caller("system", system=True)
"""Maintenance: no member. What it may is all in headgate.access.system."""

LAKE = frozenset({"layer", "table", "volume"})
"""Kinds whose names stand for one resource each."""

OPERATOR = Caller("operator", operator=True)
WORKER = Caller("worker", seen=datetime.max.replace(tzinfo=UTC))
"""A worker: no member, so that whatever is decided for it is denied."""


@dataclass(slots=True)
class Recorded:
    """What a call wants in the audit log, beside its transaction, and in the headers of its answer."""

    denials: list[Event] = field(default_factory=list)
    reads: list[Event] = field(default_factory=list)
    cookies: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)


class Call:
    """What a route's function works with."""

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
        """Resolves names among what the caller sees."""
        if self.caller.operator:
            return Lookup(self.connection)
        return VisibleLookup(self.connection, Viewer(self.caller.member, self.now, self.caller.narrowing))

    @cached_property
    def subject(self) -> Subject:
        """The caller, as decisions see them."""
        if self.caller.operator:
            plan = self.facts.organization().plan
            return Subject(self.caller.member, "operator", self.now, plan=plan, operator=True, name="the operator")
        if self.caller.system:
            # It is no member: not of the group All, and on no plan. What the rule tables decide is not for it.
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
        """Write an event in this transaction, with the change it tells of."""
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
        """Write that something was changed, by which paths the caller might, and what it was before."""
        via = list(decision.via)
        about = self.event(
            CHANGED, allowed=True, action=action, kind=kind, resource_id=resource, via=via, before=before, after=after
        )
        self.record(about)

    def note_read(self, action: str, kind: str, resource: str | None, **more: Any) -> None:
        """Have a look at a resource recorded, if the settings want that."""
        if self.settings.audit.reads == "all":
            event = self.event(READ, allowed=True, action=action, kind=kind, resource_id=resource, **more)
            self.recorded.reads.append(event)

    def note_data(self, action: str, kind: str, resource: str, decision: Decision, **what: Any) -> None:
        """Have it recorded that data was given out; always, whatever the settings say of other reads."""
        via = list(decision.via)
        more = {"action": action, "kind": kind, "resource_id": resource, "via": via, "after": what}
        self.recorded.reads.append(self.event(READ, allowed=True, **more))

    def note_decision(self, question: Question, decision: Decision) -> None:
        """Have a decision recorded that gives rows of data, or that was asked for and denied."""
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
        """Whether the caller may."""
        if self.caller.system:
            return decide_system(action, kind, resource, self.caller.narrowing if self.caller.work else None)
        if self.caller.operator:
            return BOOK.decide(self.subject, action, self.facts.thing(resource))
        question = Question(self.caller.member, action, kind, resource, narrowing=self.caller.narrowing)
        return decide(self.connection, question, self.now)

    def may_handle(self, action: str, kind: str, holder: str | None) -> bool:
        """Whether the caller may do something to what belongs to a member: by a narrowed token, to their own alone."""
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
        """The decision, if it allows; else a refusal that tells no more than the caller may know."""
        decision = self.decide(action, kind, resource)
        if not decision:
            self.refuse(action, kind, resource)
        return decision

    def note_denial(self, action: str, kind: str, resource: str | None) -> None:
        """Have a refusal recorded."""
        self.recorded.denials.append(self.event(DENIED, allowed=False, action=action, kind=kind, resource_id=resource))

    def note_refusal(self, action: str, parameters: dict[str, Any]) -> None:
        """Have a refusal by a route recorded, unless the refusal itself was recorded with more detail."""
        if self.recorded.denials or not self.caller.member or self.caller is WORKER:
            return
        named = (value for name, value in parameters.items() if name.endswith("_id") and isinstance(value, str))
        resource = next((identifier for identifier in named if kind_of(identifier)), None)
        self.note_denial(action, (kind_of(resource) if resource else "") or "", resource)

    def hide(self, action: str, kind: str, resource: str | None) -> NoReturn:
        """Answer as for something that does not exist, and have the attempt recorded."""
        self.note_denial(action, kind, resource)
        raise NotFound

    def refuse(self, action: str, kind: str, resource: str | None) -> NoReturn:
        """Refuse: 403 with the reasons to whoever may see the resource, 404 to everyone else."""
        self.note_denial(action, kind, resource)
        if kind not in {"organization", "member"} and (resource is None or not self.may_see(resource)):
            raise NotFound
        raise Denied(**self.explanation(action, kind, resource))

    def explanation(self, action: str, kind: str, resource: str | None) -> dict[str, Any]:
        """Why the caller may not, and who could change that; in words that a program can read too."""
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
