"""`headgate`: all commands, put together. Kept light: each command loads what it needs when it runs."""

import sys
from typing import Annotated

import typer

from headgate import __version__
from headgate.audit import cli as audit
from headgate.cli import database, installation
from headgate.cli.reading import check_arguments
from headgate.connections import cli as connections
from headgate.contexts import cli as contexts
from headgate.destinations import cli as destinations
from headgate.engine import cli as engine
from headgate.governance import cli as access
from headgate.groups import cli as groups
from headgate.integrations import cli as integrations
from headgate.lakehouse import deleted_cli as deleted
from headgate.lakehouse import grant_cli as granting
from headgate.lakehouse import layer_cli as layers
from headgate.lakehouse import table_cli as tables
from headgate.lakehouse import volume_cli as volumes
from headgate.maintenance import cli as maintenance
from headgate.members import cli as members
from headgate.notifications import cli as notifications
from headgate.organization import cli as organization
from headgate.pipelines import cli as pipelines
from headgate.requests import cli as requests
from headgate.resources import cli as resources
from headgate.runs import cli as runs
from headgate.secrets import cli as secrets
from headgate.sessions import cli as sessions
from headgate.sessions import own_cli as own
from headgate.spaces import cli as spaces
from headgate.tokens import cli as tokens
from headgate.triggers import cli as triggers
from headgate.workbench import cli as workbench
from headgate.workbench import saved_cli as saved
from headgate.worker import cli as worker

app = typer.Typer(
    name="headgate",
    help="A self-hosted, governed data platform: one access model from the lakehouse to the report.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("up")(installation.up)
app.command("demo")(installation.demo)
app.command("doctor")(engine.doctor)
app.command("init")(sessions.init)
app.command("login")(sessions.login)
app.command("logout")(sessions.logout)
app.add_typer(own.app, name="my")
app.add_typer(members.app, name="member")
app.add_typer(members.invitations, name="invitation")
app.add_typer(organization.app, name="organization")
app.add_typer(notifications.app, name="notifications")
app.add_typer(groups.app, name="group")
app.add_typer(contexts.app, name="context")
app.add_typer(installation.config, name="config")
app.add_typer(database.app, name="db")
app.add_typer(tokens.app, name="token")
app.add_typer(access.app, name="access")
app.add_typer(requests.app, name="request")
app.add_typer(resources.app, name="resource")
app.add_typer(layers.app, name="layer")
app.add_typer(tables.app, name="table")
app.add_typer(volumes.app, name="volume")
app.add_typer(deleted.app, name="deleted")
app.add_typer(spaces.app, name="space")
app.add_typer(connections.app, name="connection")
app.add_typer(destinations.app, name="destination")
app.command("grant")(granting.grant)
app.command("revoke")(granting.revoke)
app.add_typer(audit.app, name="audit")
app.add_typer(secrets.app, name="keys")
app.add_typer(engine.app, name="spark")
app.add_typer(saved.app, name="saved")
app.add_typer(workbench.app, name="statement")
app.add_typer(worker.app, name="worker")
app.add_typer(pipelines.app, name="pipeline")
app.add_typer(triggers.app, name="trigger")
app.add_typer(runs.app, name="run")
app.add_typer(integrations.app, name="integration")
app.add_typer(maintenance.app, name="maintenance")
app.command("sql")(workbench.sql)
app.command("me")(access.me)


def _version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Commands talk to the server of `headgate login`, or to the one that HEADGATE_SERVER_URL names, as the member
    whose token HEADGATE_TOKEN holds.

    Without either, they work on this machine's own installation, as its operator. So do, always: up, demo, init,
    config, db, keys, token, doctor, spark, audit verify and access reindex.
    """


def main() -> None:
    """The entry point."""
    check_arguments(sys.argv[1:])
    sys.exit(app())


if __name__ == "__main__":
    main()
