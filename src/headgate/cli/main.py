"""The `headgate` command. Subcommands import their dependencies when they run, so that --help is fast."""

import sys
from typing import Annotated

import typer

from headgate import __version__
from headgate.cli import database, installation
from headgate.cli.execution import spark, worker
from headgate.cli.lakehouse import deleted, maintenance, saved_query, sql
from headgate.cli.lakehouse import grant as granting
from headgate.cli.lakehouse import integration as integrations
from headgate.cli.lakehouse import layer as layers
from headgate.cli.lakehouse import table as tables
from headgate.cli.lakehouse import volume as volumes
from headgate.cli.marts import destination as destinations
from headgate.cli.organization import access, access_request, my, organization
from headgate.cli.organization import context as contexts
from headgate.cli.organization import group as groups
from headgate.cli.organization import member as members
from headgate.cli.organization import session as sessions
from headgate.cli.organization import token as tokens
from headgate.cli.pipelines import pipeline as pipelines
from headgate.cli.pipelines import run as runs
from headgate.cli.pipelines import trigger as triggers
from headgate.cli.platform import audit, keys, notifications
from headgate.cli.platform import resource as resources
from headgate.cli.spaces import connection as connections
from headgate.cli.spaces import space as spaces
from headgate.cli.text_input import check_arguments

app = typer.Typer(
    name="headgate",
    help="A self-hosted, governed data platform: one access model from the lakehouse to the report.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("up")(installation.up)
app.command("demo")(installation.demo)
app.command("doctor")(spark.doctor)
app.command("init")(sessions.init)
app.command("login")(sessions.login)
app.command("logout")(sessions.logout)
app.add_typer(my.app, name="my")
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
app.add_typer(access_request.app, name="request")
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
app.add_typer(keys.app, name="keys")
app.add_typer(spark.app, name="spark")
app.add_typer(saved_query.app, name="saved")
app.add_typer(sql.app, name="statement")
app.add_typer(worker.app, name="worker")
app.add_typer(pipelines.app, name="pipeline")
app.add_typer(triggers.app, name="trigger")
app.add_typer(runs.app, name="run")
app.add_typer(integrations.app, name="integration")
app.add_typer(maintenance.app, name="maintenance")
app.command("sql")(sql.sql)
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
    """Commands use the server of `headgate login`, or of HEADGATE_SERVER_URL with the token in HEADGATE_TOKEN. Without
    either, they use the local installation as its operator. These commands always use the local installation: up, demo,
    init, config, db, keys, token, doctor, spark, audit verify and access reindex.
    """


def main() -> None:
    """The entry point."""
    check_arguments(sys.argv[1:])
    sys.exit(app())


if __name__ == "__main__":
    main()
