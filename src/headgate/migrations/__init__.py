"""The database's versions, and how to get from one to the next."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine

FOLDER = Path(__file__).parent


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(FOLDER))
    config.attributes["connection"] = connection
    return config


def upgrade(engine: Engine) -> None:
    """Bring the database to the version that this code needs."""
    with engine.connect() as connection:
        command.upgrade(_config(connection), "head")
        connection.commit()
