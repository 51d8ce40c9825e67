"""Every combination of what a decision depends on, area by area, against the oracle, on both databases."""

from collections.abc import Iterator
from itertools import combinations, product

import pytest

from headgate.access.actions import ROLES, SECURITY_ROLES, SPACE_ROLES
from headgate.access.book import BOOK
from headgate.kit.database import Database
from tests.access.oracle import Oracle
from tests.support.worlds import Asked, RawWorld, reload

pytestmark = pytest.mark.both_databases

SCOPES: dict[str, RawWorld] = {
    "entire": {"scope": "entire"},
    "overlap": {"scope": "selected", "contexts": ["c1"]},
    "apart": {"scope": "selected", "contexts": ["c2"]},
    "none": {"scope": "selected", "contexts": []},
}
TOGGLES = tuple(product((False, True), repeat=2))
LEVELS = (None, "viewer", "editor", "manager")


def people() -> dict[str, RawWorld]:
    """A member of every role and scope, twice: one will own things, one will not."""
    return {
        f"{role} {scope} {who}": {"role": role, **fields}
        for role, (scope, fields), who in product(ROLES, SCOPES.items(), ("owner", "other"))
    }


def owners(members: dict[str, RawWorld]) -> list[str]:
    return [name for name in members if name.endswith("owner")]


def check_all(database: Database, raw: RawWorld, kinds: tuple[str, ...]) -> int:
    """Ask about everyone and everything of these kinds, by statement, by facts and by list; how many answers."""
    reload(database, raw)
    oracle, asked_about = Oracle(raw), 0
    with database.read() as connection:
        asked = Asked(connection)
        for one in raw["resources"]:
            kind, name = one["kind"], one["name"]
            if kind not in kinds:
                continue
            rules = "task" if one.get("project") else kind
            for action in (*oracle.actions(rules), "use", "see", "fly"):
                if action == "fire":
                    assert asked.decide(None, action, kind, name) == oracle.decide(None, action, f"{kind}:{name}")
                    continue
                expected = {m for m in raw["members"] if oracle.decide(m, action, f"{kind}:{name}")}
                assert asked.who_can(action, kind, name) == expected, (action, one)
                asked_about += len(raw["members"])
        for member in raw["members"]:
            for kind in kinds:
                _check_list(asked, oracle, raw, member, kind)
                asked_about += 1
    return asked_about


def _check_list(asked: Asked, oracle: Oracle, raw: RawWorld, member: str, kind: str) -> None:
    """The list that the index gives is what the oracle lets the member see or list."""
    names = [one["name"] for one in raw["resources"] if one["kind"] == kind]
    visible = {name for name in names for action in ("see", "list") if oracle.decide(member, action, f"{kind}:{name}")}
    assert asked.lists(member, kind, None) == visible, (member, kind)


def _shareables(kind: str, first: str, owned: dict[str, list[str]]) -> Iterator[RawWorld]:
    for (use, maintenance), (label, people_) in product(TOGGLES, owned.items()):
        for contexts in ([], ["c1"]):
            name = f"{kind} {use} {maintenance} {label} {contexts}"
            fields = "owners" if kind != "data_mart" else label
            yield {
                "kind": kind,
                "name": name,
                first: use,
                "shared_for_maintenance": maintenance,
                "contexts": contexts,
                **({fields: people_} if people_ else {}),
            }


def test_storages_and_destinations_in_every_combination(database: Database) -> None:
    members = people()
    owned = {"owned": owners(members), "unowned": []}
    storages = list(_shareables("storage", "shared_for_use", owned))
    live = list(_shareables("destination", "shared_for_use", owned))
    deleted = [{**one, "name": one["name"] + " deleted", "deleted": True} for one in live]
    raw = _world(members, [*storages, *live, *deleted])
    assert check_all(database, raw, ("storage", "destination")) > 10_000


def test_marts_reports_and_triggers_in_every_combination(database: Database) -> None:
    members = people()
    some = owners(members)
    owned = {"technical_owners": some, "business_owners": some, "nobody": []}
    marts = [{**one, "published": True} for one in _shareables("data_mart", "shared_for_reporting", owned)]
    marts = [{k: v for k, v in one.items() if k != "nobody"} for one in marts]
    destinations: list[RawWorld] = [
        {"kind": "destination", "name": "live"},
        {"kind": "destination", "name": "gone", "deleted": True},
    ]
    reports: list[RawWorld] = [
        {
            "kind": "report",
            "name": f"{mart['name']} to {destination} {label}",
            "data_mart": mart["name"],
            "destination": destination,
            "owners": people_,
        }
        for mart in marts
        for destination in ("live", "gone")
        for label, people_ in (("owned", some), ("unowned", []))
    ]
    triggers: list[RawWorld] = [
        {"kind": "data_mart_trigger", "name": f"of {mart['name']}", "data_mart": mart["name"], "author": some[0]}
        for mart in marts
    ]
    triggers += [
        {"kind": "report_trigger", "name": f"of {one['name']}", "report": one["name"], "author": some[-1]}
        for one in reports
    ]
    raw = _world(members, [*destinations, *marts, *reports, *triggers])
    kinds = ("data_mart", "report", "data_mart_trigger", "report_trigger")
    assert check_all(database, raw, kinds) > 30_000


