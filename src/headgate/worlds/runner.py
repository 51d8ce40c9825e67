"""`headgate access test`: a world in a fresh database, and its assertions answered by the product's own readers."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection

from headgate.access.kinds import stored_kind
from headgate.access.narrowing import UNLIMITED, Narrowing
from headgate.access.world_specs import Check, ListCheck, TokenSpec, WhoCheck, World
from headgate.kit.clock import now as clock
from headgate.kit.database import Database
from headgate.platform.authorization.explanations import explain_in_words
from headgate.platform.authorization.facts import Facts
from headgate.platform.authorization.lookup import Lookup
from headgate.platform.authorization.questions import Question, decide
from headgate.platform.authorization.repository import Query, page
from headgate.platform.authorization.who_can import members_for, who_can
from headgate.schema import METADATA
from headgate.worlds.loader import load

_PAGE = 200


@dataclass(frozen=True, slots=True)
class Result:
    """One assertion, and whether it held."""

    line: int
    passed: bool
    text: str
    explanation: tuple[str, ...] = ()


def run_world(world: World) -> list[Result]:
    """Every assertion of a world, evaluated in a database of its own."""
    database = Database("sqlite://")
    try:
        METADATA.create_all(database.engine)
        return run_in(database, world)
    finally:
        database.close()


def run_in(database: Database, world: World) -> list[Result]:
    """Every assertion of a world, evaluated in a database without members, which it fills."""
    now = world.now or clock()
    database.write(lambda connection: load(connection, world, now))
    with database.read() as connection:
        return list(_Runner(connection, world, now).run())


class _Runner:
    def __init__(self, connection: Connection, world: World, now: datetime) -> None:
        self.connection, self.world, self.now = connection, world, now
        self.lookup = Lookup(connection)

    def run(self) -> Iterator[Result]:
        for check in self.world.checks:
            yield from self._check(check)
        for listed in self.world.lists:
            yield self._list(listed)
        for who in self.world.who_can:
            yield self._who(who)

    def _check(self, check: Check) -> Iterator[Result]:
        resource = self.lookup.of(check.kind, check.name)
        target = check.kind if check.name is None else f"{check.kind}:{check.name}"
        for action, expected in check.actions.items():
            question = Question(
                self.lookup.of("member", check.member),
                action,
                check.kind,
                resource,
                check.state,
                narrowing(self.lookup, check.token),
            )
            allowed = decide(self.connection, question, self.now).allowed
            who = check.member or "the trigger"
            text = f"{who} {'can' if expected else 'cannot'} {action} {target}"
            if allowed == expected:
                yield Result(check.line, passed=True, text=text)
            else:
                reasons = explain_in_words(Facts(self.connection, self.now), question)
                yield Result(check.line, passed=False, text=text, explanation=tuple(reasons))

    def _list(self, check: ListCheck) -> Result:
        stored = stored_kind(check.kind)
        member = self.lookup.of("member", check.member)
        assert member is not None  # noqa: S101 - the reader of worlds has checked it
        limits = narrowing(self.lookup, check.token)
        results: list[str] = []
        if limits.permits_action(check.action, self.now):
            query = Query(member, stored, self.now, limit=_PAGE, action=check.action, narrowing=limits)
            results = members_for(self.connection, query) if stored == "member" else self._all_names(query)
        return _compare(
            check.line, f"{check.member} can {check.action} these of kind {check.kind}", results, check.expect
        )

    def _all_names(self, query: Query) -> list[str]:
        names: list[str] = []
        rows, after = page(self.connection, query)
        while True:
            names += [row.name for row in rows]
            if after is None:
                return names
            rows, after = page(self.connection, replace(query, after=after))

    def _who(self, check: WhoCheck) -> Result:
        resource = self.lookup.of(check.kind, check.name) or ""
        people = who_can(self.connection, check.action, resource, self.now, limit=len(self.world.members) + 1)
        target = check.kind if check.name is None else f"{check.kind}:{check.name}"
        return _compare(
            check.line, f"these can {check.action} {target}", [person.name for person in people], check.expect
        )


def narrowing(lookup: Lookup, token: TokenSpec | None) -> Narrowing:
    """The limits that a token of a world has."""
    if token is None:
        return UNLIMITED
    if token.only is None:
        return Narrowing(token.read_only, expires=token.expires)
    only: set[str] = set()
    layers: set[str] = set()
    for ref in token.only:
        item, layer = lookup.table(ref)
        only.update(result for result in (item if "." in ref else layer,) if result)
        layers.update(result for result in (layer,) if result and "." in ref)
    return Narrowing(token.read_only, frozenset(only), frozenset(layers), token.expires)


def _compare(line: int, text: str, result: list[str], expected: list[str]) -> Result:
    too_many = [f"not expected: {name}" for name in result if name not in expected]
    too_few = [f"expected, but absent: {name}" for name in expected if name not in result]
    passed = not too_many and not too_few
    return Result(line, passed, f"{text}: {', '.join(expected) or 'none'}", (*too_many, *too_few))
