"""Migrations make exactly the tables that the models describe, on both databases."""

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import event, text

from headgate.kit import schema_version as version
from headgate.kit.database import Database
from headgate.migrations import FOLDER, upgrade
from headgate.schema import METADATA


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


def test_credentials_of_before_count_as_tainted(database_url: str) -> None:
    database, config = Database(database_url), Config()
    config.set_main_option("script_location", str(FOLDER))
    with database.engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0009")
        member = "'mbr_1', 'Ana', 'ana', 'admin', 'entire', '2026-01-01', 'a hash'"
        connection.execute(text("INSERT INTO principals (id) VALUES ('mbr_1')"))
        columns = "id, name, name_key, role, scope, created_at, password"
        connection.execute(text(f"INSERT INTO members ({columns}) VALUES ({member})"))
        token = "'tok_1', 'mbr_1', 'old', 'x', false, false, '2026-01-01'"
        columns = "id, member_id, name, digest, read_only, listed, created_at"
        connection.execute(text(f"INSERT INTO tokens ({columns}) VALUES ({token})"))
        connection.commit()
    upgrade(database.engine)
    with database.engine.connect() as connection:
        assert connection.execute(text("SELECT tainted, origin_id FROM tokens")).one() == (True, None)
        assert connection.execute(text("SELECT password_tainted FROM members")).scalar_one() == 1
    database.close()


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
