"""`headgate grant` and `headgate revoke`: levels on layers, tables and volumes."""

from typing import Annotated, Any

import typer

from headgate.cli.field_names import SentAs
from headgate.cli.output import Json, print_json, told

Level = Annotated[str, typer.Argument(help="viewer, editor or manager.")]
Resource = Annotated[str, typer.Argument(help="layer:raw, table:raw.orders, volume:raw.scans, or an id.")]
To = Annotated[str, typer.Argument(help="A member, or group:NAME; everyone is group:All.")]


def _change(body: dict[str, Any], sentence: str, *, as_json: bool) -> None:
    from headgate.cli.client import connect

    with connect() as client:
        response = client.post("/api/access/changes", body)
    if as_json:
        print_json(response)
    else:
        print(f"{sentence}, by {', '.join(response['via'])}.")


@told
def grant(
    level: Level,
    resource: Resource,
    to: To,
    until: Annotated[
        str | None,
        typer.Option(help="When it ends: a date, which means 00:00 UTC of that day, or a time."),
        SentAs("expires"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Grant a level on a layer, table or volume, or give a grant another end.

    For example: headgate grant viewer table:raw.orders group:analysts --until 2027-01-01
    """
    body = {"change": "grant", "level": level.lower(), "resource": resource, "to": to}
    ends = f" until {until}" if until else ""
    _change({**body, "expires": until}, f"{to} is {level.lower()} on {resource}{ends}", as_json=as_json)


@told
def revoke(level: Level, resource: Resource, to: To, as_json: Json = False) -> None:
    """Take a level back; it holds from the next statement on.

    For example: headgate revoke viewer table:raw.orders group:analysts
    """
    body = {"change": "revoke", "level": level.lower(), "resource": resource, "to": to}
    _change(body, f"{to} is no longer {level.lower()} on {resource} by a grant", as_json=as_json)
