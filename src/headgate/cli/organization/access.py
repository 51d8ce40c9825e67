"""`headgate access`: evaluate worlds, explain access, simulate and make changes."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.cli.commands import Client, command
from headgate.cli.output import FAILED, MALFORMED, Json, fail, handle_errors, print_json, print_table

app = typer.Typer(help="Access: who may do what, and why.", no_args_is_help=True, rich_markup_mode=None)

Member = Annotated[str | None, typer.Option(help="The member, by name or id. Default: you.")]
Change = Annotated[
    str, typer.Argument(metavar="CHANGE", help="grant, revoke, share, add_owner, set_role, join_group …")
]
Values = Annotated[
    list[str] | None, typer.Argument(metavar="KEY=VALUE", help="An argument, such as to=ana level=viewer.")
]


@command(app, "test")
def evaluate(
    files: Annotated[list[Path], typer.Argument(help="YAML files with worlds; - reads standard input.")],
    as_json: Json = False,
) -> None:
    """Evaluate the assertions of worlds, each in its own database. Exits 0 if all pass, 1 if one fails or there is
    none, 2 if a world is malformed.
    """
    from headgate.access.worlds import read_world
    from headgate.access.yaml_nodes import WorldError
    from headgate.worlds.runner import run_world

    worlds = []
    for file in files:
        try:
            text = sys.stdin.read() if str(file) == "-" else file.read_bytes().decode()
            worlds.append(read_world(text, str(file)))
        except UnicodeDecodeError:
            _malformed(WorldError("not UTF-8 text", file=str(file)), as_json=as_json)
        except WorldError as error:
            _malformed(error, as_json=as_json)
        except OSError as error:
            _malformed(WorldError(error.strerror or str(error), file=str(file)), as_json=as_json)
    passed, failures = 0, []
    for world in worlds:
        for result in run_world(world):
            if result.passed:
                passed += 1
                continue
            failures.append(
                {
                    "file": world.file,
                    "line": result.line,
                    "text": result.text,
                    "explanation": list(result.explanation),
                }
            )
    _report(passed, failures, as_json=as_json)
    if failures or not passed:
        raise typer.Exit(FAILED)


def _malformed(error: Any, *, as_json: bool) -> None:
    if as_json:
        print_json({"error": {"file": error.file, "line": error.line, "key": error.key, "message": error.message}})
    fail(str(error), MALFORMED)


def _report(passed: int, failures: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json({"passed": passed, "failed": len(failures), "failures": failures})
        return
    for failure in failures:
        print(f"FAILED {failure['file']}:{failure['line']}: {failure['text']}")
        for line in failure["explanation"]:
            print(f"    {line}")
    print(f"{passed} passed, {len(failures)} failed")


@command(app)
def export(
    client: Client,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    as_json: Json = False,
) -> None:
    """Write the organization as a world, with what each member can see now as assertions."""
    text = client.get("/api/access/export")
    if as_json:
        import json

        import yaml

        text = json.dumps(yaml.safe_load(text), indent=2, ensure_ascii=False, default=str) + "\n"
    if output is None:
        print(text, end="")
    else:
        output.write_text(text)


@command(app)
def explain(
    client: Client,
    action: Annotated[str, typer.Argument(help="The action, such as edit.")],
    resource: Annotated[
        str, typer.Argument(help="kind:name, organization, or an id. For create and add, only the kind.")
    ],
    member: Member = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="KEY=VALUE", help="Details: the container, or the state after the action."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Explain why a member may or may not do something. If not, list what is missing and who could grant it."""
    body: dict[str, Any] = {"member": member, "action": action}
    body["kind" if action in ("create", "add") else "resource"] = resource
    if values is not None:
        body["with"] = _pairs(values)
    response = client.post("/api/access/explain", body)
    if as_json:
        print_json(response)
        return
    verb = "can" if response["allowed"] else "cannot"
    print(f"{response['member']} {verb} {response['action']} {resource}")
    for path, reason in zip(response["via"], response["because"] or response["via"], strict=False):
        print(f"  by {path}: {reason}")
    for way in response["ways"]:
        print(f"  not by {way['path']}: missing {', '.join(way['missing'])}")
        if way["how"] and way["who"]:
            print(f"      could {way['how']}: {', '.join(way['who'])}")


