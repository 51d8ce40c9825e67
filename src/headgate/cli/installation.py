"""`headgate up`, `headgate demo` and `headgate config`."""

from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.commands import command
from headgate.cli.output import Json, handle_errors, print_json, print_table

config = typer.Typer(help="Settings.", no_args_is_help=True, rich_markup_mode=None)


@handle_errors
def up() -> None:
    """Start the server, a worker and the scheduler, and restart them when they exit."""
    from headgate.settings.settings import load
    from headgate.supervisor.run import main_or_exit

    raise typer.Exit(main_or_exit(load()))


@handle_errors
def demo(
    folder: Annotated[
        Path | None,
        typer.Option(
            help=(
                "Directory for the demo's data; an earlier demo there is replaced. Default: HEADGATE_DATA_DIR if "
                "it is set, else .headgate/demo."
            )
        ),
    ] = None,
    stay: Annotated[bool, typer.Option(help="Keep the server running until Ctrl-C.")] = True,
) -> None:
    """Create a sample company, start the server, and print tokens and example queries."""
    import os

    from headgate.demo.run import run
    from headgate.settings.settings import PREFIX

    folder = folder or Path(os.environ.get(f"{PREFIX}DATA_DIR") or ".headgate/demo")
    raise typer.Exit(run(folder, stay=stay))


def _without_password(value: object) -> object:
    """A setting for display: a URL without its password."""
    from urllib.parse import urlsplit, urlunsplit

    if not isinstance(value, str) or "://" not in value:
        return value
    parts = urlsplit(value)
    if parts.password is None:
        return value
    return urlunsplit(parts._replace(netloc=f"{parts.username}:**********@{parts.netloc.rpartition('@')[2]}"))


@command(config, "show")
def show(as_json: Json = False) -> None:
    """Print every setting with its value and description. Secrets are masked."""
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
