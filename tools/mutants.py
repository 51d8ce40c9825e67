"""Breaks each rule in turn, and checks that the worlds notice: `make mutants`.

A mutant drops a path, drops or adds an action of a path, or weakens, tightens or swaps a part of its condition. Every
assertion of every world is then asked again, in memory; and, if none notices, everything about some random worlds, of
which the oracle knows the answers. A mutant that changes no answer anywhere has survived: either a test is missing, or
the rules say something twice, and then EQUIVALENT says why.
"""

import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path as File

from equivalent_mutants import EQUIVALENT

from headgate.access.actions import DRAFT_ACTIONS, SPACE_ROLES
from headgate.access.atoms import (
    ANYONE,
    SHARED_FOR_MAINTENANCE,
    SHARED_FOR_USE,
    granted,
    owns,
    role_is,
    security_role,
    space_role,
)
from headgate.access.audience import implies
from headgate.access.book import BOOK
from headgate.access.conditions import (
    AllOf,
    AllRelated,
    AnyOf,
    AnyRelated,
    Atom,
    Can,
    Condition,
    OfMember,
    OnRelated,
    Term,
)
from headgate.access.facts import Organization, Subject
from headgate.access.kinds import COLLECTIONS, KINDS, RELATIONS, stored_kind
from headgate.access.own import DESCRIBED_KINDS
from headgate.access.rules import ALL_TABLES, TERMS, Path, Rules
from headgate.access.rules.terms import held, on_all_counted, on_all_listed
from headgate.access.world_specs import World
from headgate.access.worlds import read_world
from headgate.kit.clock import now as clock
from headgate.kit.database import Database
from headgate.platform.authorization.facts import Facts
from headgate.platform.authorization.lookup import Lookup
from headgate.platform.authorization.questions import Question, decide_in_memory
from headgate.schema import METADATA
from headgate.worlds.loader import load
from headgate.worlds.runner import narrowing