@command(app, "who-can")
def who_can(
    client: Client,
    action: Annotated[str, typer.Argument(help="The action, such as edit.")],
    resource: Annotated[str, typer.Argument(help="kind:name, organization, or an id.")],
    as_json: Json = False,
) -> None:
    """List the members who have an action on a resource."""
    items: list[Any] = []
    cursor = None
    while True:
        body = {"action": action, "resource": resource, "limit": 200, "cursor": cursor}
        response = client.post("/api/access/who-can", body)
        items += response["items"]
        cursor = response["next_cursor"]
        if cursor is None:
            break
    if as_json:
        print_json(items)
    else:
        print_table(("name", "id"), ((item["name"], item["id"]) for item in items), empty="Nobody.")


@command(app, "what-can")
def what_can(
    client: Client,
    member: Member = None,
    kind: Annotated[list[str] | None, typer.Option(help="Only this kind. Can be repeated.")] = None,
    as_json: Json = False,
) -> None:
    """List what a member can do on each resource that they see."""
    from headgate.access.world_fields import FIELDS

    items: list[Any] = []
    for value in kind or FIELDS:
        cursor = None
        while True:
            body = {"member": member, "kind": value, "limit": 200, "cursor": cursor}
            response = client.post("/api/access/what-can", body)
            items += response["items"]
            cursor = response["next_cursor"]
            if cursor is None:
                break
    if as_json:
        print_json(items)
    else:
        rows = ((item["kind"], item["name"], item["actions"], item["via"]) for item in items)
        print_table(("kind", "name", "can", "by"), rows)


def _pairs(values: list[str]) -> dict[str, Any]:
    """KEY=VALUE pairs as a request body; commas separate the items of a list."""
    lists = {"contexts", "reads", "writes", "disabled", "connections", "owners", "technical_owners", "business_owners"}
    result: dict[str, Any] = {}
    for pair in values:
        key, equals, value = pair.partition("=")
        if not equals:
            fail(f"{pair!r} is not KEY=VALUE", MALFORMED)
        if key in lists:
            result[key] = [part.strip() for part in value.split(",") if part.strip()]
        else:
            result[key] = None if value == "" else value
    return result


@command(app, "what-if")
def what_if(
    client: Client,
    change: Change,
    values: Values = None,
    member: Annotated[str | None, typer.Option(help="Only for this member.")] = None,
    as_json: Json = False,
) -> None:
    """Simulate a change: list who would gain and who would lose which actions. Nothing is changed. Example: headgate
    access what-if share resource=data_mart:Sales for_use=true
    """
    body = {"change": {"change": change, **_pairs(values or [])}, "member": member}
    response = client.post("/api/access/what-if", body)
    if as_json:
        print_json(response)
        return
    rows = (
        (item["member"], f"{item['kind']}:{item['name']}", item["gains"], item["loses"]) for item in response["items"]
    )
    print_table(("member", "resource", "gains", "loses"), rows, empty="The change would not change anyone's access.")
    rest = response["total"] - len(response["items"])
    if rest:
        print(f"and {rest} more")


@command(app, "change")
def change_access(client: Client, change: Change, values: Values = None, as_json: Json = False) -> None:
    """Change access as a member. `headgate access what-if` simulates the change first. Example: headgate access change
    grant to=Bob resource=table:gold.orders level=viewer
    """
    response = client.post("/api/access/changes", {"change": change, **_pairs(values or [])})
    if as_json:
        print_json(response)
    else:
        print(f"Done, by {', '.join(response['via'])}.")


@command(app)
def tables(client: Client, as_json: Json = False) -> None:
    """Print the rule tables: the paths of each kind and the actions that they grant."""
    response = client.get("/api/access/tables")
    if as_json:
        print_json(response)
        return
    for table in response["tables"]:
        print(f"\n{table['title']}")
        print_table(
            ("path", "condition", "grants"),
            ((path["name"], path["condition"], path["grants"]) for path in table["paths"]),
        )


@command(app)
def reindex(as_json: Json = False) -> None:
    """Rebuild the index for resource lists from the rule tables, in the local installation."""
    from headgate.cli.local import installation
    from headgate.platform.authorization.list_index import rebuild

    with installation() as (_, database):
        entries = database.write(rebuild)
    if as_json:
        print_json({"entries": entries})
    else:
        print(f"The index has {entries:,} entries.")


@handle_errors
def me(as_json: Json = False) -> None:
    """Show who you are, and your actions on the organization."""
    from headgate.cli.client import connect

    with connect() as client:
        response = client.get("/api/access/me")
    if as_json:
        print_json(response)
    else:
        print_table(("field", "value"), response.items())
