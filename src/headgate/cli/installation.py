"""`headgate up`, `headgate demo` and `headgate config`."""

from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.output import Json, print_json, print_table, told

config = typer.Typer(help="Settings.", no_args_is_help=True, rich_markup_mode=None)


@told
def up() -> None:
    """Start the server processes, a worker and the scheduler, and keep them running."""
    from headgate.settings.settings import load
    from headgate.supervisor.run import main_or_exit

    raise typer.Exit(main_or_exit(load()))


@told
def demo(
    folder: Annotated[
        Path | None,
        typer.Option(
            help="Where the demo keeps its data; an earlier demo there is replaced. Default: HEADGATE_DATA_DIR if it "
            "is set, else .headgate/demo."
        ),
    ] = None,
    stay: Annotated[bool, typer.Option(help="Keep the server running until Ctrl-C.")] = True,
) -> None:
    """Make a small company, start the server, and print tokens and questions to ask it."""
    import os

    from headgate.demo.run import run
    from headgate.settings.settings import PREFIX

    folder = folder or Path(os.environ.get(f"{PREFIX}DATA_DIR") or ".headgate/demo")
    raise typer.Exit(run(folder, stay=stay))


def _without_password(value: object) -> object:
    """A setting as it can be shown: an address without its password."""
    from urllib.parse import urlsplit, urlunsplit

    if not isinstance(value, str) or "://" not in value:
        return value
    parts = urlsplit(value)
    if parts.password is None:
        return value
    return urlunsplit(parts._replace(netloc=f"{parts.username}:**********@{parts.netloc.rpartition('@')[2]}"))


@config.command("show")
@told
def show(as_json: Json = False) -> None:
    """Print every setting: its value, and what it means. Secrets are hidden."""
    from headgate.settings.settings import Settings, described, load

    settings = load()
    rows = []
    for name, field, _ in described(Settings):
        value: object = settings
        for part in name.split("."):
            value = getattr(value, part)
        rows.append((name, _without_password(value), field.description))
    if as_json:
        print_json({name: value if isinstance(value, int | None) else str(value) for name, value, _ in rows})
    else:
        print_table(("setting", "value", "meaning"), rows)
