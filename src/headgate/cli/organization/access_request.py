"""`headgate request`: request access, and answer access requests."""

from typing import Annotated, Any

import typer

from headgate.cli.commands import Client, command
from headgate.cli.output import MALFORMED, Json, fail, print_json, print_table
from headgate.cli.paging import Cursor, print_page

app = typer.Typer(help="Access requests.", no_args_is_help=True, rich_markup_mode=None)

PLACE = "/api/access/requests"
RequestId = Annotated[str, typer.Argument(metavar="REQUEST", help="The id of the request.")]


@command(app)
def make(
    client: Client,
    action: Annotated[str, typer.Argument(help="The action, such as edit.")],
    resource: Annotated[str, typer.Argument(help="kind:name, organization, or an id.")],
    reason: Annotated[str, typer.Option(help="The reason for the request.")],
    as_json: Json = False,
) -> None:
    """Request an action on a resource that you can see. Members who could grant it are notified."""
    response = client.post(PLACE, {"action": action, "resource": resource, "reason": reason})
    _done(response, "Asked", as_json=as_json)


@command(app, "list")
def list_requests(
    client: Client,
    mine: Annotated[
        bool, typer.Option("--mine", help="Your own requests, instead of those that you may answer.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Maximum number of requests.")] = 50,
    cursor: Cursor = None,
    as_json: Json = False,
) -> None:
    """List the requests that you may answer, or your own: open ones first, then newest first."""
    response = client.get(PLACE, mine=mine, limit=limit, cursor=cursor)
    while not response["items"] and response["next_cursor"]:
        response = client.get(PLACE, mine=mine, limit=limit, cursor=response["next_cursor"])
    rows = (
        (value["id"], value["state"], _who(value["member"]), value["action"], _what(value), value["reason"])
        for value in response["items"]
    )
    columns = ("id", "state", "member", "action", "resource", "reason")
    print_page(response, columns, rows, "There are no requests.", as_json=as_json)


def _who(member: dict[str, Any] | None) -> str | None:
    return member["name"] if member else None


def _what(request: dict[str, Any]) -> str:
    return f"{request['kind']}:{request['name'] or request['resource']}"


@command(app)
def show(client: Client, request: RequestId, as_json: Json = False) -> None:
    """Show a request, and the changes with which you could approve it."""
    response = client.get(f"{PLACE}/{request}")
    if as_json:
        print_json(response)
        return
    offered = response.pop("proposals")
    names = {"member": _who(response["member"]), "answered_by": _who(response["answered_by"])}
    change = response["change"] and " ".join(f"{key}={value}" for key, value in response["change"].items())
    print_table(("field", "value"), {**response, **names, "change": change}.items())
    if response["state"] == "open":
        rows = (
            (number, value["sentence"], value["others"], value["takes_end"]) for number, value in enumerate(offered, 1)
        )
        print()
        print_table(
            ("proposal", "change", "others who gain", "can end"),
            rows,
            empty="You cannot make any change that approves it.",
        )


@command(app)
def approve(
    client: Client,
    request: RequestId,
    change: Annotated[
        str | None,
        typer.Argument(metavar="CHANGE", help="A change of your own, instead of a proposal: grant, share, add_owner …"),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="An argument of the change, such as to=ana level=viewer."),
    ] = None,
    proposal: Annotated[
        int | None, typer.Option(min=1, help="The number of a proposal, as `headgate request show` lists it.")
    ] = None,
    comment: Annotated[str | None, typer.Option(help="A message to the requester.")] = None,
    expires: Annotated[str | None, typer.Option(help="When the grant ends, such as 2030-01-01T00:00:00Z.")] = None,
    as_json: Json = False,
) -> None:
    """Approve a request with one of the proposals, or with another change that gives the same access. Example: headgate
    request approve req_01k6x3v9c2m4n8p0q7rs --proposal 1
    """
    if (change is None) == (proposal is None):
        fail("give either --proposal with a number, or a change", MALFORMED)
    body = _proposed(client, request, proposal) if proposal else {"change": change, **_pairs(values or [])}
    answer = {"change": body, "comment": comment, "expires": expires}
    response = client.post(f"{PLACE}/{request}/approve", answer)
    _done(response, "Approved", as_json=as_json)


def _proposed(client: Any, request: str, number: int) -> dict[str, Any]:
    """The change of a proposal, given its number."""
    offered = client.get(f"{PLACE}/{request}")["proposals"]
    if number > len(offered):
        fail(f"there are {len(offered)} proposals; `headgate request show {request}` lists them")
    values: dict[str, Any] = offered[number - 1]["change"]
    return values


def _pairs(values: list[str]) -> dict[str, Any]:
    """KEY=VALUE pairs as a change; contexts are separated by commas."""
    result: dict[str, Any] = {}
    for pair in values:
        key, equals, value = pair.partition("=")
        if not equals:
            fail(f"{pair!r} is not KEY=VALUE", MALFORMED)
        is_list = key == "contexts"
        result[key] = [part.strip() for part in value.split(",") if part.strip()] if is_list else value or None
    return result


@command(app)
def decline(
    client: Client,
    request: RequestId,
    comment: Annotated[str, typer.Option(help="The reason, which is sent to the requester.")],
    as_json: Json = False,
) -> None:
    """Decline a request, with a reason."""
    response = client.post(f"{PLACE}/{request}/decline", {"comment": comment})
    _done(response, "Declined", as_json=as_json)


@command(app)
def withdraw(client: Client, request: RequestId, as_json: Json = False) -> None:
    """Withdraw your own request."""
    response = client.post(f"{PLACE}/{request}/withdraw", None)
    _done(response, "Withdrawn", as_json=as_json)


def _done(result: dict[str, Any], word: str, *, as_json: bool) -> None:
    if as_json:
        print_json(result)
    else:
        print(f"{word}: {result['action']} on {_what(result)}, {result['id']}")
