"""`headgate my`: your own tokens, sessions and password."""

from typing import Annotated

import typer

from headgate.cli.commands import Client, command
from headgate.cli.output import Json, print_json, print_table

app = typer.Typer(help="Your own tokens, sessions and password.", no_args_is_help=True, rich_markup_mode=None)


@command(app)
def tokens(client: Client, as_json: Json = False) -> None:
    """List your tokens, newest first, without their secrets."""
    response = client.get("/api/tokens", limit=200)
    if as_json:
        print_json(response)
        return
    times = ("created_at", "last_used_at", "expires_at", "revoked_at")
    columns = ("id", "hint", "name", "read_only", "only", "tainted", *times)
    print_table(
        columns, ([item[column] for column in columns] for item in response["items"]), empty="You have no tokens."
    )


@command(app, "make-token")
def make_token(
    client: Client,
    name: Annotated[str, typer.Argument(help="The name.")],
    read_only: Annotated[bool, typer.Option("--read-only", help="A read-only token.")] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="Restrict the token to layer:NAME or table:LAYER.NAME. Can be repeated.")
    ] = None,
    expires: Annotated[str | None, typer.Option(help="When the token expires, such as 2027-01-01T00:00:00Z.")] = None,
    as_json: Json = False,
) -> None:
    """Create a token for yourself. It is shown only once."""
    body = {"name": name, "read_only": read_only, "only": only, "expires": expires}
    response = client.post("/api/tokens", body)
    if as_json:
        print_json(response)
    else:
        print(response["token"])


@command(app, "end-token")
def end_token(
    client: Client, token: Annotated[str, typer.Argument(help="The id of the token.")], as_json: Json = False
) -> None:
    """Revoke one of your tokens."""
    result = client.request("DELETE", f"/api/tokens/{token}")
    if as_json:
        print_json(result)
    else:
        print(f"Revoked the token {result['name']}.")


@command(app)
def sessions(client: Client, as_json: Json = False) -> None:
    """List your browser sessions."""
    response = client.get("/api/me/sessions")
    if as_json:
        print_json(response)
        return
    columns = ("id", "method", "agent", "address", "tainted", "created_at", "last_seen_at", "expires_at")
    rows = ([item[column] for column in columns] for item in response["items"])
    print_table(columns, rows, empty="You have no sessions.")


@command(app, "end-sessions")
def end_sessions(
    client: Client,
    session: Annotated[str | None, typer.Argument(help="The id of the session. Default: all sessions.")] = None,
    as_json: Json = False,
) -> None:
    """End one or all of your sessions."""
    result = client.request("DELETE", f"/api/me/sessions/{session}" if session else "/api/me/sessions")
    if as_json:
        print_json(result)
    else:
        print(f"Ended {result['ended']} sessions.")


@command(app)
def password(client: Client) -> None:
    """Change your password. This ends all your sessions."""
    current = typer.prompt("Current password, if you have one", hide_input=True, default="", show_default=False)
    fresh = typer.prompt("New password", hide_input=True, confirmation_prompt=True)
    response = client.post("/api/me/password", {"current": current or None, "password": fresh})
    print(f"Changed the password; ended {response['ended']} sessions.")
