"""`headgate keys`: show, rotate and prune the encryption keys of stored secrets."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import typer

from headgate.cli.commands import command
from headgate.cli.output import FAILED, Json, print_json, print_table

if TYPE_CHECKING:
    from headgate.kit.database import Database
    from headgate.kit.key_file import KeyFile
    from headgate.platform.secrets.rotation import KeyStatus, RotationResult, Status

app = typer.Typer(help="The encryption keys of stored secrets.", no_args_is_help=True, rich_markup_mode=None)


@command(app, "list")
def list_keys(as_json: Json = False) -> None:
    """List the keys with their age and number of rows, never the keys themselves. Exits 1 if a key is missing."""
    from headgate.kit.clock import now
    from headgate.platform.secrets.rotation import status

    with _opened() as (database, keys), database.read() as connection:
        result = status(connection, keys)
    if as_json:
        print_json({**asdict(result), "keys": [_key_as_json(key_status, now()) for key_status in result.keys]})
    else:
        rows = (
            (key_status.id, key_status.state, _age(key_status, now()), key_status.rows) for key_status in result.keys
        )
        print_table(("id", "state", "age", "rows"), rows, empty="There are no keys yet: no secret is stored.")
    _advise(result)
    if any(key_status.state == "missing" for key_status in result.keys):
        raise typer.Exit(FAILED)


@command(app)
def rotate(as_json: Json = False) -> None:
    """Create a new key and re-encrypt all secrets with it. Servers may keep running. If it is interrupted, run it
    again.
    """
    from headgate.platform.secrets.rotation import rotate as run

    with _opened() as (database, keys):
        outcome = run(database, keys, _progress)
    begun = (
        f"Finished the earlier rotation to key {outcome.key}" if outcome.resumed else f"The new key is {outcome.key}"
    )
    _tell(outcome, begun, as_json=as_json)


@command(app)
def prune(as_json: Json = False) -> None:
    """Delete older keys that no row uses. Keys are kept for an hour after a rotation, because servers may still use
    them.
    """
    from headgate.platform.secrets.rotation import prune as run

    with _opened() as (database, keys):
        outcome = run(database, keys, _progress)
    _tell(outcome, f"The key in use is {outcome.key}", as_json=as_json)


@contextmanager
def _opened() -> "Iterator[tuple[Database, KeyFile]]":
    """The database of the local installation, with all encrypted columns registered, and its key file."""
    import headgate.schema  # noqa: F401 - tables declare their sealed columns
    from headgate.cli.local import installation
    from headgate.kit.database import Busy
    from headgate.kit.errors import Unavailable
    from headgate.platform.secrets.installation_keys import key_file

    try:
        with installation() as (settings, database):
            yield database, key_file(settings)
    except Busy:
        raise Unavailable("the database is locked by other changes; run the command again to finish") from None


def _progress(done: int, total: int) -> None:
    """Print a progress line on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r{done} of {max(done, total)} re-encrypted", end="", file=sys.stderr, flush=True)


def _tell(outcome: "RotationResult", begun: str, *, as_json: bool) -> None:
    if sys.stderr.isatty() and outcome.resealed:
        print(file=sys.stderr)
    if as_json:
        print_json(asdict(outcome))
    else:
        dropped = f"deleted {', '.join(outcome.dropped)}" if outcome.dropped else "deleted no key"
        print(f"{begun}: {outcome.resealed} values re-encrypted, {dropped}.")
        for fault in outcome.faults:
            print(f"FAULT: {fault}")
        if outcome.unopened > len(outcome.faults):
            print(f"FAULT: and {outcome.unopened - len(outcome.faults)} more")
    if outcome.unopened:
        raise typer.Exit(FAILED)


def _advise(status: "Status") -> None:
    """Print the next steps to standard error."""
    if status.rotating:
        print("A rotation is not finished: run `headgate keys rotate` again.", file=sys.stderr)
    if status.unsealed:
        print(
            f"{status.unsealed} values are not encrypted: `headgate keys rotate` lists them.",
            file=sys.stderr,
        )
    if any(key_status.state == "missing" for key_status in status.keys):
        print("Some rows use keys that are missing from the key file: restore it from a backup.", file=sys.stderr)


def _key_as_json(key_status: "KeyStatus", moment: datetime) -> dict[str, Any]:
    from headgate.kit.clock import iso

    made = None if key_status.made is None else iso(key_status.made)
    age = None if key_status.made is None else int((moment - key_status.made).total_seconds())
    return {"id": key_status.id, "state": key_status.state, "made": made, "age_seconds": age, "rows": key_status.rows}


def _age(key_status: "KeyStatus", moment: datetime) -> str | None:
    """The age of a key in its largest unit."""
    if key_status.made is None:
        return None
    seconds = max(int((moment - key_status.made).total_seconds()), 0)
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
