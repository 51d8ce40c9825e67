"""`headgate worker`: run statements of a server on this machine."""

from typing import Annotated

import typer

from headgate.cli.output import told

app = typer.Typer(help="Run members' SQL for a server.", rich_markup_mode=None, invoke_without_command=True)

TOKEN_VARIABLE = "HEADGATE_WORKER_TOKEN"  # noqa: S105 - the name of a variable


@app.callback()
@told
def worker(
    context: typer.Context,
    server: Annotated[str | None, typer.Option(help="The server's address; left out, this machine's own.")] = None,
    slots: Annotated[int | None, typer.Option(min=1, max=64, help="Statements at a time; else `spark.slots`.")] = None,
) -> None:
    """Run members' SQL for a server until stopped. `headgate up` has one worker already.

    On another machine, set HEADGATE_WORKER_TOKEN to what `headgate worker token` prints on the server's. Both machines
    must reach the same warehouse.
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
    """The worker token of the environment, if it is one."""
    import os

    from headgate.kit.credentials import Sort, has_form, is_well_formed
    from headgate.kit.errors import Invalid

    response = os.environ.get(TOKEN_VARIABLE)
    if response and not is_well_formed(response, Sort.worker):
        if has_form(response, Sort.worker):
            raise Invalid(f"{TOKEN_VARIABLE} has the form of a worker token, but a character is wrong; copy it again")
        raise Invalid(
            f"{TOKEN_VARIABLE} holds no worker token; `headgate worker token` prints it on the server's machine"
        )
    return response or None


@app.command()
@told
def token() -> None:
    """Print the token by which workers on other machines are known. Whoever has it runs, and sees, every statement."""
    from headgate.cli.local import installation
    from headgate.kit.credentials import Sort, derived_secret
    from headgate.platform.secrets.installation_keys import key_file

    with installation() as (settings, _):
        print(derived_secret(Sort.worker, key_file(settings).key("worker")))
