"""`headgate audit`: read the audit log, and verify that nothing in it was changed, removed or cut."""

from typing import Annotated

import typer

from headgate.cli.output import FAILED, Json, print_json, print_table, told

app = typer.Typer(help="The audit log.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
@told
def list_events(
    actor: Annotated[str | None, typer.Option(help="Only by this member, by id.")] = None,
    resource: Annotated[str | None, typer.Option(help="Only about this resource, by id.")] = None,
    event: Annotated[str | None, typer.Option(help="Only of this sort, such as access.denied.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many, newest first.")] = 50,
    as_json: Json = False,
) -> None:
    """List what was decided and changed, newest first."""
    from headgate.cli.client import connect

    with connect() as client:
        found = client.get("/api/audit", actor=actor, resource=resource, event=event, limit=limit)
    if as_json:
        print_json(found)
        return
    columns = ("id", "at", "event", "actor", "action", "kind", "resource", "allowed", "via", "sealed")
    print_table(columns, ([item[column] for column in columns] for item in found["items"]))


@app.command()
@told
def verify(as_json: Json = False) -> None:
    """Walk the whole chain of seals; exit 1 if anything was changed, removed or cut."""
    from headgate.audit.sealing import HeadFile
    from headgate.audit.sealing import verify as walk
    from headgate.config import load
    from headgate.kit.db import Database
    from headgate.supervisor.preflight import check, key_file
    from headgate.supervisor.scheduler import HEAD_FILE

    settings = load()
    check(settings)
    key = key_file(settings).key("audit")
    faults: list[str] = []
    try:
        head = HeadFile(settings.data_dir / HEAD_FILE, key).read()
    except ValueError as error:
        head = None
        faults.append(str(error))
    database = Database(settings.database_url, pool_size=2)
    try:
        with database.read() as connection:
            verdict = walk(connection, key, head)
    finally:
        database.close()
    faults += verdict.faults
    if as_json:
        print_json({"sealed": verdict.sealed, "unsealed": verdict.unsealed, "faults": faults})
    else:
        for fault in faults:
            print(f"FAULT: {fault}")
        state = "NOT intact" if faults else "intact"
        print(f"{verdict.sealed} events sealed, {verdict.unsealed} waiting to be: the log is {state}.")
    if faults:
        raise typer.Exit(FAILED)
