"""Over random worlds and random changes: what-if is what happens, the index stays true, and adding never removes."""

import os
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from sqlalchemy import Connection, text

from headgate.access.actions import ROLES, SECURITY_ROLES, SPACE_ROLES
from headgate.access.book import BOOK
from headgate.access.facts import Subject
from headgate.access.kinds import rule_kinds
from headgate.kit.database import Database
from headgate.kit.errors import Problem
from headgate.organization.access.changes import schemas as s
from headgate.organization.access.changes.delta import Delta
from headgate.organization.access.changes.plans import Plan, plan
from headgate.organization.access.changes.reach import stale
from headgate.organization.access.changes.targets import Targets
from headgate.organization.access.what_if import effects
from headgate.platform.authorization.fact_tables import grant_table
from headgate.platform.authorization.facts import Facts
from headgate.platform.authorization.list_index import rebuild, refresh
from headgate.platform.authorization.lookup import Lookup
from tests.support.strategies import seeds, world_of
from tests.support.worlds import NOW, Asked, RawWorld, kinds, names, reload

pytestmark = pytest.mark.both_databases

CHANGES = int(os.environ.get("WORLDS", "20"))
LEVELS = ("viewer", "editor", "manager")

Masks = dict[tuple[str, str, str], frozenset[str]]


def all_allowed(connection: Connection, raw: RawWorld) -> Masks:
    """Everything that everyone can do."""
    asked = Asked(connection)
    found: Masks = {}
    for member in raw["members"]:
        if asked.lookup.of("member", member) is None:
            continue
        for kind in kinds(raw):
            for name in names(raw, kind):
                found[member, kind, name] = frozenset(asked.what_can(member, kind, name))
    return found


def random_change(rng: Random, raw: RawWorld) -> Any:
    """A change of any sort, sensible or not."""
    people = list(raw["members"])
    someone, another = rng.choice(people), rng.choice(people)
    principal = rng.choice((*people, "group:g1", "group:g2", "group:All"))
    data = rng.choice(("layer:gold", "layer:raw", "table:gold.orders", "table:raw.events", "volume:raw.files"))

    def of(*wanted: str) -> str:
        return rng.choice([f"{kind}:{name}" for kind in wanted for name in names(raw, kind)] or ["storage:s0"])

    shareable, owned = of("storage", "data_mart", "destination"), of("storage", "destination", "report", "data_mart")
    mart = owned.startswith("data_mart")
    ownership: Any = rng.choice(("technical", "business")) if mart else "owner"
    space, context = rng.choice(names(raw, "space")), rng.choice(("c1", "c2"))
    flags = {"for_use": rng.random() < 0.5, "for_maintenance": rng.random() < 0.5}
    role: Any = rng.choice(SPACE_ROLES)
    security: Any = rng.choice(SECURITY_ROLES)
    level: Any = rng.choice(LEVELS)
    expires: Any = rng.choice((None, "2026-06-02T00:00:00Z"))
    connection = rng.choice(names(raw, "connection") or ["none"])
    destination = rng.choice(names(raw, "destination"))
    group = rng.choice(("g1", "g2"))
    return rng.choice(
        (
            s.Grant(to=principal, resource=data, level=level, expires=expires),
            s.Grant(to=principal, resource=data, level=level),
            s.Revoke(to=principal, resource=data, level=level),
            s.Share(resource=shareable, **flags),
            s.AddOwner(resource=owned, member=someone, ownership=ownership),
            s.RemoveOwner(resource=owned, member=someone, ownership=ownership),
            s.AttachContext(resource=shareable, context=context),
            s.DetachContext(resource=shareable, context=context),
            s.SetRole(member=someone, role=rng.choice(ROLES)),
            s.SetScope(member=someone, scope="selected", contexts=[context]),
            s.SetScope(member=someone, scope="entire"),
            s.GiveSecurityRole(member=someone, security_role=security),
            s.TakeSecurityRole(member=someone, security_role=security),
            s.JoinGroup(group=group, member=someone),
            s.LeaveGroup(group=group, member=someone),
            s.GiveSpaceRole(space=space, to=principal, space_role=role),
            s.TakeSpaceRole(space=space, to=principal, space_role=role),
            s.ChangeOwner(resource=of("space", "project", "connection"), owner=another),
            s.ChangeSpace(connection=connection, space=space),
            s.DeleteDestination(destination=destination),
            s.RestoreDestination(destination=destination),
            s.RemoveMember(member=someone),
            s.SetPlan(plan=rng.choice(("starter", "growth"))),
        )
    )


def planned(connection: Connection, change: Any) -> Plan | None:
    """The change worked out as the operator could see it, whether or not anyone may make it."""
    operator = Subject("operator", "operator", NOW, operator=True)
    try:
        return plan(change, Targets(Facts(connection, NOW), operator))
    except Problem:
        return None


