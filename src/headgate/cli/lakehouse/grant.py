"""`headgate grant` and `headgate revoke`: access levels on layers, tables and volumes."""

from typing import Annotated, Any

import typer

from headgate.cli.field_names import SentAs
from headgate.cli.output import Json, handle_errors, print_json

Level = Annotated[str, typer.Argument(help="viewer, editor or manager.")]
Resource = Annotated[str, typer.Argument(help="layer:raw, table:raw.orders, volume:raw.scans, or an id.")]
To = Annotated[str, typer.Argument(help="A member, or group:NAME. group:All is everyone.")]


def _change(body: dict[str, Any], sentence: str, *, as_json: bool) -> None:
    from headgate.cli.client import connect

    with connect() as client:
        response = client.post("/api/access/changes", body)
    if as_json:
        print_json(response)
    else:
        print(f"{sentence}, by {', '.join(response['via'])}.")


@handle_errors
def grant(
    level: Level,
    resource: Resource,
    to: To,
    until: Annotated[
        str | None,
        typer.Option(help="When the grant ends: a time, or a date (00:00 UTC)."),
        SentAs("expires"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Grant a level on a layer, table or volume, or change when a grant ends. Example: headgate grant viewer
    table:raw.orders group:analysts --until 2027-01-01
    """
    body = {"change": "grant", "level": level.lower(), "resource": resource, "to": to}
    ends = f" until {until}" if until else ""
    _change({**body, "expires": until}, f"{to} is {level.lower()} on {resource}{ends}", as_json=as_json)


@handle_errors
def revoke(level: Level, resource: Resource, to: To, as_json: Json = False) -> None:
    """Revoke a level. Takes effect with the next statement. Example: headgate revoke viewer table:raw.orders
    group:analysts
    """
    body = {"change": "revoke", "level": level.lower(), "resource": resource, "to": to}
    _change(body, f"Revoked: {to} no longer has a {level.lower()} grant on {resource}", as_json=as_json)
