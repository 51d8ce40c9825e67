"""Helpers shared by the commands for connections and destinations: configuration, secrets and connection checks."""

from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.cli.output import print_json, print_table

Kind = Annotated[
    str | None,
    typer.Option(help="postgresql, mysql, http, object_store, folder or, for connections, iceberg."),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help=(
            "A field of the configuration, such as host=db.example.com or auth.style=bearer. An empty value removes it."
        ),
    ),
]
Place = Annotated[
    Path | None, typer.Option("--place", help="A JSON file with the whole configuration; --set changes fields of it.")
]
Secret = Annotated[
    list[str] | None,
    typer.Option(
        "--secret",
        metavar="NAME[=env:VARIABLE|=file:PATH]",
        help="A secret, such as password: prompted for, or read with NAME=env:VARIABLE or NAME=file:PATH.",
    ),
]
Forget = Annotated[list[str] | None, typer.Option("--forget-secret", metavar="NAME", help="Delete a stored secret.")]
Pattern = Annotated[str, typer.Option(help="Filter: public.* for tables, orders/*.csv or **/*.csv for files.")]
Most = Annotated[int, typer.Option("--limit", min=1, max=2000, help="Maximum number of items.")]
ApiPath = Annotated[str, typer.Option("--path", help="For an HTTP API: the path to request, such as /v1/orders.")]


def path(client: Any, kind: str, text: str, **query: Any) -> str:
    """The API path of a connection or destination, given its name or id; an ambiguous name is an error."""
    from headgate.cli.names import only
    from headgate.kit.ids import kind_of

    where = f"/api/{kind}s"
    if kind_of(text) == kind:
        return f"{where}/{text}"
    items = client.get(where, prefix=text, limit=10, **query)["items"]
    return f"{where}/{only(items, kind, text)}"


def configuration_from_options(
    kind: str | None, file: Path | None, fields: list[str] | None, now: dict[str, Any] | None = None
) -> dict[str, Any] | None:
    """The configuration from the options, applied to the current one; None if no option changes it."""
    import json

    from headgate.cli.text_input import text_of
    from headgate.kit.errors import Invalid

    if kind is None and file is None and not fields:
        return None
    values = dict(now or {})
    if file is not None:
        try:
            read: Any = json.loads(text_of(file))
        except ValueError as error:
            raise Invalid(f"{file} is not JSON: {error}") from None
        if not isinstance(read, dict):
            raise Invalid(f"{file} must contain a JSON object with the fields of the configuration")
        values = read
    if kind is not None:
        values["kind"] = kind
    for value in fields or ():
        _put(values, value)
    return values


def _put(values: dict[str, Any], text: str) -> None:
    """Set a field, or a nested one as `auth.style=bearer`; an empty value removes it."""
    from headgate.kit.errors import Invalid

    name, is_set, value = text.partition("=")
    *outer, last = name.strip().split(".")
    if not is_set or not last or not all(outer):
        raise Invalid(f"--set {text!r}: write NAME=VALUE, such as --set host=db.example.com")
    for part in outer:
        values = values.setdefault(part, {})
        if not isinstance(values, dict):
            raise Invalid(f"--set {text!r}: {part} has no nested fields")
    if value:
        values[last] = value
    else:
        values.pop(last, None)


def secrets_from_options(given: list[str] | None, forgotten: list[str] | None = None) -> dict[str, str | None]:
    """Secrets from a prompt, a variable or a file, never from an argument, which other processes can read."""
    import os

    from headgate.cli.text_input import text_of
    from headgate.kit.errors import Invalid

    values: dict[str, str | None] = dict.fromkeys(forgotten or ())
    for value in given or ():
        name, is_given, source = value.partition("=")
        if not is_given:
            values[name] = typer.prompt(f"The {name.replace('_', ' ')}", hide_input=True)
        elif source.startswith("env:"):
            variable = source.removeprefix("env:")
            if variable not in os.environ:
                raise Invalid(f"--secret {name}: the environment variable {variable} is not set")
            values[name] = os.environ[variable]
        elif source.startswith("file:"):
            values[name] = text_of(Path(source.removeprefix("file:"))).rstrip("\n")
        else:
            raise Invalid(
                f"--secret {name}: other users can see secrets on the command line; write --secret {name} for a "
                f"prompt, {name}=env:VARIABLE, or {name}=file:PATH"
            )
    return values


def add(kind: str, body: dict[str, Any], secret: list[str] | None, done: str, *, as_json: bool) -> None:
    """Create a connection or destination with its secrets, and print how to test it."""
    from headgate.cli.client import connect

    with connect() as client:
        response = client.post(f"/api/{kind}s", {**body, "secrets": secrets_from_options(secret)})
    if as_json:
        print_json(response)
    else:
        print(
            f"{done} the {kind} {response['name']} ({response['id']}). Test it with: headgate {kind} test "
            f"{response['id']}"
        )