@pytest.mark.slow
def test_levels_in_every_combination_of_direct_group_all_layer_and_table(database: Database) -> None:
    """4 levels by direct, group and All, on the table and on its layer: 4,096 layers, each with a table."""
    ways = ("ann", "group:g", "group:All")
    resources: list[RawWorld] = []
    grants: list[RawWorld] = []
    for number, levels in enumerate(product(LEVELS, repeat=6)):
        layer, table = f"l{number}", f"l{number}.t"
        resources += [{"kind": "layer", "name": layer}, {"kind": "table", "name": table}]
        for to, on_table, on_layer in zip(ways, levels[:3], levels[3:], strict=True):
            grants += [{"to": to, "resource": f"table:{table}", "level": on_table}] if on_table else []
            grants += [{"to": to, "resource": f"layer:{layer}", "level": on_layer}] if on_layer else []
    raw = _world({"ann": {"role": "business"}}, resources)
    raw |= {"groups": {"g": ["ann"]}, "grants": grants}
    reload(database, raw)
    with database.read() as connection:
        asked = Asked(connection)
        for kind in ("layer", "table"):
            for action in ("see", "execute", "describe", "edit", "delete", "grant", "grant_manager"):
                found = _listed(asked, kind, action)
                assert found == _expected_levels(raw, kind, action), (kind, action)


def _listed(asked: Asked, kind: str, action: str) -> set[str]:
    return asked.lists("ann", kind, action, limit=200) if action in BOOK.actions(kind) else set()


def _expected_levels(raw: RawWorld, kind: str, action: str) -> set[str]:
    """The model's levels, spelled out: the best grant on the table or its layer, and the derived Viewer."""
    needed = {"see": 1, "execute": 1, "describe": 2, "edit": 2, "delete": 3, "grant": 3}
    if action not in needed or (action == "execute" and kind != "table"):
        return set()
    best: dict[str, int] = {}
    inside: set[str] = set()
    for grant in raw["grants"]:
        name, level = grant["resource"].partition(":")[2], LEVELS.index(grant["level"])
        best[name] = max(best.get(name, 0), level)
        inside.add(name.partition(".")[0])
    names = [one["name"] for one in raw["resources"] if one["kind"] == kind]
    if kind == "layer":
        seen = {name for name in names if action == "see" and name in inside}
        return seen | {name for name in names if best.get(name, 0) >= needed[action]}
    layers = {name: name.partition(".")[0] for name in names}
    return {name for name in names if max(best.get(name, 0), best.get(layers[name], 0)) >= needed[action]}


def _subsets(values: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [subset for size in range(len(values) + 1) for subset in combinations(values, size)]


@pytest.mark.parametrize("by", ["directly", "by group"])
def test_space_roles_and_security_roles_in_every_subset(database: Database, by: str) -> None:
    """64 sets of space roles, each in a space of its own, for members of 8 sets of security roles and 2 roles."""
    members: dict[str, RawWorld] = {"owns": {"role": "business"}, "admin": {"role": "admin"}}
    for number, security in enumerate(_subsets(SECURITY_ROLES)):
        members[f"m{number}"] = {"role": "business", "security_roles": list(security)}
    somebody = [name for name in members if name.startswith("m")]
    resources: list[RawWorld] = []
    for number, roles in enumerate(_subsets(SPACE_ROLES)):
        inside = {holder: list(roles) for holder in (somebody if by == "directly" else ["group:g"])}
        for personal in (False, True) if number % 9 == 0 else (False,):
            space = f"s{number}{' personal' if personal else ''}"
            resources += [
                {"kind": "space", "name": space, "owner": "owns", "personal": personal, "members": inside},
                {"kind": "project", "name": f"p {space}", "space": space, "owner": "owns"},
                {"kind": "connection", "name": f"c {space}", "space": space, "owner": "m0"},
                {"kind": "gateway", "name": f"g {space}", "space": space},
                {"kind": "pipeline", "name": f"t {space}", "project": f"p {space}", "acts_for": "owns"},
            ]
    raw = _world(members, resources) | {"groups": {"g": somebody}}
    assert check_all(database, raw, ("space", "project", "connection", "gateway", "pipeline")) > 20_000


def _world(members: dict[str, RawWorld], resources: list[RawWorld]) -> RawWorld:
    return {
        "now": "2026-06-01T00:00:00Z",
        "organization": {"plan": "growth", "invites": "by-role"},
        "contexts": ["c1", "c2"],
        "members": members,
        "resources": resources,
        "grants": [],
    }
