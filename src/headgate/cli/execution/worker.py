"""`headgate worker`: run the statements of a server on this machine."""

from typing import Annotated

import typer

from headgate.cli.commands import command
from headgate.cli.output import handle_errors

app = typer.Typer(
    help="Workers, which run members' SQL and pipelines.", rich_markup_mode=None, invoke_without_command=True
)

TOKEN_VARIABLE = "HEADGATE_WORKER_TOKEN"  # noqa: S105 - the name of a variable


@app.callback()
@handle_errors
def worker(
    context: typer.Context,
    server: Annotated[str | None, typer.Option(help="The server's URL. Default: the local installation.")] = None,
    slots: Annotated[
        int | None, typer.Option(min=1, max=64, help="Statements run at the same time. Default: `spark.slots`.")
    ] = None,
) -> None:
    """Run a worker until it is stopped. `headgate up` already starts one. To run a worker on another machine, set
    HEADGATE_WORKER_TOKEN to the output of `headgate worker token` on the server. Both machines need access to the same
    warehouse.
    """
    if context.invoked_subcommand is not None:
        return
    from headgate.cli.client import server_address
    from headgate.cli.local import installation
    from headgate.platform.http.logs import configure
    from headgate.settings.settings import load
    from headgate.supervisor.work import work

    settings, secret = load(), _given()
    if secret is None:
        # Its key file says the secret; where there is no installation, none is made.
        with installation():
            pass
    if slots is not None:
        settings = settings.model_copy(update={"spark": settings.spark.model_copy(update={"slots": slots})})
    configure(settings.log)
    work(settings, server_address(server), secret)


def _given() -> str | None:
    """The worker token from the environment, if it is valid."""
    import os

    from headgate.kit.credentials import Sort, has_form, is_well_formed
    from headgate.kit.errors import Invalid

    response = os.environ.get(TOKEN_VARIABLE)
    if response and not is_well_formed(response, Sort.worker):
        if has_form(response, Sort.worker):
            raise Invalid(f"{TOKEN_VARIABLE}: the checksum of the worker token is wrong; copy the token again")
        raise Invalid(f"{TOKEN_VARIABLE} is not a worker token; `headgate worker token` prints it on the server")
    return response or None


@command(app)
def token() -> None:
    """Print the token with which workers on other machines authenticate. Anyone who has it can read and run every
    statement.
    """
    from headgate.cli.local import installation
    from headgate.kit.credentials import Sort, derived_secret
    from headgate.platform.secrets.installation_keys import key_file

    with installation() as (settings, _):
        print(derived_secret(Sort.worker, key_file(settings).key("worker")))
