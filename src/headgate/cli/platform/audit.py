"""`headgate audit`: read the audit log, and verify its integrity."""

from typing import TYPE_CHECKING, Annotated

import typer

from headgate.cli.commands import Client, command
from headgate.cli.output import FAILED, Json, print_json
from headgate.cli.paging import Cursor, print_page

if TYPE_CHECKING:
    from headgate.kit.database import Database
    from headgate.platform.audit.chain_heads import Head, HeadFile
    from headgate.platform.audit.verification import VerificationResult
    from headgate.settings.settings import Settings

_LONGEST = 500

app = typer.Typer(help="The audit log.", no_args_is_help=True, rich_markup_mode=None)


@command(app, "list")
def list_events(
    client: Client,
    actor: Annotated[str | None, typer.Option(help="Only by this member, by name or id.")] = None,
    resource: Annotated[str | None, typer.Option(help="Only about this resource: kind:name, or an id.")] = None,
    event: Annotated[str | None, typer.Option(help="Only this type of event, such as access.denied.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Maximum number of events.")] = 50,
    cursor: Cursor = None,
    as_json: Json = False,
) -> None:
    """List audit events, newest first."""
    response = client.get("/api/audit", actor=actor, resource=resource, event=event, limit=limit, cursor=cursor)
    columns = ("id", "at", "event", "actor", "action", "kind", "resource", "allowed", "via", "sealed")
    rows = [{**item, "actor": item["actor_name"] or item["actor"]} for item in response["items"]]
    print_page(response, columns, ([row[column] for column in columns] for row in rows), as_json=as_json)


Anchors = Annotated[
    list[str] | None,
    typer.Option(
        "--anchor",
        help="An anchor that an earlier verification printed and that you stored elsewhere. Can be repeated.",
    ),
]


@command(app)
def verify(anchors: Anchors = None, as_json: Json = False) -> None:
    """Verify the hash chain of the audit log. Exits 1 if an event was changed, removed, truncated, or inserted. Always
    reads the local installation.
    """
    from headgate.cli.local import installation
    from headgate.kit.errors import Invalid
    from headgate.platform.audit.verification import anchor

    try:
        known = tuple(anchor(value) for value in anchors or ())
    except ValueError as error:
        raise Invalid(f"--anchor: {error}") from None
    with installation() as (settings, database):
        verdict = _verdict(settings, database, known)
    if as_json:
        told_anchor = verdict.end.anchor if verdict.sealed else None
        numbers = {"sealed": verdict.sealed, "unsealed": verdict.unsealed, "anchor": told_anchor}
        print_json({**numbers, "faults": verdict.faults})
    else:
        for fault in verdict.faults:
            print(f"FAULT: {fault}")
        state = "NOT intact" if verdict.faults else "intact"
        events = "1 event" if verdict.sealed == 1 else f"{verdict.sealed} events"
        print(f"{events} sealed, {verdict.unsealed} not sealed yet: the log is {state}.")
        if verdict.sealed and not verdict.faults:
            print(f"Anchor, to be stored on another machine: {verdict.end.anchor}")
    if verdict.faults:
        raise typer.Exit(FAILED)


@command(app)
def acknowledge(
    reason: Annotated[str, typer.Option(prompt="Reason", help="The reason, which is recorded in the log.")],
) -> None:
    """Acknowledge the faults of the log, such as those of a restored backup; later verifications report new faults
    only. Changed or missing events inside the chain remain faults. Always uses the local installation.
    """
    from headgate.cli.local import installation
    from headgate.kit.errors import Invalid
    from headgate.platform.audit.chain import acknowledge as note

    if not reason.strip() or len(reason) > _LONGEST:
        raise Invalid(f"--reason: give a reason of 1 to {_LONGEST} characters")
    with installation() as (settings, database):
        verdict = _verdict(settings, database)
        if not verdict.faults:
            print("The log is intact; there is nothing to acknowledge.")
            return
        note(database, _head_file(settings), reason.strip(), verdict.faults)
        verdict = _verdict(settings, database)
    for fault in verdict.faults:
        print(f"FAULT: {fault}")
    print("Acknowledged; the log records it." if not verdict.faults else "These faults remain.")
    if verdict.faults:
        raise typer.Exit(FAILED)


def _head_file(settings: "Settings") -> "HeadFile":
    from headgate.platform.audit.chain_heads import HEAD_FILE, HeadFile
    from headgate.platform.secrets.installation_keys import key_file

    return HeadFile(settings.data_dir / HEAD_FILE, key_file(settings).known("audit"))


def _verdict(settings: "Settings", database: "Database", anchors: "tuple[Head, ...]" = ()) -> "VerificationResult":
    from headgate.platform.audit.chain_heads import SEALED
    from headgate.platform.audit.verification import ExternalRecord
    from headgate.platform.audit.verification import verify as walk
    from headgate.platform.secrets.installation_keys import key_file

    keys, kept, fault = key_file(settings), None, None
    try:
        # Before the database: what is sealed meanwhile is no fault.
        kept = _head_file(settings).read()
    except ValueError as error:
        fault = str(error)
    with database.read() as connection:
        return walk(connection, keys.known("audit"), ExternalRecord(kept, fault, keys.has(SEALED), anchors))
