"""The language of conditions. Each can be written as Python, as SQL, and in words.

A rule table is made of these and nothing else, so what `decide` says of one resource and what a list shows are two
readings of one text.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headgate.access.actions import LEVEL_NAMES
from headgate.access.facts import Subject
from headgate.access.kinds import COLLECTIONS, KINDS, PERSONS, RELATIONS

if TYPE_CHECKING:
    from headgate.access.book import RuleBook

Check = Callable[[Subject, Any], bool]


@dataclass(frozen=True, slots=True)
class SqlPosition:
    """Where SQL is being written: the names of the member's row and of the resource's, and what kind that is."""

    book: "RuleBook"
    kind: str
    thing: str = "r"
    member: str = "m"
    depth: int = 0

    def below(self, kind: str) -> "SqlPosition":
        """The same member, with a related row of another kind."""
        return replace(self, kind=kind, thing=f"t{self.depth + 1}", depth=self.depth + 1)

    def as_person(self) -> "SqlPosition":
        """The same resource, with another member."""
        return replace(self, member=f"m{self.depth + 1}", depth=self.depth + 1)


class Condition:
    """Something that holds, or not, between a member and a resource.

    It is written twice from the same parts: as a Python expression over facts, and as SQL over rows. Both writers go by
    an `At`, whose member and thing are the names of variables in the one, and of rows in the other.
    """

    def python(self, at: SqlPosition) -> str:
        """As a Python expression."""
        raise TypeError(f"{type(self).__name__} has no Python")

    def sql(self, at: SqlPosition) -> str:
        """As SQL."""
        raise TypeError(f"{type(self).__name__} has no SQL")

    def words(self, kind: str) -> str:
        """As words, for a reader."""
        raise TypeError(f"{type(self).__name__} has no words")

    def check(self, book: "RuleBook", kind: str) -> Check:
        """A function that tells whether it holds, for resources of this kind."""
        result: Check = book.compiled(f"lambda m, r: {self.python(SqlPosition(book, kind))}")
        return result


@dataclass(frozen=True, slots=True)
class Atom(Condition):
    """A condition that is not made of others. `about` says on which side its facts are."""

    name: str
    text: str
    about: str
    holds: Callable[[SqlPosition], str]
    write: Callable[[SqlPosition], str]

    def python(self, at: SqlPosition) -> str:
        return self.holds(at)

    def sql(self, at: SqlPosition) -> str:
        return self.write(at)

    def words(self, kind: str) -> str:
        return self.text

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Atom) and other.name == self.name


@dataclass(frozen=True, slots=True)
class AllOf(Condition):
    """Every part holds."""

    parts: tuple[Condition, ...]

    def python(self, at: SqlPosition) -> str:
        return "(" + " and ".join(part.python(at) for part in self.parts) + ")"

    def sql(self, at: SqlPosition) -> str:
        return "(" + " AND ".join(part.sql(at) for part in self.parts) + ")"

    def words(self, kind: str) -> str:
        return "; ".join(part.words(kind) for part in self.parts)

    def inline(self, kind: str) -> str:
        """The same inside another condition."""
        return "(" + " and ".join(_inline(part, kind) for part in self.parts) + ")"


@dataclass(frozen=True, slots=True)
class AnyOf(Condition):
    """At least one part holds."""

    parts: tuple[Condition, ...]

    def python(self, at: SqlPosition) -> str:
        return "(" + " or ".join(part.python(at) for part in self.parts) + ")"

    def sql(self, at: SqlPosition) -> str:
        return "(" + " OR ".join(part.sql(at) for part in self.parts) + ")"

    def words(self, kind: str) -> str:
        return " or ".join(_inline(part, kind) for part in self.parts)

    def inline(self, kind: str) -> str:
        """The same inside another condition."""
        return f"({self.words(kind)})"


def _inline(condition: Condition, kind: str) -> str:
    return condition.inline(kind) if isinstance(condition, AllOf | AnyOf) else condition.words(kind)


@dataclass(frozen=True, slots=True)
class Can(Condition):
    """The member has an action on the resource, by whatever path of its table."""

    action: str

    def python(self, at: SqlPosition) -> str:
        return f"book.allows({at.thing}.kind, {self.action!r})({at.member}, {at.thing})"

    def sql(self, at: SqlPosition) -> str:
        return book_sql(at, self.action)

    def words(self, kind: str) -> str:
        return self.action


def book_sql(at: SqlPosition, action: str) -> str:
    """That some path of the table at hand grants this action."""
    parts = [path.condition.sql(at) for path in at.book.granting(at.kind, action)]
    return "(" + " OR ".join(parts) + ")" if parts else "FALSE"


@dataclass(frozen=True, slots=True)
class OnRelated(Condition):
    """A condition about the one resource that this one hangs on; false if there is none."""

    relation: str
    inner: Condition

    def python(self, at: SqlPosition) -> str:
        relation = RELATIONS[at.kind, self.relation]
        below = at.below(relation.kind)
        other = relation.python.format(t=at.thing)
        return f"(({below.thing} := {other}) is not None and {self.inner.python(below)})"

    def sql(self, at: SqlPosition) -> str:
        relation = RELATIONS[at.kind, self.relation]
        below, kind = at.below(relation.kind), KINDS[relation.kind]
        link = relation.link.format(x=below.thing, t=at.thing)
        where = kind.where.format(t=below.thing)
        return f"EXISTS (SELECT 1 FROM {kind.table} {below.thing} WHERE {link} AND {where} AND {self.inner.sql(below)})"

    def words(self, kind: str) -> str:
        relation = RELATIONS[kind, self.relation]
        if isinstance(self.inner, Atom) and self.inner.text.startswith("is "):
            return f"{relation.words} {self.inner.text}"
        if isinstance(self.inner, OnRelated):
            return self.inner.words(relation.kind).replace("its ", f"{relation.words}'s ", 1)
        return f"{_inline(self.inner, relation.kind)} on {relation.words}"


@dataclass(frozen=True, slots=True)
class AllRelated(Condition):
    """A condition about each of the resources that this one names; true if it names none."""

    collection: str
    inner: Condition

    def python(self, at: SqlPosition) -> str:
        collection = COLLECTIONS[at.kind, self.collection]
        below = at.below(collection.kind)
        holds = f"{below.thing} is not None and {self.inner.python(below)}"
        return f"all({holds} for {below.thing} in {at.thing}.{collection.attribute})"

    def sql(self, at: SqlPosition) -> str:
        collection = COLLECTIONS[at.kind, self.collection]
        below = at.below(collection.kind)
        rows = collection.rows.format(x=below.thing, t=at.thing)
        return f"NOT EXISTS (SELECT 1 FROM {rows} AND {self.inner.sql(below)} IS NOT TRUE)"

    def words(self, kind: str) -> str:
        collection = COLLECTIONS[kind, self.collection]
        return f"{_inline(self.inner, collection.kind)} on every {collection.words}"


@dataclass(frozen=True, slots=True)
class AnyRelated(Condition):
    """A condition about at least one of the resources that this one names."""

    collection: str
    inner: Condition

    def python(self, at: SqlPosition) -> str:
        collection = COLLECTIONS[at.kind, self.collection]
        below = at.below(collection.kind)
        holds = f"{below.thing} is not None and {self.inner.python(below)}"
        return f"any({holds} for {below.thing} in {at.thing}.{collection.attribute})"

    def sql(self, at: SqlPosition) -> str:
        collection = COLLECTIONS[at.kind, self.collection]
        below = at.below(collection.kind)
        rows = collection.rows.format(x=below.thing, t=at.thing)
        return f"EXISTS (SELECT 1 FROM {rows} AND {self.inner.sql(below)})"

    def words(self, kind: str) -> str:
        collection = COLLECTIONS[kind, self.collection]
        return f"{_inline(self.inner, collection.kind)} on at least one {collection.words}"


@dataclass(frozen=True, slots=True)
class NotEmpty(Condition):
    """The resource names at least one of these. A state, not a right."""

    collection: str

    def python(self, at: SqlPosition) -> str:
        return f"bool({at.thing}.{COLLECTIONS[at.kind, self.collection].attribute})"

    def sql(self, at: SqlPosition) -> str:
        below = at.below(COLLECTIONS[at.kind, self.collection].kind)
        rows = COLLECTIONS[at.kind, self.collection].rows.format(x=below.thing, t=at.thing)
        return f"EXISTS (SELECT 1 FROM {rows})"

    def words(self, kind: str) -> str:
        return f"there is a {COLLECTIONS[kind, self.collection].words}"


@dataclass(frozen=True, slots=True)
class NoneOf(Condition):
    """The resource names none of these. A state, not a right."""

    collection: str

    def python(self, at: SqlPosition) -> str:
        return f"not {at.thing}.{COLLECTIONS[at.kind, self.collection].attribute}"

    def sql(self, at: SqlPosition) -> str:
        below = at.below(COLLECTIONS[at.kind, self.collection].kind)
        rows = COLLECTIONS[at.kind, self.collection].rows.format(x=below.thing, t=at.thing)
        return f"NOT EXISTS (SELECT 1 FROM {rows})"

    def words(self, kind: str) -> str:
        return f"there is no {COLLECTIONS[kind, self.collection].words}"


@dataclass(frozen=True, slots=True)
class OfMember(Condition):
    """A condition about another member, whom the resource names, in place of the caller; false if there is none."""

    person: str
    inner: Condition

    def python(self, at: SqlPosition) -> str:
        there = at.as_person()
        person = PERSONS[at.kind, self.person].attribute
        return f"(({there.member} := {at.thing}.{person}) is not None and {self.inner.python(there)})"

    def sql(self, at: SqlPosition) -> str:
        there = at.as_person()
        person = PERSONS[at.kind, self.person].id_sql.format(t=at.thing)
        return (
            f"EXISTS (SELECT 1 FROM members {there.member} WHERE {there.member}.id = {person} "
            f"AND {there.member}.removed_at IS NULL AND {self.inner.sql(there)})"
        )

    def words(self, kind: str) -> str:
        return f"{PERSONS[kind, self.person].words} has {_inline(self.inner, kind)}"


@dataclass(frozen=True, slots=True)
class Term(Condition):
    """A condition that several tables share and that has a name; the book says what it means. Levels are 1 to 3."""

    name: str
    level: int = 0

    def python(self, at: SqlPosition) -> str:
        return at.book.meaning(self).python(at)

    def sql(self, at: SqlPosition) -> str:
        return at.book.meaning(self).sql(at)

    def words(self, kind: str) -> str:
        level = f"{LEVEL_NAMES[self.level].title()} " if self.level else ""
        return f"{level}{self.name}".strip()


def all_of(*parts: Condition) -> AllOf:
    """Every part holds."""
    return AllOf(parts)


def any_of(*parts: Condition) -> AnyOf:
    """At least one part holds."""
    return AnyOf(parts)
