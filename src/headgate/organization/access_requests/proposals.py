"""Proposals: changes that a member may make and that would fulfil a request, and the members who could make them.

A change is planned for the member who would make it, and laid over the tables to see its effect; nothing is written.
The number of tried changes is limited, and they concern one resource.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from headgate.access.book import BOOK
from headgate.access.facts import Subject
from headgate.access.kinds import rule_kinds, stored_kind
from headgate.access.sql import mask, rows, where
from headgate.kit.clock import iso
from headgate.kit.database import bound, fetch
from headgate.kit.errors import Problem
from headgate.organization.access.changes.delta import Delta
from headgate.organization.access.changes.plans import Plan, plan
from headgate.organization.access.changes.schemas import Grant
from headgate.organization.access.changes.targets import Targets
from headgate.organization.access_requests.candidates import Candidate, candidates
from headgate.platform.authorization.facts import Facts
from headgate.platform.authorization.questions import check
from headgate.platform.authorization.who_can import who_can
from headgate.platform.unit_of_work.call import Call

MAX_PROPOSALS = 12
MAX_TOLD = 100
MAX_ENDS = 3
ADMINS_HAVE = ("ask_about_members", "organization", "organization")
"""What only admins may do."""


@dataclass(frozen=True, slots=True)
class RequestedAccess:
    """The requested action on a resource for a member."""

    member: str
    action: str
    resource: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change that would fulfil a request, as a sentence, and how many other members would gain access by it."""

    change: Any
    sentence: str
    others: int
    takes_end: bool


class AccessPreview:
    """Members' actions on a resource, before and after a change."""

    def __init__(self, connection: Connection, now: datetime) -> None:
        self.connection, self.now = connection, now
        self._known: dict[str, dict[str, frozenset[str]]] = {}

    def _bits(self, thing: Any, delta: Delta | None, open_paths: str, member: str | None = None) -> Sequence[Any]:
        """All members, or one, with their open paths to a resource, optionally after a change."""
        prefix, parameters = delta.overlay(self.connection.dialect.name) if delta else ("", {})
        chosen = "TRUE" if thing.kind == "organization" else "r.id = :asked_id"
        only = "m.id = :asked_member" if member else "TRUE"
        text = (
            f"{prefix}SELECT m.id, {open_paths} FROM {rows(thing.kind)} "
            f"WHERE {where(thing.kind)} AND {chosen} AND {only}"
        )
        more = {"asked_id": thing.id, "asked_member": member, "now": bound(self.connection, self.now)}
        return fetch(self.connection, text, {**parameters, **more})

    def allowed(self, thing: Any, delta: Delta | None) -> dict[str, frozenset[str]]:
        """The actions on a resource of every member who has any, optionally after a change."""
        result = self._bits(thing, delta, mask(thing.kind))
        return {who: frozenset(BOOK.allowed_actions(thing.kind, bits)) for who, bits in result if bits}

    def gives(self, asked: RequestedAccess, thing: Any, delta: Delta) -> bool:
        """Whether the requester has the action after a change."""
        paths = mask(thing.kind, BOOK, frozenset({asked.action}))
        return any(bits for _, bits in self._bits(thing, delta, paths, asked.member))

    def _before(self, thing: Any) -> dict[str, frozenset[str]]:
        if thing.id not in self._known:
            self._known[thing.id] = self.allowed(thing, None)
        return self._known[thing.id]

    def others(self, asked: RequestedAccess, things: list[Any], delta: Delta) -> int:
        """The number of other members who would gain access to these resources."""
        gaining: set[str] = set()
        for thing in things:
            before, after = self._before(thing), self.allowed(thing, delta)
            gaining |= {who for who, actions in after.items() if actions - before.get(who, frozenset())}
        return len(gaining - {asked.member})


def is_admin(call: Call) -> bool:
    """Whether the caller is an admin, within the limits of their token."""
    return bool(call.decide(*ADMINS_HAVE))


