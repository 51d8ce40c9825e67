"""`headgate notifications`: notifications, their channels, and who receives them."""

from typing import Annotated, Any

import typer

from headgate.cli.commands import Client, command
from headgate.cli.output import Json, print_json, print_table
from headgate.cli.paging import Cursor, Limit, print_page
from headgate.cli.platform.webhook import app as webhook

app = typer.Typer(help="Your notifications, and which you receive.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(webhook, name="webhook")

_NAMES = "runs, access or members."


@command(app, "list")
def list_notifications(
    client: Client,
    unread: Annotated[bool, typer.Option("--unread", help="Only unread notifications.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: Json = False,
) -> None:
    """List your notifications, newest first."""
    response = client.get("/api/notifications", unread=unread, limit=limit, cursor=cursor)
    rows = ((item["id"], item["at"], item["read_at"] is not None, item["sentence"]) for item in response["items"])
    print_page(response, ("id", "at", "read", "what"), rows, "There are no notifications.", as_json=as_json)


@command(app)
def read(
    client: Client,
    ids: Annotated[list[str] | None, typer.Argument(help="Ids, as in `headgate notifications list`.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    as_json: Json = False,
) -> None:
    """Mark notifications as read."""
    from headgate.kit.errors import Invalid

    if bool(ids) == everything:
        raise Invalid("give ids, or --all")
    done = client.post("/api/notifications/read", {"all": True} if everything else {"ids": ids})
    if as_json:
        print_json(done)
    else:
        print("Marked as read.")


@command(app)
def settings(
    client: Client,
    channel: Annotated[str | None, typer.Argument(help=f"The channel to change: {_NAMES}")] = None,
    receive: Annotated[bool | None, typer.Option("--receive/--stop", help="Receive this channel, or not.")] = None,
    by_mail: Annotated[bool | None, typer.Option("--mail/--no-mail", help="Also receive it by mail, or not.")] = None,
    as_json: Json = False,
) -> None:
    """Show or change which channels you receive, and whether by mail."""
    from headgate.kit.errors import Invalid

    if (channel is None) != (receive is None and by_mail is None):
        raise Invalid("no channel to change: give a channel with --receive, --stop, --mail or --no-mail")
    response = client.get("/api/me/notifications")
    if channel is not None:
        wanted = _wanted(response, channel, receive, by_mail)
        response = client.request("PUT", "/api/me/notifications", {"channels": [wanted]})
    if as_json:
        print_json(response)
        return
    rows = ((entry["channel"], entry["receives"], entry["by_mail"], entry["about"]) for entry in response["channels"])
    print_table(("channel", "receives", "by mail", "about"), rows)
    print(f"mail address: {response['mail_to'] or '—'}")
    for value in response["warnings"]:
        print(f"warning: {value['kind']} {value['name'] or '—'}: {value['warning']}")


def _wanted(result: dict[str, Any], channel: str, receive: bool | None, by_mail: bool | None) -> dict[str, Any]:
    """The new settings of a channel: the current ones with the given options."""
    held: dict[str, Any] = next((value for value in result["channels"] if value["channel"] == channel), {})
    receives = by_mail or held.get("receives", False) if receive is None else receive
    mailed = held.get("by_mail", False) if by_mail is None else by_mail
    return {"channel": channel, "receives": bool(receives), "by_mail": mailed}


@command(app)
def receivers(
    client: Client,
    channel: Annotated[str, typer.Argument(help=_NAMES.capitalize())],
    add: Annotated[list[str] | None, typer.Option(help="A member to add. Can be repeated.")] = None,
    remove: Annotated[list[str] | None, typer.Option(help="A member to remove. Can be repeated.")] = None,
    by_mail: Annotated[bool, typer.Option("--mail/--no-mail", help="Whether added members also receive mail.")] = True,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: Json = False,
) -> None:
    """Show or change the receivers of a channel."""
    from urllib.parse import quote

    path = f"/api/notifications/receivers/{quote(channel, safe='')}"
    changes = [{"member": value, "receives": True, "by_mail": by_mail} for value in add or ()]
    changes += [{"member": value, "receives": False, "by_mail": False} for value in remove or ()]
    if changes:
        client.request("PUT", path, {"receivers": changes})
    response = client.get(path, limit=limit, cursor=cursor)
    rows = ((value["id"], value["name"], value["email"], value["by_mail"]) for value in response["items"])
    print_page(
        response, ("id", "name", "mail address", "by mail"), rows, "The channel has no receivers.", as_json=as_json
    )
