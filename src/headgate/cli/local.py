"""How commands that work on this machine's own installation reach its database; they never make one."""

from collections.abc import Iterator
from contextlib import contextmanager

from headgate.config import Settings, load
from headgate.kit.db import Database
from headgate.supervisor.preflight import existing


@contextmanager
def installation() -> Iterator[tuple[Settings, Database]]:
    """The settings and the database of the installation here; NotReady if there is none."""
    settings = load()
    database = existing(settings)
    try:
        yield settings, database
    finally:
        database.close()
