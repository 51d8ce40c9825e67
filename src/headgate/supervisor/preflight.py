"""Checks before the start: settings, key file, and the schema version of the database."""

from pathlib import Path

from sqlalchemy import text
from sqlalchemy.engine import make_url

from headgate.kit import schema_version
from headgate.kit.database import Database
from headgate.kit.key_file import BadKeyFile
from headgate.platform.audit.signatures import sign_events
from headgate.platform.secrets.installation_keys import key_file
from headgate.settings.settings import Settings


class NotReady(Exception):
    """The reason why the server cannot start, and what to do."""


def opened(settings: Settings, pool_size: int = 2) -> Database:
    """The database of this installation; events recorded in it are marked with the installation's key."""
    database = Database(settings.database_url, pool_size=pool_size)
    sign_events(database, lambda: key_file(settings).key("audit"))
    return database


def check(settings: Settings) -> None:
    """Initialize a new installation, and reject one that this version cannot serve."""
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    database = opened(settings)
    try:
        revision = schema_version.current(database)
        _keys(settings, database if revision == schema_version.NEEDED else None)
        if revision is None:
            from headgate.migrations import upgrade  # noqa: PLC0415 - loads Alembic, once in an installation's life

            upgrade(database.engine)
        elif revision != schema_version.NEEDED:
            raise NotReady(_advice(revision, schema_version.NEEDED))
        _layers(database)
    finally:
        database.close()


def _layers(database: Database) -> None:
    """Create the layers of a new installation, also after an interrupted first start."""
    from headgate.kit.clock import now  # noqa: PLC0415
    from headgate.lakehouse.layers.defaults import make_layers  # noqa: PLC0415 - it needs the access rules

    with database.read() as connection:
        is_used = connection.execute(text("SELECT 1 FROM members UNION ALL SELECT 1 FROM layers LIMIT 1")).first()
    if is_used is None:
        database.write(lambda connection: make_layers(connection, now()))


def _keys(settings: Settings, database: Database | None) -> None:
    """Make the key file of a new installation; a lost one is not replaced, since what it sealed would be lost too."""
    keys = key_file(settings)
    if database is not None and not keys.path.exists():
        with database.read() as connection:
            if connection.execute(text("SELECT 1 FROM audit_events WHERE seal IS NOT NULL LIMIT 1")).first():
                raise NotReady(
                    f"{keys.path} is missing, and the database is encrypted with it; restore it from a backup"
                )
    try:
        keys.key("audit")
    except BadKeyFile as error:
        raise NotReady(str(error)) from None


def existing(settings: Settings) -> Database:
    """The database of an existing installation with the right schema version; nothing is created."""
    url = make_url(settings.database_url)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        raise NotReady(
            f"There is no installation in {settings.data_dir}; `headgate up` creates one. To use another "
            "directory, set HEADGATE_DATA_DIR or HEADGATE_CONFIG"
        )
    database = opened(settings)
    try:
        revision = schema_version.current(database)
        if revision is None:
            raise NotReady("The database is empty; run `headgate up` or `headgate init` to create its tables")
        if revision != schema_version.NEEDED:
            raise NotReady(_advice(revision, schema_version.NEEDED))
    except Exception:
        database.close()
        raise
    return database


def _advice(revision: str, expected: str) -> str:
    if revision == "":
        return "The database contains tables that are not Headgate's; set `database.url` to an empty database"
    if revision < expected:
        return (
            f"The database has schema version {revision}, but this Headgate needs {expected}: back it up, then "
            "run `headgate db upgrade`"
        )
    return (
        f"The database has schema version {revision}, which is newer than this Headgate ({expected}): install the "
        "newer Headgate"
    )
