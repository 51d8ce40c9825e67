"""`headgate audit`: read the audit log, and verify that nothing in it was changed, removed or cut."""

from dataclasses import replace
from typing import Annotated

import typer

from headgate.cli.output import FAILED, Json, print_json, told
from headgate.cli.pages import Cursor, print_page

app = typer.Typer(help="The audit log.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
@told
def list_events(
    actor: Annotated[str | None, typer.Option(help="Only by this member, by name or id.")] = None,
    resource: Annotated[str | None, typer.Option(help="Only about this resource: kind:name, or an id.")] = None,
    event: Annotated[str | None, typer.Option(help="Only of this sort, such as access.denied.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many, newest first.")] = 50,
    cursor: Cursor = None,
    as_json: Json = False,
) -> None:
    """List what was decided and changed, newest first."""
    from headgate.cli.client import connect

    with connect() as client:
        found = client.get("/api/audit", actor=actor, resource=resource, event=event, limit=limit, cursor=cursor)
    columns = ("id", "at", "event", "actor", "action", "kind", "resource", "allowed", "via", "sealed")
    rows = [{**item, "actor": item["actor_name"] or item["actor"]} for item in found["items"]]
    print_page(found, columns, ([row[column] for column in columns] for row in rows), as_json=as_json)


@app.command()
@told
def verify(as_json: Json = False) -> None:
    """Walk the whole chain of seals; exit 1 if anything was changed, removed or cut.

    It reads this machine's own installation, whatever server other commands talk to.
    """
    from headgate.audit.sealing import HeadFile
    from headgate.audit.sealing import verify as walk
    from headgate.cli.local import installation
    from headgate.supervisor.preflight import key_file
    from headgate.supervisor.scheduler import HEAD_FILE

    with installation() as (settings, database):
        key = key_file(settings).known("audit")
        head_file = settings.data_dir / HEAD_FILE
        faults: list[str] = []
        try:
            head = HeadFile(head_file, key).read()
        except ValueError as error:
            faults.append(str(error))
            head = None
        with database.read() as connection:
            verdict = walk(connection, key, head)
    if faults:
        verdict = replace(verdict, faults=tuple(one for one in verdict.faults if "is missing; a cut" not in one))
    faults += verdict.faults
    if as_json:
        print_json({"sealed": verdict.sealed, "unsealed": verdict.unsealed, "faults": faults})
    else:
        for fault in faults:
            print(f"FAULT: {fault}")
        state = "NOT intact" if faults else "intact"
        events = "1 event" if verdict.sealed == 1 else f"{verdict.sealed} events"
        print(f"{events} sealed, {verdict.unsealed} waiting to be: the log is {state}.")
    if faults:
        raise typer.Exit(FAILED)
