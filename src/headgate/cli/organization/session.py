"""`headgate init`, `headgate login` and `headgate logout`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli.output import Json, handle_errors, print_json
from headgate.cli.text_input import line_of_input

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.client import Headgate

Server = Annotated[
    str | None, typer.Option(help="The server's URL. Default: HEADGATE_SERVER_URL, or the local server.")
]


@handle_errors
def init(
    name: Annotated[str | None, typer.Option(help="The owner's name.")] = None,
    email: Annotated[str | None, typer.Option(help="The owner's email address.")] = None,
    organization: Annotated[str | None, typer.Option(help="The name of the organization.")] = None,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from standard input, one line.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Initialize an installation here and create its owner."""
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
    address = usable(email or typer.prompt("Your email address"), "--email")
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


@handle_errors
def login(
    server: Server = None,
    email: Annotated[str | None, typer.Option(help="Your email address.")] = None,
    link: Annotated[str | None, typer.Option(help="Use a sign-in link instead of a password.")] = None,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from standard input, one line.")
    ] = False,
    forgot_password: Annotated[
        bool, typer.Option("--forgot-password", help="Send a link by email to choose a new password.")
    ] = False,
) -> None:
    """Sign in, and store a token for later commands."""
    from headgate.cli.client import server_address
    from headgate.client import Headgate
    from headgate.kit.credentials import Sort
    from headgate.kit.errors import Invalid

    address = server_address(server)
    with Headgate(address) as client:
        if forgot_password:
            mail = email or typer.prompt("Your email address")
            print(client.post("/api/password/links", {"email": mail})["detail"])
            return
        if link:
            secret = link.rpartition("#")[2]
            if secret.startswith(Sort.invitation):
                raise Invalid("this link is an invitation; accept it with `headgate invitation accept LINK`")
            if secret.startswith(Sort.password):
                raise Invalid("this link sets a new password; open it in a browser, then run `headgate login`")
            who = client.post("/api/sign-in/by-link", {"link": secret})
        else:
            mail = email or typer.prompt("Your email address")
            typed = line_of_input() if password_stdin else typer.prompt("Password", hide_input=True)
            who = client.post("/api/sign-in", {"email": mail, "password": typed})
        place = _keep(client, address, who)
    print(f"Signed in as {who['name']} at {address}. The token is stored in {place}; `headgate logout` revokes it.")


def _keep(client: "Headgate", address: str, who: dict[str, Any]) -> "Path":
    """Exchange the new session for a token, store the token, and return the path of its file."""
    import socket

    from headgate.cli.credentials import Login, save

    made = client.post("/api/tokens", {"name": f"command line on {socket.gethostname()}"})
    client.request("POST", "/api/sign-out")
    return save(Login(address, made["token"], made["id"], who["name"]))


@handle_errors
def accept(
    link: Annotated[str, typer.Argument(help="The invitation link.")],
    name: Annotated[str | None, typer.Option(help="Your name.")] = None,
    server: Server = None,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from standard input, one line.")
    ] = False,
) -> None:
    """Accept an invitation, and store a token for later commands."""
    from headgate.cli.client import server_address
    from headgate.client import Headgate
    from headgate.kit.credentials import Sort
    from headgate.kit.errors import Invalid

    secret = link.rpartition("#")[2]
    if not secret.startswith(Sort.invitation):
        raise Invalid("this link is not an invitation; use a sign-in link with `headgate login --link LINK`")
    address = server_address(server)
    name = name or typer.prompt("Your name")
    typed = line_of_input() if password_stdin else typer.prompt("A password", hide_input=True, confirmation_prompt=True)
    with Headgate(address) as client:
        who = client.post("/api/invitations/accept", {"invitation": secret, "name": name, "password": typed})
        place = _keep(client, address, who)
    print(f"You are now a member: {who['name']} at {address}. The token is stored in {place}.")


@handle_errors
def logout() -> None:
    """Revoke and delete the token that `headgate login` stored."""
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
        print(f"Deleted the stored token, but could not revoke it on the server: {problem.detail}")
        return
    print("Signed out; the token is revoked.")