def apply(connection: Connection, found: Plan) -> None:
    """Make a change as the product does."""
    touched = stale(connection, found.delta)
    found.delta.apply(connection)
    refresh(connection, touched | stale(connection, found.delta))


def index(connection: Connection) -> set[Any]:
    """Everything in the audience index."""
    return {tuple(row) for row in connection.execute(text("SELECT * FROM audience"))}


EXAMPLES = settings(
    max_examples=CHANGES,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.mark.slow
@EXAMPLES
@given(seed=seeds)
def test_what_if_is_what_happens_and_the_index_stays_true(shared_database: Database, seed: int) -> None:
    raw, _ = world_of(seed)
    rng = Random(seed + 1)  # noqa: S311 - a test's own dice
    reload(shared_database, raw)
    for _ in range(6):
        change = random_change(rng, raw)
        with shared_database.read() as connection:
            found = planned(connection, change)
            if found is None:
                continue
            before = all_allowed(connection, raw)
            foretold = effects(connection, found.delta, NOW)
            labels = _labels(connection, raw)
        shared_database.write(lambda c, found=found: apply(c, found))
        with shared_database.read() as connection:
            after = all_allowed(connection, raw)
            kept = index(connection)
        assert _foretold(before, foretold, labels) == {k: v for k, v in after.items() if v}, change
        shared_database.write(rebuild)
        with shared_database.read() as connection:
            assert kept == index(connection), change


def _labels(connection: Connection, raw: RawWorld) -> dict[str, tuple[str, str]]:
    """Kinds and names by id, for members and resources."""
    lookup = Lookup(connection)
    found = {lookup.of(kind, name) or "": (kind, name) for kind in kinds(raw) for name in names(raw, kind)}
    found |= {lookup.of("member", name) or "": ("member", name) for name in raw["members"]}
    return found


def _foretold(before: Masks, foretold: list[Any], labels: dict[str, tuple[str, str]]) -> Masks:
    """What what-if says there will be: what there was, with the gains and without the losses."""
    found = dict(before)
    for effect in foretold:
        if effect.kind in ("member", "organization"):
            continue
        key = (labels[effect.member][1], *labels[effect.resource])
        assert not set(effect.gains) & found[key]
        assert set(effect.loses) <= found[key]
        found[key] = (found[key] | set(effect.gains)) - set(effect.loses)
    return {key: allowed for key, allowed in found.items() if allowed}


ADDITIONS = (s.Grant, s.AddOwner, s.JoinGroup, s.GiveSpaceRole, s.GiveSecurityRole, s.AttachContext)


@EXAMPLES
@given(seed=seeds)
def test_adding_never_removes_anything_from_who_gains_it(shared_database: Database, seed: int) -> None:
    raw, _ = world_of(seed)
    rng = Random(seed + 2)  # noqa: S311 - a test's own dice
    reload(shared_database, raw)
    for _ in range(8):
        change = random_change(rng, raw)
        shares = isinstance(change, s.Share) and change.for_use and change.for_maintenance
        if not isinstance(change, ADDITIONS) and not shares:
            continue
        with shared_database.read() as connection:
            found = planned(connection, change)
            if found is None:
                continue
            for effect in effects(connection, found.delta, NOW):
                assert not effect.loses, (change, effect)


@EXAMPLES
@given(seed=seeds)
def test_what_is_unknown_or_missing_is_denied(shared_database: Database, seed: int) -> None:
    raw, _ = world_of(seed)
    reload(shared_database, raw)
    with shared_database.read() as connection:
        asked = Asked(connection)
        missing = {kind: f"{kind}_nobody_made" for kind in kinds(raw)}
        for kind in kinds(raw):
            for rules in rule_kinds(kind):
                for action in BOOK.actions(rules):
                    for member in raw["members"]:
                        assert not asked.decide(member, action, kind, missing[kind])
                        assert not asked.decide_from_facts(member, action, kind, missing[kind])
            for name in names(raw, kind):
                for action in ("", "fly", "see ", "SEE", "see'; DROP TABLE members; --", "create", "add"):
                    assert not asked.decide("m0", action, kind, name)
                assert not asked.decide(None, "see", kind, name)
                assert not asked.decide("nobody", "see", kind, name)


def test_dropping_what_is_not_there_changes_nothing(shared_database: Database) -> None:
    raw, _ = world_of(7)
    reload(shared_database, raw)
    delta = Delta()
    delta.drop(grant_table, {"id": "grt_nobody"})
    with shared_database.read() as connection:
        assert effects(connection, delta, NOW) == []