def proposals(call: Call, asked: RequestedAccess) -> list[Proposal]:
    """The changes with which the caller could fulfil a request, narrowest first."""
    thing = call.facts.thing(asked.resource)
    foresight = AccessPreview(call.connection, call.now)
    result = []
    for number, (candidate, planned) in enumerate(_open_to(call, foresight, asked)):
        things = {thing.id: thing}
        if planned.thing.kind not in {"organization", "member"}:
            things[planned.thing.id] = planned.thing
        others = foresight.others(asked, [*things.values()], planned.delta)
        takes_end = isinstance(candidate.change, Grant)
        proposal = Proposal(candidate.change, candidate.sentence, others, takes_end)
        result.append(((candidate.breadth, others, number), proposal))
    return [proposal for _, proposal in sorted(result, key=lambda value: value[0])][:MAX_PROPOSALS]


def could_answer(call: Call, asked: RequestedAccess) -> bool:
    """Whether the caller could fulfil a request; also true if the requester already has the action."""
    return next(_open_to(call, AccessPreview(call.connection, call.now), asked), None) is not None


def _open_to(call: Call, foresight: AccessPreview, asked: RequestedAccess) -> Iterator[tuple[Candidate, Plan]]:
    """The planned candidates that the caller may make and that fulfil the request."""
    member, thing = call.facts.subject(asked.member), call.facts.thing(asked.resource)
    if member is None or thing is None:
        return
    targets = Targets(call.facts, call.subject, call.caller.narrowing)
    knows_all, climbed = is_admin(call), set()
    for candidate in candidates(call.facts, member, asked.action, thing):
        is_told = candidate.context is None or knows_all or candidate.context in call.subject.contexts
        if not is_told or candidate.ladder in climbed:
            continue
        for tried in _with_ends(candidate, call.facts, call.subject):
            planned = _planned(tried.change, targets)
            if planned and planned.decision and foresight.gives(asked, thing, planned.delta):
                climbed |= {tried.ladder} - {None}
                yield tried, planned
                break


def _with_ends(candidate: Candidate, facts: Facts, actor: Subject) -> Iterator[Candidate]:
    """A candidate; for a grant, also with the expiry of the actor's own grants, which it must not exceed."""
    yield candidate
    if isinstance(candidate.change, Grant):
        held = getattr(facts.thing(candidate.change.resource), "reach", ())
        ends = {grant.expires for grant in held if grant.grantee in actor.keys and grant.expires}
        for end in sorted((end for end in ends if end > facts.now), reverse=True)[:MAX_ENDS]:
            change = candidate.change.model_copy(update={"expires": end})
            yield Candidate(change, f"{candidate.sentence}, until {iso(end)}", candidate.breadth, candidate.ladder)


def _planned(change: Any, targets: Targets) -> Plan | None:
    """A planned change; None if it is invalid in the current state or its target is hidden from the actor."""
    try:
        return plan(change, targets)
    except Problem:
        return None


def recipients(facts: Facts, asked: RequestedAccess) -> tuple[str, ...]:
    """The members to notify of a request: admins and members who may fulfil it, if they see the resource."""
    connection, now = facts.connection, facts.now
    powers = {(ADMINS_HAVE[0], ADMINS_HAVE[2]): None, **dict.fromkeys(_powers(facts, asked))}
    values: dict[str, None] = {}
    for action, target in powers:
        people = who_can(connection, action, target, now, limit=MAX_TOLD)
        values.update(dict.fromkeys(person.id for person in people))
    values.pop(asked.member, None)
    return tuple(
        value for value in values if _sees(connection, value, asked.resource, facts.thing(asked.resource), now)
    )


def _sees(connection: Connection, member: str, resource: str, thing: Any, now: datetime) -> bool:
    listing = {BOOK.tables[kind].listed_by for kind in rule_kinds(stored_kind(thing.kind))} - {""}
    return not listing or any(check(connection, member, action, resource, now) for action in sorted(listing))


def _powers(facts: Facts, asked: RequestedAccess) -> Iterator[tuple[str, str]]:
    """The actions and resources of which a member needs one to fulfil the request."""
    member, thing = facts.subject(asked.member), facts.thing(asked.resource)
    if member is None or thing is None:
        return
    everyone = Subject("operator", "operator", facts.now, plan=facts.organization().plan, operator=True)
    targets, foresight = Targets(facts, everyone), AccessPreview(facts.connection, facts.now)
    climbed: set[str | None] = set()
    for candidate in candidates(facts, member, asked.action, thing):
        planned = None if candidate.ladder in climbed else _planned(candidate.change, targets)
        if planned and foresight.gives(asked, thing, planned.delta):
            climbed |= {candidate.ladder} - {None}
            yield planned.action, planned.thing.id or ""
