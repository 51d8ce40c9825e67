"""Random worlds, small and tangled, and random questions about states that do not exist yet."""

from random import Random
from typing import Any

from hypothesis import strategies as st

from headgate.access.actions import PIPELINE_KINDS, ROLES, SECURITY_ROLES, SPACE_ROLES
from headgate.access.book import BOOK
from headgate.access.own import OWN_KINDS
from tests.support.worlds import RawWorld

LEVELS = ("viewer", "editor", "manager")
ENDS = (None, None, None, "2026-05-31", "2026-06-01T00:00:00Z", "2026-06-01T00:00:01Z", "2030-01-01")
LAYERS = ("gold", "raw")
TABLES = ("gold.orders", "gold.customers", "raw.events")
VOLUMES = ("raw.files",)
MISSING = ("gold.missing", "nowhere.missing", "raw")


def some(rng: Random, values: Any, most: int | None = None) -> list[Any]:
    """A few of these, each once."""
    found = list(values)
    rng.shuffle(found)
    return sorted(found[: rng.randint(0, min(len(found), most if most is not None else len(found)))])


def maybe(rng: Random, values: Any, chance: float = 0.7) -> Any:
    """One of these, or nothing."""
    found = list(values)
    return rng.choice(found) if found and rng.random() < chance else None


def _without_nothing(raw: RawWorld) -> RawWorld:
    return {name: value for name, value in raw.items() if value is not None}


