"""File commands of `headgate volume`: put, get, files and rm."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.cli.field_names import SentAs
from headgate.cli.output import Json, handle_errors, print_json
from headgate.cli.paging import Cursor, Limit, print_page

if TYPE_CHECKING:
    from headgate.client.files import Progress

INTERRUPTED = 130

Place = Annotated[
    str, typer.Argument(help="volume:LAYER.NAME/PATH, such as volume:raw.invoices/2026/march.csv."), SentAs("path")
]


def split(place: str) -> tuple[str, str]:
    """Split volume:LAYER.NAME/PATH into the volume and the path."""
    volume, _, path = place.removeprefix("volume:").partition("/")
    return volume, path


def checked(path: str) -> str:
    """The path if it is valid in a volume, else Invalid."""
    from headgate.contracts.volume_paths import check_path
    from headgate.kit.errors import Invalid
    from headgate.kit.names import BadName

    try:
        return check_path(path)
    except BadName as error:
        raise Invalid(str(error)) from None


@contextmanager
def _progress(words: str) -> Iterator["Progress"]:
    """A progress bar on the terminal, or nothing if the output is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    console = Console(stderr=True)
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    shown = Progress(TextColumn("{task.description}", markup=False), *columns, console=console)
    shown.disable = not console.is_terminal
    with shown:
        task = shown.add_task(words, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


@handle_errors
def put(
    file: Annotated[Path, typer.Argument(help="The file to upload.", exists=True, dir_okay=False, readable=True)],
    place: Annotated[
        str, typer.Argument(help="volume:LAYER.NAME, with /PATH to store the file under another name."), SentAs("path")
    ],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    as_json: Json = False,
) -> None:
    """Upload a file to a volume. To resume an interrupted upload, run the same command again."""
    from headgate.cli.client import connect
    from headgate.client.files import upload

    volume, path = split(place)
    path = checked(path + file.name if not path or path.endswith("/") else path)
    try:
        with connect() as client, _progress(file.name) as progress:
            result = upload(client, volume, file, path, progress, overwrite=overwrite)
    except KeyboardInterrupt:
        print("interrupted; run the same command again to resume", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json(result)
    else:
        print(f"Uploaded {result['path']} ({result['size']} bytes, sha256 {result['sha256']}).")


@handle_errors
def get(
    place: Place,
    target: Annotated[
        Path | None, typer.Argument(help="The local path. Default: the file's name in the current directory.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
) -> None:
    """Download a file from a volume. To resume an interrupted download, run the same command again."""
    from headgate.cli.client import connect
    from headgate.kit.errors import Conflict, Invalid

    volume, path = split(place)
    name = path.rpartition("/")[2]
    if not name:
        raise Invalid(f"{place} has no path; name a file, such as volume:{volume}/2026/march.csv")
    file = target / name if target is not None and target.is_dir() else target or Path(name)
    if file.exists() and not overwrite:
        raise Conflict(f"{file} already exists; --overwrite replaces it")
    try:
        with connect() as client, _progress(name) as progress:
            client.download_file(volume, checked(path), file, progress=progress)
    except KeyboardInterrupt:
        print("interrupted; run the same command again to resume", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    print(f"Downloaded {file} ({file.stat().st_size} bytes).")


@handle_errors
def files(
    place: Annotated[
        str,
        typer.Argument(help="volume:LAYER.NAME, with /PREFIX to list only paths that start with it."),
        SentAs("prefix"),
    ],
    folders: Annotated[bool, typer.Option("--folders", help="Group paths below the next slash into folders.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: Json = False,
) -> None:
    """List the files of a volume."""
    from headgate.cli.client import connect
    from headgate.client.files import volume_id

    volume, prefix = split(place)
    query = {"prefix": prefix, "limit": limit, "cursor": cursor, "delimiter": "/" if folders else None}
    with connect() as client:
        response = client.get(f"/api/volumes/{volume_id(client, volume)}/files", **query)
    entries = [(folder, None, None, None) for folder in response["folders"]]
    for item in response["items"]:
        creator = item["created_by"]["name"] if item["created_by"] else None
        entries.append((item["path"], item["size"], item["created_at"], creator))
    print_page(
        response, ("path", "bytes", "created", "by"), sorted(entries), "The volume has no files here.", as_json=as_json
    )


@handle_errors
def rm(place: Place, as_json: Json = False) -> None:
    """Delete a file from a volume."""
    from headgate.cli.client import connect
    from headgate.client.files import url, volume_id

    volume, path = split(place)
    with connect() as client:
        result = client.request("DELETE", url(volume_id(client, volume), checked(path)))
    if as_json:
        print_json(result)
    else:
        print(f"Deleted {result['path']}.")


def add_to(app: typer.Typer) -> None:
    """Add the file commands to `headgate volume`."""
    for name, command in (("put", put), ("get", get), ("files", files), ("rm", rm)):
        app.command(name)(command)
