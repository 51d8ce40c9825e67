"""Key rotation of sealed columns, while servers are running; it can be interrupted and resumed.

First the key file gets a new key and a rotation mark; from then on servers seal with that key and open with all keys.
Then every row is resealed in small transactions, each only if it has not changed since it was read. Last, the mark is
removed together with unused keys. Each step is repeatable: a rotation that finds the mark continues where the previous
one stopped, or helps one that is still running.

A key is dropped only after it has not been the newest for `GRACE`: until then a server may hold an uncommitted value
sealed with it. A rotation that found rows under a key does not drop it either, because somebody may just have read
them. A rotation also keeps the previous key; `prune` drops that one as well.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import Column, Connection, Select, Table, func, literal_column, select, tuple_, update
from sqlalchemy.exc import DBAPIError

from headgate.kit.clock import now
from headgate.kit.database import Busy, Database
from headgate.kit.encryption import (
    PLACES,
    PREFIX_LENGTH,
    PURPOSE,
    CannotOpen,
    Sealer,
    key_id_of,
    prefix_of,
    row_name,
)
from headgate.kit.key_file import Generation, KeyFile, KeyRing

GRACE = timedelta(hours=1)
BATCH = 100
LOCK_WAIT = timedelta(seconds=2)
MAX_FAULTS = 20
_LOCK_NOT_AVAILABLE = "55P03"

Report = Callable[[int, int], None]
"""Progress callback: the number of resealed rows, and the total."""
Usage = Counter[str | None]
"""The number of values per key id; None for values that are not sealed."""


@dataclass(frozen=True, slots=True)
class SealedColumn:
    """A column with sealed values, and the key columns of its table."""

    table: Table
    key: tuple[Column[Any], ...]
    column: Column[Any]

    def place(self, key: Sequence[object]) -> tuple[str, str, str]:
        """The table, row and column that a value is bound to."""
        return self.table.name, row_name(*key), self.column.name

    @property
    def prefix(self) -> Any:
        """SQL for the prefix of a value, which contains the key id."""
        return func.substr(self.column, literal_column("1"), literal_column(str(PREFIX_LENGTH)))

    def others(self, key_id: str, after: Sequence[Any] | None) -> Select[Any]:
        """The next rows, in key order, that use another key than this one."""
        query = select(*self.key, self.column).where(self.prefix != prefix_of(key_id))
        if after is not None:
            query = query.where(tuple_(*self.key) > tuple(after))
        return query.order_by(*self.key).limit(BATCH)

    def replace(self, connection: Connection, key: Sequence[Any], old: str, new: str) -> int:
        """Replace the old value with the new one; 0 if the row has changed since."""
        row = [column == value for column, value in zip(self.key, key, strict=True)]
        change = update(self.table).where(*row, self.column == old).values({self.column.name: new})
        return connection.execute(change).rowcount


SEALED: list[SealedColumn] = []
"""All columns with sealed values, once headgate.schema is imported."""


def register(table: Table, column: str) -> None:
    """Register a column with sealed values. Call it next to the table, so that no rotation misses the column."""
    if (table.name, column) in PLACES:
        return
    key = tuple(table.primary_key.columns)
    if not key or table.c[column] in key:
        raise ValueError(
            f"{table.name}.{column} cannot be encrypted: its table requires a primary key that is not encrypted"
        )
    SEALED.append(SealedColumn(table, key, table.c[column]))
    PLACES.add((table.name, column))


@dataclass(frozen=True, slots=True)
class RotationResult:
    """The result of a rotation: the newest key, the number of resealed rows, dropped keys, and rows that cannot be
    opened, with reasons.
    """

    key: str
    resumed: bool
    resealed: int
    dropped: tuple[str, ...]
    unopened: int
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeyStatus:
    """A key and the number of rows that use it: current, older, or missing from the key file."""

    id: str
    state: str
    made: datetime | None
    rows: int


@dataclass(frozen=True, slots=True)
class Status:
    """All keys, whether a rotation is in progress or was interrupted, and the number of unsealed values."""

    keys: tuple[KeyStatus, ...]
    rotating: bool
    unsealed: int


def _nothing(_done: int, _total: int) -> None:
    """No progress report."""


def rotate(
    database: Database, keys: KeyFile, report: Report = _nothing, clock: Callable[[], datetime] = now
) -> RotationResult:
    """Create a new key and reseal every row with it, or complete the rotation in progress."""
    resumed = False

    def begin(ring: KeyRing) -> KeyRing:
        nonlocal resumed
        resumed = ring.rotating
        return ring if resumed else ring.turned(clock(), rotating=True)

    keys.change(PURPOSE, begin)
    resealed = _reseal(database, Sealer(keys), report)
    return _outcome(resealed, resumed, _settle(database, keys, resealed, clock(), keep_previous=True))


def prune(
    database: Database, keys: KeyFile, report: Report = _nothing, clock: Callable[[], datetime] = now
) -> RotationResult:
    """Reseal remaining rows with the newest key, and drop all older unused keys."""
    resumed = keys.ring(PURPOSE).rotating
    resealed = _reseal(database, Sealer(keys), report)
    return _outcome(resealed, resumed, _settle(database, keys, resealed, clock(), keep_previous=False))


def usage(connection: Connection) -> Usage:
    """The number of values per key."""
    counts: Usage = Counter()
    for sealed in SEALED:
        query = select(sealed.prefix, func.count()).where(sealed.column.is_not(None)).group_by(sealed.prefix)
        for prefix, count in connection.execute(query):
            counts[key_id_of(prefix)] += count
    return counts


def status(connection: Connection, keys: KeyFile) -> Status:
    """All keys in the file, newest first, then those that rows need and the file lacks."""
    used, ring = usage(connection), keys.ring(PURPOSE)
    statuses = [
        KeyStatus(
            generation.id, "current" if generation is ring.current else "older", generation.made, used[generation.id]
        )
        for generation in reversed(ring.generations)
    ]
    missing = sorted(key_id for key_id in used if key_id is not None and ring.get(key_id) is None)
    lost = [KeyStatus(key_id, "missing", None, used[key_id]) for key_id in missing]
    return Status((*statuses, *lost), ring.rotating, used[None])


@dataclass(slots=True)
class _Resealed:
    """The progress of resealing: earlier key usage, the target key, and values that the last pass could not open."""

    before: Usage
    target: str
    done: int = 0
    unopened: int = 0
    faults: tuple[str, ...] = ()


def _reseal(database: Database, sealer: Sealer, report: Report) -> _Resealed:
    """Process all rows until a pass finds none left to reseal."""
    with database.read() as connection:
        resealed = _Resealed(usage(connection), sealer.current().id)
    total = resealed.before.total() - resealed.before[resealed.target]
    while _pass(database, sealer, resealed, lambda done: report(done, total)):
        pass
    return resealed


def _pass(database: Database, sealer: Sealer, resealed: _Resealed, report: Callable[[int], None]) -> bool:
    """Reseal values that use another key than the newest; returns whether there were any."""
    resealed.target, resealed.unopened, resealed.faults = sealer.current().id, 0, ()
    any_left = False
    for sealed in SEALED:
        for rows in _batches(database, sealer, sealed):
            changes = list(_sealed_anew(sealer, sealed, rows, resealed))
            any_left = any_left or bool(changes)
            resealed.done += database.write(partial(_replace, sealed=sealed, changes=changes))
            report(resealed.done)
    return any_left


def _batches(database: Database, sealer: Sealer, sealed: SealedColumn) -> Iterator[Sequence[Any]]:
    after: Sequence[Any] | None = None
    while True:
        with database.read() as connection:
            rows = connection.execute(sealed.others(sealer.current().id, after)).all()
        if rows:
            yield rows
        if len(rows) < BATCH:
            return
        after = rows[-1][:-1]


_Change = tuple[Sequence[Any], str, str]


def _sealed_anew(sealer: Sealer, sealed: SealedColumn, rows: Sequence[Any], resealed: _Resealed) -> Iterator[_Change]:
    """The key, old value and new value of each row; rows that cannot be opened are recorded and left unchanged."""
    for *key, old in rows:
        place = sealed.place(key)
        try:
            yield key, old, sealer.seal(sealer.open_bytes(old, *place), *place)
        except CannotOpen as error:
            resealed.unopened += 1
            if resealed.unopened <= MAX_FAULTS:
                resealed.faults = (*resealed.faults, str(error))


def _replace(connection: Connection, sealed: SealedColumn, changes: Sequence[_Change]) -> int:
    return sum(sealed.replace(connection, *change) for change in changes)


def _settle(
    database: Database, keys: KeyFile, resealed: _Resealed, at: datetime, *, keep_previous: bool
) -> tuple[str, ...]:
    """Complete the rotation to the reached key and drop unused keys; returns them."""
    dropped: dict[str, None] = {}

    def end(ring: KeyRing, without: Sequence[str]) -> KeyRing:
        dropped.update(dict.fromkeys(without))
        remaining = tuple(generation for generation in ring.generations if generation.id not in without)
        return KeyRing(remaining, ring.rotating and ring.current.id != resealed.target)

    def spare(ring: KeyRing, *used: Usage) -> list[str]:
        ids = [generation.id for generation in _followed(ring, at, keep_previous=keep_previous)]
        return [key_id for key_id in ids if not any(counts[key_id] for counts in used)]

    def drop(connection: Connection) -> None:
        """Count again under a lock that prevents new rows, and drop the keys."""
        _hold_still(connection)
        keys.change(PURPOSE, lambda ring: end(ring, spare(ring, resealed.before, usage(connection))))

    if spare(keys.ring(PURPOSE), resealed.before):
        _write_held(database, drop)
    else:
        keys.change(PURPOSE, lambda ring: end(ring, ()))
    return tuple(dropped)


def _write_held(database: Database, work: Callable[[Connection], None]) -> None:
    """Run the work in one transaction; fail if others hold the table locks too long."""
    try:
        database.write(work)
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) == _LOCK_NOT_AVAILABLE:
            raise Busy from error
        raise


def _followed(ring: KeyRing, at: datetime, *, keep_previous: bool) -> list[Generation]:
    """Keys that may be dropped if no row uses them: those replaced long enough ago."""
    followed = list(zip(ring.generations, ring.generations[1:], strict=False))
    if keep_previous:
        followed = followed[:-1]
    return [generation for generation, following in followed if at - following.made >= GRACE]


def _hold_still(connection: Connection) -> None:
    """Lock the sealed tables against writes. On SQLite, every write does so."""
    if connection.dialect.name != "postgresql" or not SEALED:
        return
    tables = sorted({connection.dialect.identifier_preparer.format_table(sealed.table) for sealed in SEALED})
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = {LOCK_WAIT // timedelta(milliseconds=1)}")
    connection.exec_driver_sql(f"LOCK TABLE {', '.join(tables)} IN SHARE MODE")


def _outcome(resealed: _Resealed, resumed: bool, dropped: tuple[str, ...]) -> RotationResult:
    return RotationResult(resealed.target, resumed, resealed.done, dropped, resealed.unopened, resealed.faults)
