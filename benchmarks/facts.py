"""The same facts and rules for every engine: data marts by role, ownership, toggles and contexts."""

import json
from datetime import UTC, datetime
from random import Random

import casbin
import cedarpy
import oso

from headgate.access.book import BOOK
from headgate.access.facts import DataMart, Subject

ACTIONS = ("see", "use", "edit", "delete", "configure_sharing", "manage_triggers")
MAINTENANCE = ("see", "use", "edit", "delete", "manage_triggers")


class World:
    """Some members and marts, and questions about them."""

    def __init__(self, members: int = 20, marts: int = 50, seed: int = 7) -> None:
        rng = Random(seed)
        contexts = ["finance", "sales", "hr"]
        now = datetime.now(UTC)
        self.subjects = [
            Subject(
                f"m{n}",
                rng.choice(("admin", "technical", "business", "technical", "business")),
                now,
                entire=rng.random() < 0.5,
                contexts=frozenset(rng.sample(contexts, rng.randint(0, 2))),
            )
            for n in range(members)
        ]
        names = [one.id for one in self.subjects]
        self.marts = [
            DataMart(
                id=f"d{n}",
                technical_owners=frozenset(rng.sample(names, 2)),
                business_owners=frozenset(rng.sample(names, 1)),
                shared_for_use=rng.random() < 0.5,
                shared_for_maintenance=rng.random() < 0.5,
                contexts=frozenset(rng.sample(contexts, rng.randint(0, 2))),
            )
            for n in range(marts)
        ]
        self.questions = [(rng.randrange(members), rng.choice(ACTIONS), rng.randrange(marts)) for _ in range(400)]

    def headgate(self, who: int, action: str, what: int) -> bool:
        return BOOK.decide(self.subjects[who], action, self.marts[what]).allowed


class Cedar:
    """Cedar, with policies and entities parsed once, and ids as dicts."""

    POLICIES = """
    permit (principal, action, resource) when { principal.role == "admin" };
    permit (principal, action, resource)
      when { principal.role == "technical" && resource.technical_owners.contains(principal) };
    permit (principal, action in [Action::"see", Action::"use"], resource)
      when { resource.technical_owners.contains(principal) || resource.business_owners.contains(principal) };
    permit (principal, action in [Action::"see", Action::"use"], resource)
      when { resource.shared_for_use && (principal.entire || principal.contexts.containsAny(resource.contexts)) };
    permit (principal, action in [Action::"see", Action::"use", Action::"edit", Action::"delete",
                                  Action::"manage_triggers"], resource)
      when { resource.shared_for_maintenance && principal.role == "technical"
             && (principal.entire || principal.contexts.containsAny(resource.contexts)) };
    """

    def __init__(self, world: World) -> None:
        def uid(kind: str, name: str) -> dict[str, str]:
            return {"type": kind, "id": name}

        entities = [
            {
                "uid": uid("Member", one.id),
                "attrs": {"role": one.role, "entire": one.entire, "contexts": sorted(one.contexts)},
                "parents": [],
            }
            for one in world.subjects
        ] + [
            {
                "uid": uid("Mart", one.id or ""),
                "attrs": {
                    "technical_owners": [{"__entity": uid("Member", m)} for m in sorted(one.technical_owners)],
                    "business_owners": [{"__entity": uid("Member", m)} for m in sorted(one.business_owners)],
                    "shared_for_use": one.shared_for_use,
                    "shared_for_maintenance": one.shared_for_maintenance,
                    "contexts": sorted(one.contexts),
                },
                "parents": [],
            }
            for one in world.marts
        ]
        self.entities = cedarpy.Entities.from_json_str(json.dumps(entities))
        self.policies = cedarpy.PolicySet.from_str(self.POLICIES)

    def ask(self, who: int, action: str, what: int) -> bool:
        request = {
            "principal": {"type": "Member", "id": f"m{who}"},
            "action": {"type": "Action", "id": action},
            "resource": {"type": "Mart", "id": f"d{what}"},
        }
        return cedarpy.is_authorized(request, self.policies, self.entities).allowed


class Casbin:
    """Casbin, as attribute-based access control: one matcher over the objects."""

    MODEL = """
    [request_definition]
    r = sub, act, obj
    [policy_definition]
    p = name, cond, acts
    [policy_effect]
    e = some(where (p.eft == allow))
    [matchers]
    m = eval(p.cond) && allows(p.acts, r.act)
    """

    def __init__(self, world: World) -> None:
        self.world = world
        model = casbin.Model()
        model.load_model_from_text("\n".join(line.strip() for line in self.MODEL.splitlines()))
        self.enforcer = casbin.Enforcer(model)
        self.enforcer.add_function("allows", lambda acts, act: acts == "*" or act in acts.split(";"))
        self.enforcer.add_function("owns", lambda sub, names: sub in names)
        self.enforcer.add_function("in_scope", lambda s, r: s.entire or not s.contexts.isdisjoint(r.contexts))
        see, maintain = "see;use", ";".join(MAINTENANCE)
        for name, condition, acts in (
            ("admin", 'r.sub.role == "admin"', "*"),
            ("technical owner", 'r.sub.role == "technical" && owns(r.sub.id, r.obj.technical_owners)', "*"),
            ("floor", "owns(r.sub.id, r.obj.technical_owners) || owns(r.sub.id, r.obj.business_owners)", see),
            ("reporting", "r.obj.shared_for_use && in_scope(r.sub, r.obj)", see),
            (
                "maintenance",
                'r.obj.shared_for_maintenance && r.sub.role == "technical" && in_scope(r.sub, r.obj)',
                maintain,
            ),
        ):
            self.enforcer.add_policy(name, condition, acts)

    def ask(self, who: int, action: str, what: int) -> bool:
        return bool(self.enforcer.enforce(self.world.subjects[who], action, self.world.marts[what]))


class Oso:
    """Oso, with a Polar policy over the same objects."""

    POLICY = """
    allow(s: Subject, _, _r: DataMart) if s.role = "admin";
    allow(s: Subject, _, r: DataMart) if s.role = "technical" and s.id in r.technical_owners;
    allow(s: Subject, act, r: DataMart) if act in ["see", "use"] and s.id in r.technical_owners;
    allow(s: Subject, act, r: DataMart) if act in ["see", "use"] and s.id in r.business_owners;
    allow(s: Subject, act, r: DataMart) if act in ["see", "use"] and r.shared_for_use = true and in_scope(s, r);
    allow(s: Subject, act, r: DataMart) if
        act in ["see", "use", "edit", "delete", "manage_triggers"] and
        r.shared_for_maintenance = true and s.role = "technical" and in_scope(s, r);
    in_scope(s: Subject, _r: DataMart) if s.entire = true;
    in_scope(s: Subject, r: DataMart) if c in s.contexts and c in r.contexts;
    """

    def __init__(self, world: World) -> None:
        self.world, self.oso = world, oso.Oso()
        self.oso.register_class(Subject)
        self.oso.register_class(DataMart)
        self.oso.load_str(self.POLICY)

    def ask(self, who: int, action: str, what: int) -> bool:
        return bool(self.oso.is_allowed(self.world.subjects[who], action, self.world.marts[what]))


def agree(world: World, *engines: object) -> None:
    """All engines give the same answers, or the comparison would mean nothing."""
    for question in world.questions:
        expected = world.headgate(*question)
        for engine in engines:
            assert engine.ask(*question) == expected, (type(engine).__name__, question)  # type: ignore[attr-defined]
