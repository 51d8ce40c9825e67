"""`headgate db`: the schema version of the database."""

import typer

from headgate.cli.commands import command
from headgate.cli.output import Json, print_json

app = typer.Typer(help="The schema version of the database.", no_args_is_help=True, rich_markup_mode=None)


@command(app)
def upgrade(as_json: Json = False) -> None:
    """Migrate the database to the schema version that this Headgate needs. Back up the database first."""
    from headgate.kit import schema_version
    from headgate.kit.database import Database
    from headgate.kit.errors import Conflict
    from headgate.migrations import upgrade as run
    from headgate.settings.settings import load

    database = Database(load().database_url, pool_size=2)
    try:
        before = schema_version.current(database)
        if before == "":
            raise Conflict(
                "the database contains tables that are not Headgate's; set `database.url` to an empty database"
            )
        if before is not None and before > schema_version.NEEDED:
            raise Conflict(
                f"the database has schema version {before}, which is newer than the version of this Headgate "
                f"({schema_version.NEEDED}); install a newer Headgate"
            )
        run(database.engine)
    finally:
        database.close()
    if as_json:
        print_json({"before": before, "now": schema_version.NEEDED})
    else:
        state = "already" if before == schema_version.NEEDED else "now"
        print(f"The database has schema version {schema_version.NEEDED} {state}.")


@command(app)
def status(as_json: Json = False) -> None:
    """Print the schema version of the database and the version that this Headgate needs."""
    from pathlib import Path

    from sqlalchemy.engine import make_url

    from headgate.kit import schema_version
    from headgate.kit.database import Database
    from headgate.settings.settings import load

    address = load().database_url
    url = make_url(address)
    result = None
    if url.get_backend_name() != "sqlite" or Path(url.database or "").is_file():
        database = Database(address, pool_size=2)
        try:
            result = schema_version.current(database)
        finally:
            database.close()
    if as_json:
        print_json({"database": result, "needed": schema_version.NEEDED})
        return
    print(f"database: {result or 'empty'}\nneeded:   {schema_version.NEEDED}")
    if result != schema_version.NEEDED:
        print("Run `headgate db upgrade`.")