ROOT = File(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.access.oracle import Oracle  # noqa: E402
from tests.support.strategies import world_of  # noqa: E402
from tests.support.worlds import NOW, reload  # noqa: E402

WORLDS = ROOT / "tests/access/worlds"

RANDOM_WORLDS = 120
ASKED_OF = {"grant": {"layer", "table", "volume"}}
"""Kinds of drafts, and what the questions about them name."""

ALL_KINDS = frozenset({*KINDS, *DESCRIBED_KINDS, "grant"})


@dataclass(frozen=True, slots=True)
class Mutant:
    """A rule table, or a term that tables share, with one thing changed."""

    label: str
    kinds: frozenset[str]
    install: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """One assertion, ready to be asked again."""

    facts: Facts
    question: Question
    expected: bool
    place: str

    def holds(self) -> bool:
        """Whether the answer is the expected one."""
        return decide_in_memory(self.facts, self.question).allowed == self.expected


@dataclass(frozen=True, slots=True)
class AskedOfOperator:
    """What the operator of the machine, who is no member, may do to the organization."""

    question: Question
    expected: bool
    place: str = "the operator"

    def holds(self) -> bool:
        """Whether the answer is the expected one."""
        operator = Subject("operator", "operator", NOW, operator=True)
        return BOOK.decide(operator, self.question.action, Organization()).allowed == self.expected


def operator_questions() -> Iterator[AskedOfOperator]:
    """The operator asks and reads, and changes nothing."""
    for action in BOOK.actions("organization"):
        question = Question(None, action, "organization")
        yield AskedOfOperator(question, action in {"ask_about_members", "read_audit", "see_settings"})


def questions() -> Iterator[Asked]:
    """Every assertion of every world; lists and who_can as one question a pair."""
    for file in sorted(WORLDS.glob("*.yaml")):
        world = read_world(file.read_text(), file.name)
        database = Database("sqlite://")
        METADATA.create_all(database.engine)
        moment = world.now or clock()
        database.write(lambda connection, world=world, moment=moment: load(connection, world, moment))
        connection = database.engine.connect()
        yield from _of_world(Facts(connection, moment), Lookup(connection), world)


def _of_world(facts: Facts, lookup: Lookup, world: World) -> Iterator[Asked]:
    def asked(member: str | None, action: str, kind: str, name: str | None, expected: bool, line: int) -> Asked:
        question = Question(lookup.of("member", member), action, kind, lookup.of(kind, name))
        return Asked(facts, question, expected, f"{world.file}:{line}")

    for check in world.checks:
        for action, expected in check.actions.items():
            one = asked(check.member, action, check.kind, check.name, expected, check.line)
            limits = narrowing(lookup, check.token)
            yield replace(one, question=replace(one.question, state=check.state, narrowing=limits))
    for who in world.who_can:
        for member in world.members:
            yield asked(member, who.action, who.kind, who.name, member in who.expect, who.line)
    for listed in (one for one in world.lists if one.token is None and one.kind != "task"):
        for resource in (one for one in world.resources if one.kind == listed.kind):
            expected = resource.name in listed.expect
            yield asked(listed.member, listed.action, resource.kind, resource.name, expected, listed.line)


def random_questions() -> Iterator[Asked]:
    """Everything about some random worlds, with the oracle's answers."""
    for seed in range(RANDOM_WORLDS):
        raw, states = world_of(seed)
        database = Database("sqlite://")
        METADATA.create_all(database.engine)
        reload(database, raw)
        connection = database.engine.connect()
        facts, lookup, oracle = Facts(connection, NOW), Lookup(connection), Oracle(raw)
        people = [(name, lookup.of("member", name)) for name in raw["members"]]
        for one in raw["resources"]:
            kind, name = one["kind"], one["name"]
            resource = lookup.of(kind, name)
            for action in oracle.actions("task" if one.get("project") else kind):
                for member, identifier in people if action != "fire" else [(None, None)]:
                    expected = oracle.decide(member, action, f"{kind}:{name}")
                    yield Asked(facts, Question(identifier, action, kind, resource), expected, f"random world {seed}")
        for action, kind, about, state in states:
            target = f"{kind}:{about}" if about else None
            for member, identifier in people:
                expected = oracle.decide(member, action, target, kind=None if about else kind, with_=state)
                question = Question(identifier, action, kind, lookup.of(kind, about), state)
                yield Asked(facts, question, expected, f"random world {seed}")


def dependent_kinds() -> dict[str, set[str]]:
    """For each kind, the stored kinds whose rules ask about it, itself included."""
    uses: dict[str, set[str]] = {rules.kind: {rules.kind} for rules in ALL_TABLES}
    for rules in ALL_TABLES:
        for path in rules.paths:
            uses[rules.kind] |= set(_asks_about(path.condition, rules.kind))
    for _ in uses:
        for kind, found in uses.items():
            uses[kind] = found.union(*(uses.get(one, set()) for one in found))
    return {
        kind: {stored_kind(other) for other, found in uses.items() if kind in found} | ASKED_OF.get(kind, set())
        for kind in uses
    }


def _asks_about(condition: Condition, kind: str) -> Iterator[str]:
    match condition:
        case AllOf() | AnyOf():
            for part in condition.parts:
                yield from _asks_about(part, kind)
        case OnRelated():
            target = RELATIONS[kind, condition.relation].kind
            yield target
            yield from _asks_about(condition.inner, target)
        case AllRelated() | AnyRelated():
            target = COLLECTIONS[kind, condition.collection].kind
            yield target
            yield from _asks_about(condition.inner, target)
        case OfMember():
            yield from _asks_about(condition.inner, kind)
        case Term():
            yield from _asks_about(BOOK.meaning(condition), kind)


# Mutants


def mutants() -> Iterator[Mutant]:
    """Every way in which one rule, or one term, can be broken."""
    dependents = dependent_kinds()
    for rules in ALL_TABLES:
        kinds = frozenset(dependents[rules.kind])
        for number, path in enumerate(rules.paths):
            for label, broken in _broken_paths(rules, path):
                paths = list(rules.paths)
                paths[number : number + 1] = [broken] if broken else []
                changed = replace(rules, paths=tuple(paths))
                yield Mutant(f"{rules.kind} / {path.name}: {label}", kinds, partial(_install, changed))
    for name in TERMS:
        for level in (1, 2, 3) if Term(name, 1) in _levelled() else (0,):
            for label, broken in _broken(BOOK.meaning(Term(name, level))):
                full = f"{Term(name, level).words('')}: {label}"
                yield Mutant(full, ALL_KINDS, partial(_redefine, name, level, broken))


def _levelled() -> tuple[Term, ...]:
    return held(1), on_all_listed(1), on_all_counted(1)


def _broken_paths(rules: Rules, path: Path) -> Iterator[tuple[str, Path | None]]:
    """A path that is dropped, that grants less or more, or asks for less, more or something else.

    Not what other paths of the table make no difference by their shape alone: a higher level includes the lower ones.
    """
    lost = [action for action in path.grants if not _granted_anyway(rules, path, action)]
    if lost:
        yield "dropped", None
    for action in lost if len(path.grants) > 1 else []:
        yield f"without {action}", replace(path, grants=tuple(one for one in path.grants if one != action))
    for action in rules.actions:
        same_sort = (action in DRAFT_ACTIONS) == bool(DRAFT_ACTIONS & set(path.grants))
        if action in path.grants or not same_sort or action == "fire" or _granted_anyway(rules, path, action):
            continue
        yield f"with {action}", replace(path, grants=(*path.grants, action))
    for label, condition in _broken(path.condition):
        yield label, replace(path, condition=condition)


def _granted_anyway(rules: Rules, path: Path, action: str) -> bool:
    others = [other.condition for other in rules.paths if other != path and action in other.grants]
    return all(any(implies(one, other, BOOK, rules.kind) for other in others) for one in _alternatives(path.condition))


def _alternatives(condition: Condition) -> list[Condition]:
    """The ways in which a condition can hold, as far as they are ways that other paths may grant one by one."""
    match condition:
        case AnyOf():
            return [one for part in condition.parts for one in _alternatives(part)]
        case AllOf():
            return [AllOf(parts) for parts in product(*(_alternatives(part) for part in condition.parts))]
        case OnRelated():
            return [replace(condition, inner=one) for one in _alternatives(condition.inner)]
        case Can():
            return [Can(condition.action)]
    return [condition]


def _broken(condition: Condition) -> Iterator[tuple[str, Condition]]:
    """The condition with one part gone, or one atom swapped."""
    match condition:
        case AllOf() | AnyOf():
            for number, part in enumerate(condition.parts):
                rest = condition.parts[:number] + condition.parts[number + 1 :]
                yield f"without «{_name(part)}»", type(condition)(rest)
                for label, broken in _broken(part):
                    changed = (*condition.parts[:number], broken, *condition.parts[number + 1 :])
                    yield label, type(condition)(changed)
        case Term() if condition.level:
            for level in {1, 2, 3} - {condition.level}:
                yield f"level {condition.level} became {level}", replace(condition, level=level)
        case OnRelated() | OfMember():
            for label, broken in _broken(condition.inner):
                yield label, replace(condition, inner=broken)
        case AllRelated():
            yield f"some instead of every {condition.collection}", AnyRelated(condition.collection, condition.inner)
            for label, broken in _broken(condition.inner):
                yield label, replace(condition, inner=broken)
        case AnyRelated():
            for label, broken in _broken(condition.inner):
                yield label, replace(condition, inner=broken)
        case Atom():
            for swapped in _swapped(condition):
                yield f"«{condition.name}» became «{swapped.name}»", swapped
        case Can():
            yield f"can {condition.action} became anyone", ANYONE


def _swapped(atom: Atom) -> Iterator[Atom]:
    family, _, options = atom.name.partition(":")
    if family == "role":
        roles = options.split(",")
        yield from (role_is(*(one for one in roles if one != role)) for role in roles if len(roles) > 1)
        yield from (role_is(*roles, role) for role in ("technical", "business") if role not in roles)
    elif family == "space":
        roles = [one for one in options.split(",") if one]
        yield from (space_role(*(one for one in roles if one != role)) for role in roles)
        yield from (space_role(*roles, role) for role in SPACE_ROLES if role not in roles)
    elif family == "security":
        roles = options.split(",")
        yield from (security_role(*(one for one in roles if one != role)) for role in roles if len(roles) > 1)
        yield from (security_role(*roles, one) for one in ("space_creator",) if one not in roles)
    elif family == "granted":
        yield from (granted(level) for level in (1, 2, 3) if level != int(options))
    elif family == "owns" and "," in options:
        yield from (owns(one) for one in options.split(","))
    elif atom in (SHARED_FOR_USE, SHARED_FOR_MAINTENANCE):
        yield SHARED_FOR_MAINTENANCE if atom == SHARED_FOR_USE else SHARED_FOR_USE


def _name(condition: Condition) -> str:
    return condition.words("") if isinstance(condition, Atom | Term) else type(condition).__name__.lower()


# Trying them


def notices(mutant: Mutant, asked: list[Asked | AskedOfOperator]) -> str | None:
    """The first assertion that the mutant breaks, or None; it goes to the front, for the next mutant is much alike."""
    mutant.install()
    try:
        for number, one in enumerate(asked):
            if not one.holds():
                asked.insert(0, asked.pop(number))
                return one.place
        return None
    except RecursionError:
        return "a rule that asks for itself"
    finally:
        _restore()


def _install(rules: Rules) -> None:
    BOOK.tables[rules.kind] = rules
    BOOK.forget()


def _redefine(name: str, level: int, meaning: Condition) -> None:
    original = TERMS[name]
    BOOK.terms[name] = lambda asked: meaning if asked == level else original(asked)
    BOOK.forget()


def _restore() -> None:
    BOOK.tables = {rules.kind: rules for rules in ALL_TABLES}
    BOOK.terms = dict(TERMS)
    BOOK.forget()


def main() -> int:
    """Try every mutant; 1 if one survives that should not."""
    asked: list[Asked | AskedOfOperator] = [*questions(), *operator_questions()]
    wrong = [one.place for one in asked if not one.holds()]
    if wrong:
        print(f"{len(wrong)} assertions fail before anything is broken: {wrong[0]}")
        return 1
    found, more = list(mutants()), list(random_questions())
    survivors: list[str] = []
    started = time.monotonic()
    near: dict[frozenset[str], list[list[Asked | AskedOfOperator]]] = {}
    for number, mutant in enumerate(found, 1):
        if mutant.kinds not in near:
            near[mutant.kinds] = [
                [one for one in those if one.question.kind in mutant.kinds] for those in (asked, more)
            ]
        place = next((place for some in near[mutant.kinds] if (place := notices(mutant, some))), None)
        if place is None:
            survivors.append(mutant.label)
        if sys.stdout.isatty():
            print(f"\r{number} of {len(found)} mutants, {len(survivors)} unnoticed", end="", flush=True)
    return _report(found, survivors, len(asked), round(time.monotonic() - started))


def _report(found: list[Mutant], survivors: list[str], assertions: int, seconds: int) -> int:
    unexplained = [label for label in survivors if not any(re.fullmatch(one, label) for one in EQUIVALENT)]
    idle = [one for one in EQUIVALENT if not any(re.fullmatch(one, label) for label in survivors)]
    for label in unexplained:
        print(f"UNNOTICED {label}")
    for pattern in idle:
        print(f"EXPLAINS NOTHING ANY MORE {pattern}")
    caught, twice = len(found) - len(survivors), len(survivors) - len(unexplained)
    print(f"{caught} of {len(found)} mutants noticed by {assertions} assertions and {RANDOM_WORLDS} random worlds;")
    print(f"{twice} change nothing, {len(unexplained)} unnoticed; {seconds} s")
    return 1 if unexplained or idle else 0


if __name__ == "__main__":
    sys.exit(main())
