"""The audience index: for each resource, the keys by whose holders it is listed. Derived from the rule tables.

A path such as *shared for reporting* (toggle on, role technical or business, in scope) splits into what the resource
says (the toggle), what the member says (the role), and the value in which the two must meet (a context, or `*` for an
entire scope). The resource is filed under one key a value; a member holds the keys whose value is theirs and whose
member side they meet. A list is then one sorted stream a key, however many resources there are.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from headgate.access.atoms import MEMBER, RESOURCE
from headgate.access.audience_keys import Meeting, MemberValues, Source, meeting_of
from headgate.access.book import BOOK, RuleBook
from headgate.access.conditions import AllOf, AnyOf, Atom, Can, Condition, OnRelated, SqlPosition, Term
from headgate.access.kinds import KINDS, RELATIONS
from headgate.access.sql import ACTIVE


@dataclass(frozen=True, slots=True)
class ListingPath:
    """One way to be listed: joins and filters on the resource, a meeting, and conditions on the member."""

    joins: tuple[str, ...] = ()
    filters: frozenset[str] = frozenset()
    meeting: Meeting | None = None
    members: frozenset[str] = frozenset()

    @property
    def code(self) -> str:
        """A short name for the resource's side of it."""
        text = "|".join((*self.joins, *sorted(self.filters), self.meeting.name if self.meeting else ""))
        return hashlib.sha256(text.encode()).hexdigest()[:6]

    def covers(self, other: "ListingPath") -> bool:
        """Whether everyone whom the other way lists is listed by this one."""
        return (
            other.joins[: len(self.joins)] == self.joins
            and self.filters <= other.filters
            and self.members <= other.members
            and (self.meeting is None or self.meeting == other.meeting)
        )


IN_LAYERS = frozenset({"table", "volume"})


class Unsupported(TypeError):
    """A rule of a shape that the index cannot hold; the rule needs another shape, or the index a new meeting."""


# From rule tables to ways


def implies(a: Condition, b: Condition, book: RuleBook, kind: str) -> bool:
    """Whether a, by its shape alone, holds only where b does."""
    if a == b:
        return True
    match a, b:
        case _, AllOf():
            return all(implies(a, part, book, kind) for part in b.parts)
        case AnyOf(), _:
            return all(implies(part, b, book, kind) for part in a.parts)
        case AllOf(), _:
            return any(implies(part, b, book, kind) for part in a.parts)
        case _, AnyOf():
            return any(implies(a, part, book, kind) for part in b.parts)
        case Atom(), Atom():
            return _narrower(a.name, b.name)
        case Term(), Term():
            return a.name == b.name and a.level >= b.level
        case OnRelated(), OnRelated() if a.relation == b.relation:
            return implies(a.inner, b.inner, book, RELATIONS[kind, a.relation].kind)
        case Can(), Can():
            return all(
                any(implies(path.condition, other.condition, book, kind) for other in book.granting(kind, b.action))
                for path in book.granting(kind, a.action)
            )
    return False


def _narrower(a: str, b: str) -> bool:
    """Whether an atom asks for the same as another, with fewer options, or for a higher level."""
    family, _, options = a.partition(":")
    other, _, wanted = b.partition(":")
    if family == other == "granted":
        return int(options) >= int(wanted)
    return bool(options) and family == other and set(options.split(",")) <= set(wanted.split(","))


def _needed(book: RuleBook, kind: str) -> list[Condition]:
    """The conditions that list resources of a kind, without those that another makes redundant."""
    conditions = [path.condition for path in book.granting(kind, book.tables[kind].listed_by)]

    kept: list[Condition] = []
    for index, condition in enumerate(conditions):
        others = kept + conditions[index + 1 :]
        if not any(implies(condition, other, book, kind) for other in others):
            kept.append(condition)
    return kept


