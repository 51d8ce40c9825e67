"""`headgate member` and `headgate invitation`: members and invitations."""

from typing import Annotated, Any

import typer

from headgate.cli.commands import Client, command
from headgate.cli.organization.session import accept
from headgate.cli.organization.shared import id_of
from headgate.cli.output import Json, print_json, print_table
from headgate.cli.paging import Cursor, Limit, Prefix, print_page

app = typer.Typer(help="Members.", no_args_is_help=True, rich_markup_mode=None)
invitations = typer.Typer(help="Invitations.", no_args_is_help=True, rich_markup_mode=None)

Who = Annotated[str, typer.Argument(help="The member, by name or id.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


def _id(client: Any, text: str) -> str:
    """The id of a member, given their name or id."""
    return id_of(client, "/api/members", "member", text)


def _names(items: Any) -> list[str] | None:
    return None if items is None else [item["name"] for item in items]


@command(app, "list")
def list_members(
    client: Client,
    sort: Annotated[
        str, typer.Option(help="Sort by name, email, role, scope, created or last_seen; -name reverses the order.")
    ] = "name",
    prefix: Prefix = "",
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: Json = False,
) -> None:
    """List members. Only members who manage members see more than names."""
    response = client.get("/api/members", sort=sort, prefix=prefix, limit=limit, cursor=cursor)
    columns = ("id", "name", "email", "role", "scope", "contexts", "groups", "last_seen_at")
    shown = (
        {**value, "contexts": _names(value["contexts"]), "groups": _names(value["groups"])}
        for value in response["items"]
    )
    rows = ([value[column] for column in columns] for value in shown)
    print_page(response, columns, rows, as_json=as_json)


@command(app)
def show(client: Client, member: Who, as_json: Json = False) -> None:
    """Show a member, their actions on the organization, and the sources of these."""
    response = client.get(f"/api/members/{_id(client, member)}")
    if as_json:
        print_json(response)
        return
    value = response["member"]
    shown = {**value, "contexts": _names(value["contexts"]), "groups": _names(value["groups"])}
    print_table(("field", "value"), shown.items())
    print()
    print_table(
        ("can", "by"), ((item["action"], item["via"]) for item in response["can"]), empty="No actions of its own."
    )
    print("\n`headgate access what-can --member NAME --kind KIND` lists resources.")


def _change(change: str, as_json: bool, **values: Any) -> dict[str, Any]:
    from headgate.cli.client import connect

    body = {"change": change, **{name: value for name, value in values.items() if value is not None}}
    with connect() as client:
        response = client.post("/api/access/changes", body)
    if as_json:
        print_json(response)
    else:
        print(f"Done, by {', '.join(response['via'])}.")
    return dict(response)


@command(app, "set-role")
def set_role(
    member: Who,
    role: Annotated[str, typer.Argument(help="owner, admin, technical or business.")],
    as_json: Json = False,
) -> None:
    """Change a member's role. A new owner may have to sign in again and choose a new password."""
    ended = _change("set_role", as_json, member=member, role=role)["after"].get("ended", {})
    if as_json or not ended:
        return
    told = ", ".join(f"{count} {name}" for name, count in ended.items() if name != "password")
    print(f"Ended, because another person may know them: {told or 'the password'}.")
    if ended.get("password"):
        print(
            f"{member} must choose a new password, with `headgate login --forgot-password`, or, if mail is not "
            "configured, with"
        )
        print(f"a link from `headgate member reset-password {member}`.")


@command(app, "set-scope")
def set_scope(
    member: Who,
    scope: Annotated[str, typer.Argument(help="entire or selected.")],
    context: Annotated[list[str] | None, typer.Option(help="A context of the selected scope. Can be repeated.")] = None,
    as_json: Json = False,
) -> None:
    """Change the scope and contexts of a member."""
    _change("set_scope", as_json, member=member, scope=scope, contexts=context or [])


@command(app, "removed")
def list_removed(client: Client, limit: Limit = 50, cursor: Cursor = None, as_json: Json = False) -> None:
    """List removed members who left resources without an owner. `holdings` and `reassign` accept their ids."""
    response = client.get("/api/members/removed", limit=limit, cursor=cursor)
    rows = ((value["id"], value["removed_at"][:19], value["solely_owned"]) for value in response["items"])
    empty = "No removed member left a resource without an owner."
    print_page(response, ("id", "removed", "without an owner"), rows, empty, as_json=as_json)


def _id_of_any(client: Any, text: str) -> str:
    """The id of a member given their name, or of a removed member given their id."""
    from headgate.kit.errors import NotFound

    try:
        return _id(client, text)
    except NotFound as error:
        hint = "name a removed member by id, as `headgate member removed` lists it"
        raise NotFound(f"{error.detail}; {hint}") from None


@command(app)
def holdings(client: Client, member: Who, as_json: Json = False) -> None:
    """Show the resources that only this member owns, and the pipelines that run as this member."""
    response = client.get(f"/api/members/{_id_of_any(client, member)}/holdings")
    if as_json:
        print_json(response)
        return
    rows = [("solely owned", value) for value in response["solely_owned"]] + [
        ("runs as", value) for value in response["acts_for"]
    ]
    cells = ((what, value["kind"], value["name"], value["holds"], value["id"]) for what, value in rows)
    print_table(
        ("what", "kind", "name", "as", "id"),
        cells,
        empty="The member owns nothing alone, and no pipeline runs as the member.",
    )


@command(app)
def reassign(
    client: Client,
    member: Who,
    to: Annotated[str, typer.Option(help="The new owner.")],
    resource: Annotated[list[str] | None, typer.Option(help="Only this resource, by id. Can be repeated.")] = None,
    as_json: Json = False,
) -> None:
    """Transfer the resources that only this member owns, or owned when removed."""
    response = client.post(f"/api/members/{_id_of_any(client, member)}/reassign", {"to": to, "resources": resource})
    if as_json:
        print_json(response)
        return
    cells = ((value["kind"], value["name"], value["holds"], value["id"]) for value in response["items"])
    print_table(("kind", "name", "as", "id"), cells, empty="There was nothing to transfer.")


@command(app)
def remove(member: Who, yes: Yes = False, as_json: Json = False) -> None:
    """Remove a member. All their access ends at once."""
    if not yes and not as_json:
        typer.confirm(
            f"Remove {member}? `headgate member holdings` shows the resources that would have no owner.", abort=True
        )
    _change("remove_member", as_json, member=member)


def _print_link(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(result)
    elif result["link"]:
        print(f"Send this link to them. It works once, until {result['expires_at']}:\n{result['link']}")
    else:
        print(f"Sent to {result.get('sent_to') or result.get('email')}.")


@command(app, "magic-link")
def magic_link(client: Client, member: Who, as_json: Json = False) -> None:
    """Create a single-use sign-in link for a member."""
    _print_link(client.request("POST", f"/api/members/{_id(client, member)}/magic-link"), as_json)


@command(app, "reset-password")
def reset_password(client: Client, member: Who, as_json: Json = False) -> None:
    """Delete a member's password, end their sessions, and create a link to choose a new password."""
    _print_link(client.request("POST", f"/api/members/{_id(client, member)}/password-reset"), as_json)


@command(invitations, "make")
def invite(
    client: Client,
    email: Annotated[str, typer.Argument(help="The email address.")],
    role: Annotated[str, typer.Option(help="owner, admin, technical or business.")] = "business",
    scope: Annotated[str | None, typer.Option(help="entire or selected.")] = None,
    context: Annotated[list[str] | None, typer.Option(help="A context of the selected scope. Can be repeated.")] = None,
    as_json: Json = False,
) -> None:
    """Invite a person by email."""
    body = {"email": email, "role": role, "scope": scope, "contexts": context or []}
    _print_link(client.post("/api/invitations", body), as_json)


@command(invitations, "list")
def list_invitations(
    client: Client,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: Json = False,
) -> None:
    """List open invitations, newest first."""
    response = client.get("/api/invitations", limit=limit, cursor=cursor)
    columns = ("id", "email", "role", "scope", "contexts", "state", "invited_by", "expires_at")
    shown = ({**value, "contexts": _names(value["contexts"])} for value in response["items"])
    rows = ([value[column] for column in columns] for value in shown)
    print_page(response, columns, rows, "There are no invitations.", as_json=as_json)


invitations.command("accept")(accept)


@command(invitations)
def resend(
    client: Client, invitation: Annotated[str, typer.Argument(help="The id of the invitation.")], as_json: Json = False
) -> None:
    """Create a new link for an invitation. The old link stops working."""
    _print_link(client.request("POST", f"/api/invitations/{invitation}/resend"), as_json)


@command(invitations)
def revoke(
    client: Client, invitation: Annotated[str, typer.Argument(help="The id of the invitation.")], as_json: Json = False
) -> None:
    """Revoke an invitation."""
    result = client.request("DELETE", f"/api/invitations/{invitation}")
    if as_json:
        print_json(result)
    else:
        print(f"Revoked the invitation of {result['email']}.")
