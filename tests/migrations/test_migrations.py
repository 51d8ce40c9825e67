"""Migrations make exactly the tables that the models describe, on both databases."""

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import event, text

from headgate.kit import schema_version as version
from headgate.kit.database import Database
from headgate.migrations import FOLDER, upgrade
from headgate.schema import METADATA

pytestmark = pytest.mark.both_databases


def test_the_migrations_make_what_the_models_say(database_url: str) -> None:
    database = Database(database_url)
    assert version.current(database) is None
    upgrade(database.engine)
    upgrade(database.engine)
    assert version.current(database) == version.NEEDED
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []
        assert connection.execute(text("SELECT plan FROM organization")).scalar_one() == "growth"
        assert connection.execute(text("SELECT name FROM groups")).scalar_one() == "All"
    database.close()


def test_the_code_needs_the_newest_version() -> None:
    config = Config()
    config.set_main_option("script_location", str(FOLDER))
    assert ScriptDirectory.from_config(config).get_heads() == [version.NEEDED]


def test_a_migration_that_fails_leaves_nothing_behind(database_url: str) -> None:
    database = Database(database_url)

    def trip(connection: object, cursor: object, statement: str, *_: object) -> None:
        if "CREATE TABLE pipelines" in statement:
            raise RuntimeError("power cut")

    event.listen(database.engine, "before_cursor_execute", trip)
    with pytest.raises(RuntimeError, match="power cut"):
        upgrade(database.engine)
    event.remove(database.engine, "before_cursor_execute", trip)
    assert version.current(database) is None
    upgrade(database.engine)
    assert version.current(database) == version.NEEDED
    database.close()
