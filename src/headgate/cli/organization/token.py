"""`headgate token`: the operator's commands to create and revoke tokens."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from headgate.cli.commands import command
from headgate.cli.output import Json, print_json, print_table

app = typer.Typer(help="API tokens of members.", no_args_is_help=True, rich_markup_mode=None)

_FORMATS = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"]


@command(app)
def create(
    member: Annotated[str, typer.Option(help="The member that the token authenticates, by name or id.")],
    name: Annotated[str, typer.Option(help="The name of the token.")] = "command line",
    read_only: Annotated[bool, typer.Option("--read-only", help="A read-only token.")] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="Restrict the token to a layer or layer.table. Can be repeated.")
    ] = None,
    expires: Annotated[
        datetime | None, typer.Option(formats=_FORMATS, help="When the token expires, in UTC; a date means 00:00.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Create a token. It is shown only once; the server stores its hash."""
    from sqlalchemy import Connection

    from headgate.cli.local import installation
    from headgate.kit.clock import now
    from headgate.kit.errors import Invalid, NotFound
    from headgate.kit.names import BadName, check_name
    from headgate.organization.tokens.service import CreatedToken
    from headgate.organization.tokens.service import create as make
    from headgate.platform.authorization.lookup import Lookup

    moment = now()
    ends = expires.replace(tzinfo=expires.tzinfo or UTC) if expires else None
    if ends and ends <= moment:
        raise Invalid("--expires is in the past; give a later time")
    try:
        name = check_name(name)
    except BadName as error:
        raise Invalid(f"--name: {error}") from None

    def work(connection: Connection) -> CreatedToken:
        lookup = Lookup(connection)
        result = lookup.of("member", member)
        if result is None:
            raise NotFound(f"there is no member called {member!r}")
        reach: list[str] | None = None if only is None else []
        for ref in only or ():
            item, layer = lookup.table(ref)
            target = item if "." in ref else layer
            if target is None:
                raise NotFound(f"there is no layer, table or volume called {ref!r}")
            assert reach is not None  # noqa: S101 - made above
            reach.append(target)
        return make(connection, result, name, moment, read_only=read_only, only=reach, expires=ends)

    with installation() as (_, database):
        made = database.write(work)
    if as_json:
        print_json({"id": made.id, "member": made.member, "token": made.secret})
    else:
        print(made.secret)


@command(app, "list")
def list_tokens(as_json: Json = False) -> None:
    """List all tokens, without their secrets."""
    from headgate.cli.local import installation
    from headgate.kit.clock import iso
    from headgate.organization.tokens.service import listing

    with installation() as (_, database), database.read() as connection:
        rows = [dict(row) for row in listing(connection)]
    for row in rows:
        row["restricted"] = row.pop("listed")
        for name in ("created_at", "last_used_at", "expires_at", "revoked_at"):
            row[name] = iso(row[name]) if row[name] else None
    if as_json:
        print_json([{name.replace(" ", "_"): value for name, value in row.items()} for row in rows])
        return
    columns = ["id", "hint", "member", "name", "read_only", "restricted"]
    columns += ["created_at", "last_used_at", "expires_at", "revoked_at"]
    shown = [column.replace("_at", "").replace("_", " ") for column in columns]
    print_table(shown, ([row[column] for column in columns] for row in rows), empty="There are no tokens.")


@command(app)
def revoke(token: Annotated[str, typer.Argument(help="The token's id, as in `headgate token list`.")]) -> None:
    """Revoke a token."""
    from headgate.cli.local import installation
    from headgate.kit.clock import now
    from headgate.organization.tokens.service import revoke as end

    with installation() as (_, database):
        database.write(lambda connection: end(connection, token, now(), by=None))
    print(f"Revoked {token}.")
