"""Two tables with sealed columns, as a slice would have them, and what tests do with them."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count

from sqlalchemy import Column, Integer, MetaData, String, Table, Text, insert, select, update

from headgate.kit.database import Database
from headgate.kit.encryption import PLACES, PURPOSE, Sealer, row_name
from headgate.kit.key_file import KeyFile, KeyRing
from headgate.platform.secrets import rotation

METADATA = MetaData()
ITEMS = Table(
    "vault_items",
    METADATA,
    Column("id", String(40), primary_key=True),
    Column("secret", Text),
    Column("note", Text),
)
PAIRS = Table(
    "vault-pairs",
    METADATA,
    Column("order", String(40), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("secret", Text, nullable=False),
)


@contextmanager
def registered() -> Iterator[None]:
    """These columns are the only sealed ones."""
    before, places = list(rotation.SEALED), set(PLACES)
    rotation.SEALED.clear()
    PLACES.clear()
    for table, column in ((ITEMS, "secret"), (ITEMS, "note"), (PAIRS, "secret")):
        rotation.register(table, column)
    try:
        yield
    finally:
        rotation.SEALED[:] = before
        PLACES.clear()
        PLACES.update(places)


@dataclass
class Clock:
    """A clock that moves when it is told to."""

    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __call__(self) -> datetime:
        return self.at

    def pass_(self, by: timedelta) -> None:
        self.at += by


class Vault:
    """A database with sealed rows, and the key file they need."""

    def __init__(self, database: Database, keys: KeyFile) -> None:
        self.database, self.keys = database, keys
        self.numbers = count()

    @property
    def ring(self) -> KeyRing:
        """The keys as the file has them."""
        return self.keys.ring(PURPOSE)

    def fill(self, size: int) -> dict[str, str]:
        """Add rows to both tables; their texts."""
        sealer = Sealer(self.keys)
        numbers = [next(self.numbers) for _ in range(size)]
        items = [
            {"id": f"i{n}", "secret": sealer.seal(f"secret {n}", ITEMS.name, f"i{n}", "secret"), "note": None}
            for n in numbers
        ]
        pairs = [
            {"order": "ab"[n % 2], "number": n, "secret": sealer.seal(f"pair {n}", PAIRS.name, name, "secret")}
            for n in numbers
            if (name := row_name("ab"[n % 2], n))
        ]
        for item in items[::3]:
            item["note"] = sealer.seal(f"note of {item['id']}", ITEMS.name, str(item["id"]), "note")
        self.database.write(lambda connection: connection.execute(insert(ITEMS), items) and None)
        self.database.write(lambda connection: connection.execute(insert(PAIRS), pairs) and None)
        return self.texts()

    def texts(self) -> dict[str, str]:
        """What every value holds, opened by a process that has just started."""
        sealer, found = Sealer(self.keys), {}
        with self.database.read() as connection:
            for row in connection.execute(select(ITEMS)):
                found[row.id] = sealer.open(row.secret, ITEMS.name, row.id, "secret")
                if row.note is not None:
                    found[f"{row.id} note"] = sealer.open(row.note, ITEMS.name, row.id, "note")
            for order, number, secret in connection.execute(select(PAIRS)):
                found[f"p{number}"] = sealer.open(secret, PAIRS.name, row_name(order, number), "secret")
        return found

    def usage(self) -> Counter[str | None]:
        """How many values use each key."""
        with self.database.read() as connection:
            return rotation.usage(connection)

    def stored(self, item: str) -> str:
        """A sealed value as the database has it."""
        with self.database.read() as connection:
            return str(connection.execute(select(ITEMS.c.secret).where(ITEMS.c.id == item)).scalar_one())

    def store(self, item: str, value: str) -> None:
        """Put a value in place of an item's secret."""
        change = update(ITEMS).where(ITEMS.c.id == item).values(secret=value)
        self.database.write(lambda connection: connection.execute(change) and None)

    def set(self, item: str, text: str, sealer: Sealer) -> None:
        """Change a secret as a server does: sealed within the transaction that stores it."""

        def work(connection: object) -> None:
            value = sealer.seal(text, ITEMS.name, item, "secret")
            connection.execute(update(ITEMS).where(ITEMS.c.id == item).values(secret=value))  # type: ignore[attr-defined]

        self.database.write(work)