def _split(condition: Condition, at: SqlPosition) -> list[ListingPath]:
    """The ways in which a condition can hold."""
    match condition:
        case Atom() if condition.about == MEMBER:
            return [ListingPath(members=frozenset({condition.sql(at)}))]
        case Atom() if condition.about == RESOURCE:
            return [ListingPath(filters=frozenset({condition.sql(at)}))]
        case Atom() | Term():
            meeting = meeting_of(condition, at)
            if meeting:
                return [ListingPath(meeting=meeting)]
        case AllOf():
            return [_merge(ways) for ways in product(*(_split(part, at) for part in condition.parts))]
        case AnyOf():
            return [way for part in condition.parts for way in _split(part, at)]
        case OnRelated():
            return _split_relation(condition, at)
        case Can():
            return [way for path in at.book.granting(at.kind, condition.action) for way in _split(path.condition, at)]
    raise Unsupported(f"the audience index cannot hold {condition!r}")


def _split_relation(condition: OnRelated, at: SqlPosition) -> list[ListingPath]:
    relation = RELATIONS[at.kind, condition.relation]
    below, kind = at.below(relation.kind), KINDS[relation.kind]
    link = relation.link.format(x=below.thing, t=at.thing)
    join = f"JOIN {kind.table} {below.thing} ON {link} AND {kind.where.format(t=below.thing)}"
    return [replace(way, joins=(join, *way.joins)) for way in _split(condition.inner, below)]


def _merge(ways: tuple[ListingPath, ...]) -> ListingPath:
    meetings = [way.meeting for way in ways if way.meeting]
    if len(meetings) > 1:
        raise Unsupported("the audience index cannot hold a path with two meetings: " + str(meetings))
    return ListingPath(
        tuple(join for way in ways for join in way.joins),
        frozenset().union(*(way.filters for way in ways)),
        meetings[0] if meetings else None,
        frozenset().union(*(way.members for way in ways)),
    )


@dataclass(frozen=True, slots=True)
class Inherited:
    """A relation whose audience a kind takes over: whoever lists the one lists the other."""

    relation: str
    kind: str
    column: str


@dataclass(frozen=True, slots=True)
class Audience:
    """How resources of one kind are listed."""

    kind: str
    ways: tuple[ListingPath, ...]
    inherited: tuple[Inherited, ...] = ()
    sources: tuple["Audience", ...] = ()


def audience(kind: str, book: RuleBook = BOOK) -> Audience:
    """How resources of a kind are listed, as the rule tables say."""
    ways: list[ListingPath] = []
    inherited: list[Inherited] = []
    at = book.at(kind)
    for condition in _needed(book, kind):
        taken = _inherits(condition, book, kind)
        if taken:
            inherited.append(taken)
        else:
            ways.extend(_split(condition, at))
    kept = tuple(
        way
        for n, way in enumerate(ways)
        if not any(other.covers(way) and (not way.covers(other) or m < n) for m, other in enumerate(ways) if m != n)
    )
    return Audience(kind, kept, tuple(inherited), tuple(audience(inherited.kind, book) for inherited in inherited))


def _inherits(condition: Condition, book: RuleBook, kind: str) -> Inherited | None:
    match condition:
        case OnRelated(relation=name, inner=Can(action=action)):
            relation = RELATIONS[kind, name]
            listed_by = book.tables[relation.kind].listed_by
            if set(book.granting(relation.kind, action)) == set(book.granting(relation.kind, listed_by)):
                return Inherited(name, relation.kind, relation.link.removeprefix("{x}.id = {t}."))
    return None


# From ways to statements


def _keyed(kind: str, origin: str, way: ListingPath, value: str) -> str:
    return f"'{kind}|{origin}.{way.code}:' || {value}"


