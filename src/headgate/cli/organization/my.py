"""`headgate my`: one's own tokens, sessions and password."""

from typing import Annotated

import typer

from headgate.cli.output import Json, print_json, print_table, told

app = typer.Typer(help="Your own tokens, sessions and password.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
@told
def tokens(as_json: Json = False) -> None:
    """List your tokens, the newest first; never their secrets."""
    from headgate.cli.client import connect

    with connect() as client:
        response = client.get("/api/tokens", limit=200)
    if as_json:
        print_json(response)
        return
    times = ("created_at", "last_used_at", "expires_at", "revoked_at")
    columns = ("id", "hint", "name", "read_only", "only", "tainted", *times)
    print_table(
        columns, ([item[column] for column in columns] for item in response["items"]), empty="You have no tokens."
    )


@app.command("make-token")
@told
def make_token(
    name: Annotated[str, typer.Argument(help="What to call it.")],
    read_only: Annotated[bool, typer.Option("--read-only", help="Narrow it to reading.")] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="Narrow it to layer:NAME or table:LAYER.NAME; may be repeated.")
    ] = None,
    expires: Annotated[str | None, typer.Option(help="When it ends, such as 2027-01-01T00:00:00Z.")] = None,
    as_json: Json = False,
) -> None:
    """Make a token of your own. It is shown once."""
    from headgate.cli.client import connect

    body = {"name": name, "read_only": read_only, "only": only, "expires": expires}
    with connect() as client:
        response = client.post("/api/tokens", body)
    if as_json:
        print_json(response)
    else:
        print(response["token"])


@app.command("end-token")
@told
def end_token(token: Annotated[str, typer.Argument(help="Its id.")], as_json: Json = False) -> None:
    """End one of your tokens at once."""
    from headgate.cli.client import connect

    with connect() as client:
        result = client.request("DELETE", f"/api/tokens/{token}")
    if as_json:
        print_json(result)
    else:
        print(f"{result['name']} is ended.")


@app.command()
@told
def sessions(as_json: Json = False) -> None:
    """List the browsers in which you are signed in."""
    from headgate.cli.client import connect

    with connect() as client:
        response = client.get("/api/me/sessions")
    if as_json:
        print_json(response)
        return
    columns = ("id", "method", "agent", "address", "tainted", "created_at", "last_seen_at", "expires_at")
    rows = ([item[column] for column in columns] for item in response["items"])
    print_table(columns, rows, empty="You are signed in nowhere.")


@app.command("end-sessions")
@told
def end_sessions(
    session: Annotated[str | None, typer.Argument(help="Its id; left out, all of them.")] = None, as_json: Json = False
) -> None:
    """End one of your sessions, or all."""
    from headgate.cli.client import connect

    with connect() as client:
        result = client.request("DELETE", f"/api/me/sessions/{session}" if session else "/api/me/sessions")
    if as_json:
        print_json(result)
    else:
        print(f"{result['ended']} ended.")


@app.command()
@told
def password() -> None:
    """Change your password. All your sessions end."""
    from headgate.cli.client import connect

    current = typer.prompt("Your present password, if you have one", hide_input=True, default="", show_default=False)
    fresh = typer.prompt("A new one", hide_input=True, confirmation_prompt=True)
    with connect() as client:
        response = client.post("/api/me/password", {"current": current or None, "password": fresh})
    print(f"Changed; {response['ended']} sessions ended.")
