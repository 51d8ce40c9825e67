"""Over random worlds: every reader of the rule tables gives the oracle's answer, on both databases."""

import os

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from headgate.kit.database import Database
from tests.access.oracle import Oracle
from tests.support.strategies import Questions, seeds, world_of
from tests.support.worlds import Asked, RawWorld, actions_of, names, reload

pytestmark = pytest.mark.both_databases

WORLDS = int(os.environ.get("WORLDS", "20"))
ORGANIZATION = [
    "invite_owner", "invite_admin", "invite_technical", "invite_business", "create_layer", "create_group",
    "see_settings", "manage_billing", "create_space",
]  # fmt: skip


def compare(asked: Asked, raw: RawWorld, questions: Questions) -> None:
    """Ask everything of a world, in every way."""
    oracle = Oracle(raw)
    people = list(raw["members"])
    for kind in dict.fromkeys(one["kind"] for one in raw["resources"]):
        for name in names(raw, kind):
            _compare_resource(asked, oracle, people, kind, name)
    for target in people:
        for action in ("change_role", "remove", "reset_password", "make_magic_link"):
            expected = {m for m in people if oracle.decide(m, action, f"member:{target}")}
            assert {m for m in people if asked.decide(m, action, "member", target)} == expected, (action, target)
            assert asked.who_can(action, "member", target) == expected, (action, target)
    for action in ORGANIZATION:
        expected = {m for m in people if oracle.decide(m, action, "organization")}
        assert {m for m in people if asked.decide(m, action, "organization", None)} == expected, action
        assert asked.who_can(action, "organization", None) == expected, action
    for action, kind, resource, state in questions:
        for member in people:
            target = f"{kind}:{resource}" if resource else None
            expected_one = oracle.decide(member, action, target, kind=kind if not resource else None, with_=state)
            found = asked.decide(member, action, kind, resource, state)
            assert found == expected_one, (member, action, kind, resource, state)


def _compare_resource(asked: Asked, oracle: Oracle, people: list[str], kind: str, name: str) -> None:
    resource = f"{kind}:{name}"
    known = set(oracle.actions(kind)) | (set(oracle.actions("task")) if kind == "pipeline" else set())
    shown = {m: asked.what_can(m, kind, name) for m in people}
    for action in sorted(known & set(actions_of(kind)) | {"see", "fly"}):
        if action == "fire":
            expected = oracle.decide(None, "fire", resource)
            assert asked.decide(None, "fire", kind, name) == expected, (action, resource)
            continue
        who = {m for m in people if oracle.decide(m, action, resource)}
        assert {m for m in people if asked.check(m, action, kind, name)} == who, (action, resource)
        assert {m for m in people if asked.decide_from_facts(m, action, kind, name)} == who, (action, resource)
        assert {m for m in people if action in shown[m]} == who, (action, resource)
        assert asked.who_can(action, kind, name) == who, (action, resource)


def compare_lists(asked: Asked, raw: RawWorld) -> None:
    """Lists by the index, and by the rule tables, hold what decide says."""
    oracle = Oracle(raw)
    for kind in dict.fromkeys(one["kind"] for one in raw["resources"]):
        for member in raw["members"]:
            for action in actions_of(kind):
                if action in {"fire", "see_access"} or action not in oracle.actions(kind):
                    continue
                expected = {n for n in names(raw, kind) if oracle.decide(member, action, f"{kind}:{n}")}
                assert asked.lists(member, kind, action) == expected, (member, action, kind)
            shown = {n for n in names(raw, kind) if asked.what_can(member, kind, n) - {"restore"}}
            assert asked.lists(member, kind, None) == shown, (member, kind)


@settings(
    max_examples=WORLDS,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=seeds)
def test_every_reader_agrees_with_the_oracle(shared_database: Database, seed: int) -> None:
    raw, questions = world_of(seed)
    reload(shared_database, raw)
    with shared_database.read() as connection:
        asked = Asked(connection)
        compare(asked, raw, questions)
        compare_lists(asked, raw)
