"""Which version a database has, without loading the migrations."""

from sqlalchemy import inspect, text

from headgate.kit.database import Database

NEEDED = "0001"
"""The version that this code needs; a test compares it with the migrations."""


def current(database: Database) -> str | None:
    """The version of the database; None if it is empty; an empty text if it has tables but no version."""
    with database.engine.connect() as connection:
        tables = set(inspect(connection).get_table_names())
        if "alembic_version" not in tables:
            return "" if tables else None
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar() or None