class WorldMaker:
    """Makes one world, part by part, so that each part can refer to those before it."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.people = [f"m{n}" for n in range(rng.randint(2, 5))]
        self.resources: list[RawWorld] = []

    def make(self) -> RawWorld:
        rng = self.rng
        groups = {name: some(rng, self.people) for name in ("g1", "g2")}
        self._marts_ground()
        self._lakehouse_ground()
        self._spaces()
        self._flows()
        self._marts()
        self._followers()
        return {
            "now": "2026-06-01T00:00:00Z",
            "organization": {
                "plan": rng.choice(("growth", "growth", "custom", "starter")),
                "invites": rng.choice(("by-role", "admins-only")),
            },
            "contexts": ["c1", "c2"],
            "groups": groups,
            "members": {name: self._member() for name in self.people},
            "resources": self.resources,
            "grants": self._grants(),
        }

    def _member(self) -> RawWorld:
        rng = self.rng
        role = rng.choice(("technical", "business", "technical", "business", *ROLES))
        scope = rng.choice(("entire", "selected"))
        return {
            "role": role,
            "scope": scope,
            "contexts": some(rng, ("c1", "c2")),
            "security_roles": some(rng, SECURITY_ROLES, 1) if rng.random() < 0.3 else [],
        }

    def add(self, kind: str, name: str, **fields: Any) -> str:
        self.resources.append(_without_nothing({"kind": kind, "name": name, **fields}))
        return name

    def names(self, kind: str) -> list[str]:
        return [one["name"] for one in self.resources if one["kind"] == kind]

    def flag(self) -> bool:
        return self.rng.random() < 0.5

    def _shared(self, first: str = "shared_for_use") -> RawWorld:
        return {
            first: self.flag(),
            "shared_for_maintenance": self.flag(),
            "contexts": some(self.rng, ("c1", "c2")),
        }

    def _marts_ground(self) -> None:
        for n in range(self.rng.randint(1, 2)):
            self.add("storage", f"s{n}", owners=some(self.rng, self.people, 2), **self._shared())
        for n in range(self.rng.randint(1, 2)):
            owners = some(self.rng, self.people, 2)
            self.add("destination", f"d{n}", owners=owners, deleted=self.rng.random() < 0.3, **self._shared())

    def _lakehouse_ground(self) -> None:
        for name in LAYERS:
            self.add("layer", name)
        for name in TABLES:
            self.add("table", name)
        for name in VOLUMES:
            self.add("volume", name)

    def tables(self, most: int = 2) -> list[str]:
        return some(self.rng, (*TABLES, *VOLUMES, *MISSING), most)

    def _spaces(self) -> None:
        rng = self.rng
        for n in range(rng.randint(1, 3)):
            principals = (*self.people, "group:g1", "group:g2", "group:All")
            members = {name: some(rng, SPACE_ROLES, 2) for name in some(rng, principals, 3)}
            owner, personal = maybe(rng, self.people, 0.9), rng.random() < 0.25
            self.add("space", f"sp{n}", owner=owner, personal=personal, members=members)
        spaces = self.names("space")
        for n in range(rng.randint(0, 1)):
            self.add("gateway", f"gw{n}", space=rng.choice(spaces))
        for n in range(rng.randint(0, 2)):
            gateway = maybe(rng, self.names("gateway"), 0.4)
            owner, allows_code = maybe(rng, self.people), self.flag()
            self.add(
                "connection",
                f"c{n}",
                space=rng.choice(spaces),
                owner=owner,
                gateway=gateway,
                allows_code=allows_code,
            )
        for n in range(rng.randint(0, 2)):
            target = maybe(rng, self.names("connection"), 0.5)
            self.add("project", f"p{n}", space=rng.choice(spaces), owner=maybe(rng, self.people, 0.9), target=target)

    def flow(self) -> RawWorld:
        """The definition of a pipeline."""
        rng = self.rng
        reads, writes = self.tables(), self.tables(1)
        return {
            "pipeline_kind": rng.choice(PIPELINE_KINDS),
            "output_layer": maybe(rng, LAYERS, 0.6),
            "reads": reads,
            "writes": writes,
            "disabled": some(rng, dict.fromkeys((*reads, *writes)), 1),
            "connections": some(rng, self.names("connection"), 1),
            "destination": maybe(rng, self.names("destination"), 0.3),
        }

    def _flows(self) -> None:
        rng = self.rng
        for n in range(rng.randint(1, 2)):
            self.add("pipeline", f"pl{n}", acts_for=maybe(rng, self.people, 0.9), **self.flow())
        for n in range(rng.randint(0, 2) if self.names("project") else 0):
            project, owner = rng.choice(self.names("project")), maybe(rng, self.people)
            acts_for = maybe(rng, self.people, 0.9)
            self.add("pipeline", f"t{n}", project=project, acts_for=acts_for, owner=owner, **self.flow())
        self.add("integration", "bi", reads=self.tables())
        self.add("saved_query", "q", author=maybe(rng, self.people), reads=self.tables())

    def _marts(self) -> None:
        rng = self.rng
        for n in range(rng.randint(1, 2)):
            self.add(
                "data_mart",
                f"dm{n}",
                storage=maybe(rng, self.names("storage"), 0.9),
                technical_owners=some(rng, self.people, 1),
                business_owners=some(rng, self.people, 1),
                published=self.flag(),
                reads=self.tables() if self.flag() else [],
                acts_for=maybe(rng, self.people, 0.8),
                **self._shared("shared_for_reporting"),
            )
        for n in range(rng.randint(1, 2)):
            self.add(
                "report",
                f"r{n}",
                data_mart=rng.choice(self.names("data_mart")),
                destination=maybe(rng, self.names("destination"), 0.9),
                owners=some(rng, self.people, 2),
                acts_for=maybe(rng, self.people, 0.8),
            )

    def _followers(self) -> None:
        rng = self.rng
        for kind in ("data_mart", "report", "pipeline"):
            for n, parent in enumerate(self.names(kind)):
                trigger = f"{kind[0]}{n}"
                self.add(f"{kind}_trigger", trigger, **{kind: parent}, author=maybe(rng, self.people, 0.9))
                self.add("run", f"run {kind[0]}{n}", **{kind: parent})

    def _grants(self) -> list[RawWorld]:
        rng = self.rng
        resources = [f"layer:{name}" for name in LAYERS]
        resources += [f"table:{name}" for name in TABLES] + [f"volume:{name}" for name in VOLUMES]
        principals = (*self.people, "group:g1", "group:g2", "group:All")
        found: dict[tuple[str, str, str], RawWorld] = {}
        for _ in range(rng.randint(0, 8)):
            key = rng.choice(principals), rng.choice(resources), rng.choice(LEVELS)
            to, resource, level = key
            found[key] = _without_nothing({"to": to, "resource": resource, "level": level, "expires": rng.choice(ENDS)})
        return list(found.values())

    def questions(self) -> list[tuple[str, str, str | None, RawWorld]]:
        """Questions with a `with`: (action, kind, resource or None, state)."""
        rng = self.rng

        def of(kind: str) -> str | None:
            name: str | None = maybe(rng, self.names(kind), 0.9)
            return name

        given: list[tuple[str, str, str | None, RawWorld]] = [
            ("create", "storage", None, {}),
            ("create", "destination", None, {}),
            ("create", "data_mart", None, {"storage": of("storage"), "reads": self.tables(1)}),
            ("create", "report", None, {"data_mart": of("data_mart"), "destination": of("destination")}),
            ("create", "data_mart_trigger", None, {"data_mart": of("data_mart")}),
            ("create", "report_trigger", None, {"report": of("report")}),
            ("create", "pipeline_trigger", None, {"pipeline": of("pipeline")}),
            ("create", "table", None, {"layer": maybe(rng, LAYERS, 0.9)}),
            ("create", "volume", None, {"layer": maybe(rng, LAYERS, 0.9)}),
            ("create", "project", None, {"space": of("space")}),
            ("create", "pipeline", None, {**self.flow(), "project": of("project")}),
            ("add", "pipeline", None, self.flow()),
            ("add", "connection", None, {"space": of("space"), "gateway": of("gateway")}),
            ("add", "gateway", None, {"space": of("space")}),
        ]
        for name in self.names("data_mart"):
            given.append(("edit", "data_mart", name, self._part({"storage": of("storage"), "reads": self.tables(1)})))
            given.append(("edit", "data_mart", name, {"published": True}))
        for name in self.names("report"):
            state = {"data_mart": of("data_mart"), "destination": of("destination")}
            given.append(("edit", "report", name, self._part(state)))
        for name in self.names("pipeline"):
            given.append(("edit", "pipeline", name, self._part(self.flow())))
            given.append(("update", "pipeline", name, self._part(self.flow())))
        for name in self.names("connection"):
            given.append(("edit", "connection", name, self._part({"gateway": of("gateway")})))
            given.append(("change_space", "connection", name, {"space": of("space")}))
        for kind in OWN_KINDS:
            given += [(action, kind, None, {"holder": rng.choice(self.people)}) for action in BOOK.actions(kind)]
        about = rng.choice([f"{one['kind']}:{one['name']}" for one in self.resources] + ["organization"])
        request = {"about": about, "asked_by": rng.choice(self.people), "answered_by": maybe(rng, self.people)}
        request["could_give"] = rng.random() < 0.5
        given += [(action, "access_request", None, request) for action in BOOK.actions("access_request")]
        given += [("change_role", "member", name, {"role": rng.choice(ROLES)}) for name in self.people]
        return [(a, k, n, _without_nothing(state)) for a, k, n, state in given]

    def _part(self, state: RawWorld) -> RawWorld:
        kept = some(self.rng, [name for name, value in state.items() if value is not None])
        return {name: state[name] for name in kept}


Questions = list[tuple[str, str, str | None, RawWorld]]


def world_of(seed: int) -> tuple[RawWorld, Questions]:
    """The world of a seed, and questions with a `with` about it."""
    maker = WorldMaker(Random(seed))  # noqa: S311 - a test's own dice
    return maker.make(), maker.questions()


seeds = st.integers(min_value=0, max_value=2**48)
"""A failing test names the seed, which says it all; there is nothing to shrink."""
