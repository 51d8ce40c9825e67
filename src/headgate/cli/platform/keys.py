"""`headgate keys`: the keys that secrets are sealed with, shown, rotated and pruned by this machine's operator."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import typer

from headgate.cli.output import FAILED, Json, print_json, print_table, told

if TYPE_CHECKING:
    from headgate.kit.database import Database
    from headgate.kit.key_file import KeyFile
    from headgate.platform.secrets.rotation import KeyStatus, RotationResult, Status

app = typer.Typer(help="The keys that secrets are sealed with.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
@told
def list_keys(as_json: Json = False) -> None:
    """List the keys, their age and how many rows use each; never the keys themselves. Exit 1 if one is missing."""
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
        print_table(("id", "state", "age", "rows"), rows, empty="There are no keys yet: nothing was sealed.")
    _advise(result)
    if any(key_status.state == "missing" for key_status in result.keys):
        raise typer.Exit(FAILED)


@app.command()
@told
def rotate(as_json: Json = False) -> None:
    """Make a new key and seal all secrets with it. Servers may run; if it is interrupted, run it again."""
    from headgate.platform.secrets.rotation import rotate as run

    with _opened() as (database, keys):
        outcome = run(database, keys, _progress)
    begun = (
        f"Finished the rotation to key {outcome.key} that was begun before"
        if outcome.resumed
        else f"The new key is {outcome.key}"
    )
    _tell(outcome, begun, as_json=as_json)


@app.command()
@told
def prune(as_json: Json = False) -> None:
    """Drop older keys that no row uses and no server can still be about to use: an hour after a rotation."""
    from headgate.platform.secrets.rotation import prune as run

    with _opened() as (database, keys):
        outcome = run(database, keys, _progress)
    _tell(outcome, f"The key in use is {outcome.key}", as_json=as_json)


@contextmanager
def _opened() -> "Iterator[tuple[Database, KeyFile]]":
    """The database of this installation, with all sealed columns known, and its key file."""
    import headgate.schema  # noqa: F401 - tables declare their sealed columns
    from headgate.cli.local import installation
    from headgate.kit.database import Busy
    from headgate.kit.errors import Unavailable
    from headgate.platform.secrets.installation_keys import key_file

    try:
        with installation() as (settings, database):
            yield database, key_file(settings)
    except Busy:
        raise Unavailable("the database is busy with other changes; run the command again to finish") from None


def _progress(done: int, total: int) -> None:
    """Keep one line for people up to date; programs and logs are spared it."""
    if sys.stderr.isatty():
        print(f"\r{done} of {max(done, total)} sealed anew", end="", file=sys.stderr, flush=True)


def _tell(outcome: "RotationResult", begun: str, *, as_json: bool) -> None:
    if sys.stderr.isatty() and outcome.resealed:
        print(file=sys.stderr)
    if as_json:
        print_json(asdict(outcome))
    else:
        dropped = f"dropped {', '.join(outcome.dropped)}" if outcome.dropped else "dropped no key"
        print(f"{begun}: {outcome.resealed} sealed anew, {dropped}.")
        for fault in outcome.faults:
            print(f"FAULT: {fault}")
        if outcome.unopened > len(outcome.faults):
            print(f"FAULT: and {outcome.unopened - len(outcome.faults)} more")
    if outcome.unopened:
        raise typer.Exit(FAILED)


def _advise(status: "Status") -> None:
    """Say what is left to do, beside what programs read."""
    if status.rotating:
        print("A rotation is under way, or was interrupted: `headgate keys rotate` finishes it.", file=sys.stderr)
    if status.unsealed:
        print(
            f"{status.unsealed} values that should be sealed are not: `headgate keys rotate` names them.",
            file=sys.stderr,
        )
    if any(key_status.state == "missing" for key_status in status.keys):
        print("Rows need keys that the key file does not hold: restore it from a backup.", file=sys.stderr)


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
