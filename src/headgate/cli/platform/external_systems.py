"""What the commands on connections and destinations share: where one points, its secrets, and errands about it."""

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
        help="A field of the place, such as host=db.example.com or auth.style=bearer; empty, it is taken away.",
    ),
]
Place = Annotated[
    Path | None, typer.Option("--place", help="A file with the whole place as JSON; --set changes fields of it.")
]
Secret = Annotated[
    list[str] | None,
    typer.Option(
        "--secret",
        metavar="NAME[=env:VARIABLE|=file:PATH]",
        help="A secret, such as password: typed in, or read from a variable or a file; never an argument.",
    ),
]
Forget = Annotated[list[str] | None, typer.Option("--forget-secret", metavar="NAME", help="Take a secret away.")]
Pattern = Annotated[str, typer.Option(help="Which ones: public.* in a database, orders/*.csv or **/*.csv among files.")]
Most = Annotated[int, typer.Option("--limit", min=1, max=2000, help="How many at most.")]
ApiPath = Annotated[str, typer.Option("--path", help="Of an API: ask for this path, such as /v1/orders.")]


def path(client: Any, kind: str, text: str, **query: Any) -> str:
    """The place in the API of a connection or destination that a person names; several of one name need the id."""
    from headgate.cli.names import only
    from headgate.kit.ids import kind_of

    where = f"/api/{kind}s"
    if kind_of(text) == kind:
        return f"{where}/{text}"
    items = client.get(where, prefix=text, limit=10, **query)["items"]
    return f"{where}/{only(items, kind, text)}"


def place_given(
    kind: str | None, file: Path | None, fields: list[str] | None, now: dict[str, Any] | None = None
) -> dict[str, Any] | None:
    """The place that options describe, on top of what there is now; None if they say nothing of it."""
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
            raise Invalid(f"{file} must hold an object with the fields of the place")
        values = read
    if kind is not None:
        values["kind"] = kind
    for value in fields or ():
        _put(values, value)
    return values


def _put(values: dict[str, Any], text: str) -> None:
    """Set a field, `auth.style=bearer` inside of another; an empty value takes it away."""
    from headgate.kit.errors import Invalid

    name, is_set, value = text.partition("=")
    *outer, last = name.strip().split(".")
    if not is_set or not last or not all(outer):
        raise Invalid(f"--set {text!r}: write NAME=VALUE, such as --set host=db.example.com")
    for part in outer:
        values = values.setdefault(part, {})
        if not isinstance(values, dict):
            raise Invalid(f"--set {text!r}: {part} has no fields of its own")
    if value:
        values[last] = value
    else:
        values.pop(last, None)


def secrets_given(given: list[str] | None, forgotten: list[str] | None = None) -> dict[str, str | None]:
    """Secrets: typed in, or from a variable or file. Nobody's list of processes shows them."""
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
                raise Invalid(f"--secret {name}: there is no environment variable {variable}")
            values[name] = os.environ[variable]
        elif source.startswith("file:"):
            values[name] = text_of(Path(source.removeprefix("file:"))).rstrip("\n")
        else:
            raise Invalid(
                f"--secret {name}: a secret on the command line is seen by others; write --secret {name} to type it, "
                f"or {name}=env:VARIABLE, or {name}=file:PATH"
            )
    return values


def added(kind: str, body: dict[str, Any], secret: list[str] | None, done: str, *, as_json: bool) -> None:
    """Make one with its secrets, and say how to try it."""
    from headgate.cli.client import connect

    with connect() as client:
        response = client.post(f"/api/{kind}s", {**body, "secrets": secrets_given(secret)})
    if as_json:
        print_json(response)
    else:
        print(f"{done} the {kind} {response['name']} ({response['id']}). Try it: headgate {kind} test {response['id']}")


def changed_by(
    kind: str,
    text: str,
    others: dict[str, Any],
    place: tuple[Path | None, list[str] | None],
    secrets: dict[str, str | None],
    *,
    as_json: bool,
) -> None:
    """Change the place, the secrets or other fields of one, and say what that did to its secrets."""
    from headgate.cli.client import connect
    from headgate.kit.errors import Invalid

    with connect() as client:
        where = path(client, kind, text)
        before = client.get(where)["place"] or {}
        stored = {"kind": before["kind"], **before["config"]} if before else {}
        wanted = place_given(None, *place, stored)
        body = {**others, "place": wanted, "secrets": secrets}
        if all(value in (None, {}) for value in body.values()):
            raise Invalid(
                "Nothing to change: give --name, --set, --place, --secret, --forget-secret, or several of them"
            )
        result = client.request("PATCH", where, body)
    if as_json:
        print_json(result)
        return
    print(f"Changed the {kind} {result['name']}.")
    after = result["place"] or {"version": 1, "secrets": []}
    if before and after["version"] != before["version"]:
        print("It points somewhere else now: old secrets are cleared, and what writes there waits for a confirmation.")
    missing = [value["name"] for value in after["secrets"] if value["needed"] and not value["set_at"]]
    if missing:
        print(f"Needed, and not set: {', '.join(missing)}. Give it with --secret.")


def show(kind: str, text: str, *, as_json: bool) -> None:
    """Show one, and where it points."""
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
    """Have a worker find something out, and wait for it; a Problem says why it failed. `place` changes fields of the
    stored place, for this question alone.
    """
    import time

    from headgate.cli.client import connect
    from headgate.kit.errors import Problem

    class Failed(Problem):
        status, code, title = 422, "errand_failed", "It did not work"

    with connect() as client:
        where = path(client, kind, text)
        if any(place):
            now = client.get(where)["place"] or {}
            stored = {"kind": now["kind"], **now["config"]} if now else {}
            question["place"] = place_given(None, *place, stored)
        if secret:
            question["secrets"] = secrets_given(secret)
        response = client.post(f"{where}/errands", question)
        deadline = time.monotonic() + 120
        while response["state"] in {"queued", "running"}:
            if time.monotonic() > deadline:
                raise Failed("no worker has answered; does one run? `headgate doctor` tells")
            response = client.get(f"/api/errands/{response['id']}", wait=20)
    if response["error"]:
        failed = Failed(f"[{response['error']['code']}] {response['error']['message']}")
        failed.status = 409
        raise failed
    return dict(response)


def tested(
    kind: str,
    text: str,
    api_path: str,
    place: tuple[Path | None, list[str] | None],
    secret: list[str] | None,
    *,
    as_json: bool,
) -> None:
    """Test one, or a changed place for it, and say what answered."""
    values = ask(kind, text, {"errand": "test", "path": api_path}, place, secret)
    if as_json:
        print_json(values)
    else:
        print(f"{values['result']['detail']} ({values['result']['milliseconds']} ms).")


def discovered(kind: str, text: str, pattern: str, limit: int, *, as_json: bool) -> None:
    """List what is there."""
    values = ask(kind, text, {"errand": "discover", "pattern": pattern, "limit": limit})
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
        print("There are more; narrow the --pattern, or raise the --limit.")