def _entries(audience: Audience, only: str) -> Iterator[str]:
    """SELECTs of (resource_id, key, expires_at) for the resources of a kind; `only` narrows by `{id}`."""
    kind = KINDS[audience.kind]
    for way in audience.ways:
        for source in way.meeting.sources if way.meeting else (Source("''"),):
            join = source.join.replace("{only}", only.format(id="resource_id"))
            conditions = [kind.where.format(t="r"), only.format(id="r.id"), *sorted(way.filters)]
            if source.value.endswith("_id"):
                conditions.append(f"{source.value} IS NOT NULL")
            yield (
                f"SELECT r.id AS resource_id, {_keyed(audience.kind, audience.kind, way, source.value)} AS key, "
                f"{source.expires} AS expires_at FROM {kind.table} r {' '.join(way.joins)} {join} "
                f"WHERE {' AND '.join(conditions)}"
            )
    for inherited in audience.inherited:
        yield (
            f"SELECT r.id AS resource_id, '{audience.kind}' || SUBSTR(pa.key, {len(inherited.kind) + 1}) AS key, "
            f"pa.expires_at AS expires_at FROM {kind.table} r "
            f"JOIN audience pa ON pa.resource_id = r.{inherited.column} "
            f"AND SUBSTR(pa.key, 1, {len(inherited.kind) + 1}) = '{inherited.kind}|' "
            f"WHERE {kind.where.format(t='r')} AND {only.format(id='r.id')}"
        )


def sort_name(kind: str) -> str:
    """SQL for the name by which lists sort a resource `rs`: a table's or volume's begins with its layer's."""
    if kind not in IN_LAYERS:
        return "rs.name_key"
    return "(SELECT sl.name_key FROM resources sl WHERE sl.id = rs.scope_id) || '.' || rs.name_key"


def fill(kind: str, only: str = "TRUE", book: RuleBook = BOOK) -> str:
    """The statement that files resources of a kind; `only` narrows it, with `{id}` for the resource's id."""
    return (
        "INSERT INTO audience (resource_id, key, name_key, created_at, updated_at, creator_key, expires_at) "
        f"SELECT e.resource_id, e.key, {sort_name(kind)}, rs.created_at, rs.updated_at, COALESCE(cr.name_key, ''), "
        "e.expires_at FROM (SELECT resource_id, key, "
        "CASE WHEN COUNT(*) > COUNT(expires_at) THEN NULL ELSE MAX(expires_at) END AS expires_at "
        f"FROM ({' UNION ALL '.join(_entries(audience(kind, book), only))}) found GROUP BY resource_id, key) e "
        "JOIN resources rs ON rs.id = e.resource_id "
        "LEFT JOIN members cr ON cr.id = rs.created_by_id AND cr.removed_at IS NULL"
    )


def _held(audience: Audience, prefix: str) -> Iterator[str]:
    for way in audience.ways:
        for holding in way.meeting.holdings if way.meeting else (MemberValues("''"),):
            conditions = [ACTIVE, holding.where, *sorted(way.members)]
            yield (
                f"SELECT {_keyed(prefix, audience.kind, way, holding.value)} AS key FROM members m {holding.join} "
                f"WHERE m.id = :member AND {' AND '.join(conditions)}"
            )
    for source in audience.sources:
        yield from _held(source, prefix)


def keys(kind: str, book: RuleBook = BOOK) -> str:
    """The statement that gives the keys that `:member` holds for a kind."""
    return " UNION ALL ".join(_held(audience(kind, book), kind))


def whole_key(kind: str, book: RuleBook = BOOK) -> str | None:
    """The key under which every listed resource of a kind is filed, if there is one: who holds it needs no other."""
    result = audience(kind, book)
    for way in result.ways:
        bare = replace(way, members=frozenset())
        if way.meeting is None and all(bare.covers(replace(other, members=frozenset())) for other in result.ways):
            return f"{kind}|{kind}.{way.code}:"
    return None


def order(book: RuleBook = BOOK) -> tuple[str, ...]:
    """The kinds that have lists, those that others inherit from first."""
    done: list[str] = []
    pending = [kind for kind, rules in book.tables.items() if rules.listed_by]
    while pending:
        kind = pending.pop(0)
        if all(inherited.kind in done for inherited in audience(kind, book).inherited):
            done.append(kind)
        else:
            pending.append(kind)
    return tuple(done)
