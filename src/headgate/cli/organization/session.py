"""`headgate init`, `headgate login` and `headgate logout`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli.output import Json, print_json, told
from headgate.cli.text_input import line_of_input

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.client import Headgate

Server = Annotated[str | None, typer.Option(help="The server's address; left out, HEADGATE_SERVER_URL or this host.")]


@told
def init(
    name: Annotated[str | None, typer.Option(help="The owner's name.")] = None,
    email: Annotated[str | None, typer.Option(help="The owner's mail address.")] = None,
    organization: Annotated[str | None, typer.Option(help="What to call the organization.")] = None,
    password_stdin: Annotated[bool, typer.Option("--password-stdin", help="Read the password from a line.")] = False,
    as_json: Json = False,
) -> None:
    """Prepare a new installation here, and make its owner."""
    from headgate.kit.clock import now
    from headgate.kit.errors import Invalid
    from headgate.kit.names import BadName, check_name
    from headgate.organization.members.emails import usable
    from headgate.organization.members.first_owner import make_owner
    from headgate.organization.sessions import passwords
    from headgate.settings.settings import load
    from headgate.supervisor.preflight import check, opened

    settings = load()
    name = name or typer.prompt("Your name")
    address = usable(email or typer.prompt("Your mail address"), "--email")
    password = line_of_input() if password_stdin else None
    if password is None:
        password = typer.prompt("A password", hide_input=True, confirmation_prompt=True)
    try:
        name, organization = check_name(name), check_name(organization) if organization else None
    except BadName as error:
        raise Invalid(str(error)) from None
    passwords.check_strength(password, [name, address])
    check(settings)
    database, stored = opened(settings), passwords.hashed(password)
    try:
        member = database.write(lambda c: make_owner(c, name, address, stored, now(), organization))
    finally:
        database.close()
    if as_json:
        print_json({"member": member, "name": name, "email": address})
    else:
        print(f"{name} owns this installation. Start it with `headgate up`, then sign in: `headgate login`.")


@told
def login(
    server: Server = None,
    email: Annotated[str | None, typer.Option(help="Your mail address.")] = None,
    link: Annotated[str | None, typer.Option(help="A sign-in link, instead of a password.")] = None,
    password_stdin: Annotated[bool, typer.Option("--password-stdin", help="Read the password from a line.")] = False,
    forgot_password: Annotated[
        bool, typer.Option("--forgot-password", help="Have a link mailed to you by which you choose a new password.")
    ] = False,
) -> None:
    """Sign in, and keep a token for the commands that follow."""
    from headgate.cli.client import server_address
    from headgate.client import Headgate
    from headgate.kit.credentials import Sort
    from headgate.kit.errors import Invalid

    address = server_address(server)
    with Headgate(address) as client:
        if forgot_password:
            mail = email or typer.prompt("Your mail address")
            print(client.post("/api/password/links", {"email": mail})["detail"])
            return
        if link:
            secret = link.rpartition("#")[2]
            if secret.startswith(Sort.invitation):
                raise Invalid("this link is an invitation: `headgate invitation accept LINK` accepts it and signs in")
            if secret.startswith(Sort.password):
                raise Invalid("this link sets a new password: open it in a browser, then run `headgate login`")
            who = client.post("/api/sign-in/by-link", {"link": secret})
        else:
            mail = email or typer.prompt("Your mail address")
            typed = line_of_input() if password_stdin else typer.prompt("Password", hide_input=True)
            who = client.post("/api/sign-in", {"email": mail, "password": typed})
        place = _keep(client, address, who)
    print(f"You are {who['name']} at {address}. The token is kept in {place}; `headgate logout` ends it.")


def _keep(client: "Headgate", address: str, who: dict[str, Any]) -> "Path":
    """Make a token in place of the session that was just begun, and keep it; where."""
    import socket

    from headgate.cli.credentials import Login, save

    made = client.post("/api/tokens", {"name": f"command line on {socket.gethostname()}"})
    client.request("POST", "/api/sign-out")
    return save(Login(address, made["token"], made["id"], who["name"]))


@told
def accept(
    link: Annotated[str, typer.Argument(help="The invitation's link.")],
    name: Annotated[str | None, typer.Option(help="What to call you here.")] = None,
    server: Server = None,
    password_stdin: Annotated[bool, typer.Option("--password-stdin", help="Read the password from a line.")] = False,
) -> None:
    """Accept an invitation: become a member, and keep a token for the commands that follow."""
    from headgate.cli.client import server_address
    from headgate.client import Headgate
    from headgate.kit.credentials import Sort
    from headgate.kit.errors import Invalid

    secret = link.rpartition("#")[2]
    if not secret.startswith(Sort.invitation):
        raise Invalid("this link is no invitation; `headgate login --link LINK` takes a sign-in link")
    address = server_address(server)
    name = name or typer.prompt("Your name")
    typed = line_of_input() if password_stdin else typer.prompt("A password", hide_input=True, confirmation_prompt=True)
    with Headgate(address) as client:
        who = client.post("/api/invitations/accept", {"invitation": secret, "name": name, "password": typed})
        place = _keep(client, address, who)
    print(f"You are {who['name']} at {address}, a member now. The token is kept in {place}.")


@told
def logout() -> None:
    """End the token that `headgate login` made, and forget it."""
    from headgate.cli.credentials import forget, stored
    from headgate.client import Headgate
    from headgate.kit.errors import NotFound, Problem

    kept = stored()
    if kept is None:
        raise NotFound("you are not signed in")
    forget()
    try:
        with Headgate(kept.server, kept.token) as client:
            client.request("DELETE", f"/api/tokens/{kept.token_id}")
    except Problem as problem:
        print(f"Forgotten here, but the server was not told: {problem.detail}")
        return
    print("Signed out; the token is ended.")
