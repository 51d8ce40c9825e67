"""`headgate db`: the database's version."""

import typer

from headgate.cli.output import Json, print_json, told

app = typer.Typer(help="The database's version.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
@told
def upgrade(as_json: Json = False) -> None:
    """Bring the database to the version that this Headgate needs. Back it up first."""
    from headgate.kit import schema_version
    from headgate.kit.database import Database
    from headgate.kit.errors import Conflict
    from headgate.migrations import upgrade as run
    from headgate.settings.settings import load

    database = Database(load().database_url, pool_size=2)
    try:
        before = schema_version.current(database)
        if before == "":
            raise Conflict("the database has tables that are not Headgate's; give `database.url` an empty one")
        if before is not None and before > schema_version.NEEDED:
            raise Conflict(f"the database is of version {before}, newer than this Headgate ({schema_version.NEEDED})")
        run(database.engine)
    finally:
        database.close()
    if as_json:
        print_json({"before": before, "now": schema_version.NEEDED})
    else:
        state = "already" if before == schema_version.NEEDED else "now"
        print(f"The database has version {schema_version.NEEDED} {state}.")


@app.command()
@told
def status(as_json: Json = False) -> None:
    """Say which version the database has, and which this Headgate needs."""
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