def change(
    kind: str,
    text: str,
    others: dict[str, Any],
    place: tuple[Path | None, list[str] | None],
    secrets: dict[str, str | None],
    *,
    as_json: bool,
) -> None:
    """Change a connection or destination, and print the effect on its secrets."""
    from headgate.cli.client import connect
    from headgate.kit.errors import Invalid

    with connect() as client:
        where = path(client, kind, text)
        before = client.get(where)["place"] or {}
        stored = {"kind": before["kind"], **before["config"]} if before else {}
        wanted = configuration_from_options(None, *place, stored)
        body = {**others, "place": wanted, "secrets": secrets}
        if all(value in (None, {}) for value in body.values()):
            raise Invalid("Nothing to change: give --name, --set, --place, --secret or --forget-secret")
        result = client.request("PATCH", where, body)
    if as_json:
        print_json(result)
        return
    print(f"Changed the {kind} {result['name']}.")
    after = result["place"] or {"version": 1, "secrets": []}
    if before and after["version"] != before["version"]:
        print("Its host changed: stored secrets are cleared, and pipelines that write to it must be confirmed again.")
    missing = [value["name"] for value in after["secrets"] if value["needed"] and not value["set_at"]]
    if missing:
        print(f"Missing secrets: {', '.join(missing)}. Set them with --secret.")


def show(kind: str, text: str, *, as_json: bool) -> None:
    """Print a connection or destination with its configuration."""
    from headgate.cli.client import connect

    with connect() as client:
        response = client.get(path(client, kind, text))
    if as_json:
        print_json(response)
        return
    hidden = {"place", "via"}
    rows = [(name.replace("_", " "), _short(value)) for name, value in response.items() if name not in hidden]
    place = response["place"]
    if place:
        rows += [
            (f"place: {name}", _short(value)) for name, value in place["config"].items() if value not in (None, {})
        ]
        rows += [
            (f"secret: {value['name']}", f"set {value['set_at']}" if value["set_at"] else "not set")
            for value in place["secrets"]
        ]
    print_table(("field", "value"), rows)


def _short(value: Any) -> Any:
    if isinstance(value, list):
        return [_short(value) for value in value]
    if isinstance(value, dict):
        return value["name"] if set(value) == {"id", "name"} else ", ".join(f"{k}={v}" for k, v in value.items())
    return value


def ask(
    kind: str,
    text: str,
    question: dict[str, Any],
    place: tuple[Path | None, list[str] | None] = (None, None),
    secret: list[str] | None = None,
) -> dict[str, Any]:
    """Have a worker check the connection, and wait for the result; a Problem says why it failed. `place` overrides
    fields of the stored configuration for this check only.
    """
    import time

    from headgate.cli.client import connect
    from headgate.kit.errors import Problem

    class Failed(Problem):
        status, code, title = 422, "connection_check_failed", "The check failed"

    with connect() as client:
        where = path(client, kind, text)
        if any(place):
            now = client.get(where)["place"] or {}
            stored = {"kind": now["kind"], **now["config"]} if now else {}
            question["place"] = configuration_from_options(None, *place, stored)
        if secret:
            question["secrets"] = secrets_from_options(secret)
        response = client.post(f"{where}/checks", question)
        deadline = time.monotonic() + 120
        while response["state"] in {"queued", "running"}:
            if time.monotonic() > deadline:
                raise Failed("no worker has run the check; run `headgate doctor` to see whether a worker is running")
            response = client.get(f"/api/connection-checks/{response['id']}", wait=20)
    if response["error"]:
        failed = Failed(f"[{response['error']['code']}] {response['error']['message']}")
        failed.status = 409
        raise failed
    return dict(response)


def run_test(
    kind: str,
    text: str,
    api_path: str,
    place: tuple[Path | None, list[str] | None],
    secret: list[str] | None,
    *,
    as_json: bool,
) -> None:
    """Test a connection or destination, and print the result."""
    values = ask(kind, text, {"operation": "test", "path": api_path}, place, secret)
    if as_json:
        print_json(values)
    else:
        print(f"{values['result']['detail']} ({values['result']['milliseconds']} ms).")


def print_discovered(kind: str, text: str, pattern: str, limit: int, *, as_json: bool) -> None:
    """Print the tables or files that the system has."""
    values = ask(kind, text, {"operation": "discover", "pattern": pattern, "limit": limit})
    if as_json:
        print_json(values)
        return
    result = values["result"]
    rows = [
        (
            value["name"],
            value["sort"],
            len(value["columns"]) or None,
            value["keys"] or None,
            value["bytes"],
            value["modified_at"],
        )
        for value in result["streams"]
    ]
    print_table(("name", "is a", "columns", "keys", "bytes", "modified at"), rows, empty=result["detail"])
    if result["truncated"]:
        print("The list was cut off; narrow the --pattern, or raise the --limit.")
