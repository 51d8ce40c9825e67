"""`headgate trigger`: start pipelines on a schedule, after other pipelines, or when tables change."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli.commands import Client, command
from headgate.cli.output import Json, print_json, print_table

if TYPE_CHECKING:
    from headgate.client import Headgate

app = typer.Typer(
    help="Triggers: schedules and events that start pipelines.", no_args_is_help=True, rich_markup_mode=None
)

PATH = "/api/triggers"
Pipeline = Annotated[str, typer.Argument(metavar="PIPELINE", help="The pipeline, by name or id.")]
Named = Annotated[str, typer.Argument(metavar="TRIGGER", help="The trigger, by id, or by name with --pipeline.")]
Of = Annotated[
    str | None,
    typer.Option("--pipeline", "-p", help="The pipeline of the trigger; required if the trigger is given by name."),
]
Cron = Annotated[str | None, typer.Option(help="Cron expression, such as '0 6 * * 1-5', or @daily.")]
Zone = Annotated[str | None, typer.Option(help="Time zone of --cron, such as Europe/Berlin. Default: UTC.")]
CatchUp = Annotated[str | None, typer.Option(help="Missed schedules: skip, latest (the default) or all.")]
After = Annotated[list[str] | None, typer.Option(help="Start when this pipeline succeeds. Can be repeated.")]
OnChange = Annotated[list[str] | None, typer.Option(help="Start when this table changes. Can be repeated.")]
All = Annotated[bool, typer.Option("--all", help="Wait for all of them instead of any of them.")]
AtMostEvery = Annotated[str | None, typer.Option(help="Minimum time between starts, such as '10 minutes'.")]
Parameter = Annotated[list[str] | None, typer.Option(help="A parameter, as NAME=VALUE. Can be repeated.")]


def _when(
    client: "Headgate",
    cron: str | None,
    zone: str | None,
    catch_up: str | None,
    after: list[str] | None,
    on_change: list[str] | None,
    all_: bool,
    at_most_every: str | None,
) -> dict[str, Any] | None:
    """The condition of the trigger from the options; None if none is given."""
    from headgate.kit.errors import Invalid

    given = {"--cron": cron, "--after": after, "--on-change": on_change}
    if sum(1 for value in given.values() if value) > 1:
        raise Invalid(f"{', '.join(given)} exclude each other: a trigger has one condition")
    if cron:
        if all_ or at_most_every:
            raise Invalid("--all and --at-most-every require --after or --on-change")
        more = {"time_zone": zone, "catch_up": catch_up}
        return {"kind": "cron", "cron": cron, **{name: value for name, value in more.items() if value}}
    if zone or catch_up:
        raise Invalid("--zone and --catch-up require --cron")
    common = {"which": "all" if all_ else "any", "at_most_every": at_most_every}
    if after:
        from headgate.cli.pipelines.pipeline import named

        return {"kind": "pipelines", "pipelines": [named(client, value) for value in after], **common}
    if on_change:
        return {"kind": "tables", "tables": on_change, **common}
    if all_ or at_most_every:
        raise Invalid("--all and --at-most-every require --after or --on-change")
    return None


def _parameters(given: list[str] | None) -> dict[str, Any] | None:
    """Parameters; a value is parsed as JSON if it is a number, true, false or null, else it is text."""
    import json

    from headgate.kit.errors import Invalid

    if given is None:
        return None
    values: dict[str, Any] = {}
    for entry in given:
        name, equals, value = entry.partition("=")
        if not name or not equals:
            raise Invalid(f"--parameter {entry!r}: write NAME=VALUE")
        try:
            read = json.loads(value)
        except ValueError:
            read = value
        values[name] = value if isinstance(read, list | dict) else read
    return values


def _place(client: "Headgate", trigger: str, pipeline: str | None) -> str:
    """The API path of a trigger, given its id, or its name and pipeline."""
    from headgate.kit.errors import Invalid, NotFound
    from headgate.kit.ids import kind_of
    from headgate.kit.names import name_key

    if kind_of(trigger) == "pipeline_trigger":
        return f"{PATH}/{trigger}"
    if pipeline is None:
        raise Invalid(f"{trigger!r} is not the id of a trigger; to use its name, give its pipeline with --pipeline")
    from headgate.cli.pipelines.pipeline import named

    for value in client.get(f"/api/pipelines/{named(client, pipeline)}/triggers")["items"]:
        if name_key(value["name"]) == name_key(trigger):
            return f"{PATH}/{value['id']}"
    raise NotFound(f"{pipeline} has no trigger called {trigger!r} that you may see; `headgate trigger list` shows them")


def _says(when: dict[str, Any] | None) -> str:
    """The condition of a trigger in words."""
    if when is None:
        return "never: it was not saved on this installation yet"
    if when["kind"] == "cron":
        return f"{when['cron']} ({when['says']}, {when['time_zone']})"
    names = [value["name"] for value in when["sources"]] + (["hidden ones"] if when["hidden"] else [])
    happens = "succeeded" if when["kind"] == "pipelines" else "changed"
    pause = f", at most every {when['at_most_every']}" if when["at_most_every"] else ""
    return f"when {when['which']} of {', '.join(names)} {happens}{pause}"


def _state(result: dict[str, Any]) -> str:
    if not result["pipeline_active"]:
        why = f" ({result['pipeline_inactive_because']})" if result["pipeline_inactive_because"] else ""
        return f"inactive: its pipeline is deactivated{why}; `headgate pipeline activate` activates it"
    if result["enabled"]:
        return "on"
    return f"paused: {result['paused_because']}" if result["paused_because"] else "paused"


def _show(result: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(result)
        return
    rows = [
        ("name", result["name"]),
        ("id", result["id"]),
        ("pipeline", result["pipeline"]),
        ("fires", _says(result["when"])),
        ("state", _state(result)),
        ("next", [value[:19] for value in result["next"]]),
        ("last run", result["last"] and result["last"]["run"]),
        ("author", result["author"] and result["author"]["name"]),
        ("full refresh", result["full_refresh"]),
        ("parameters", [f"{name}={value}" for name, value in result["parameters"].items()]),
        ("a fire would lack", result["blocked_by"]),
        ("you can", result["allowed"]),
    ]
    print_table(("field", "value"), rows)


@command(app, "list")
def list_triggers(client: Client, pipeline: Pipeline, as_json: Json = False) -> None:
    """List the triggers of a pipeline."""
    from headgate.cli.pipelines.pipeline import named

    response = client.get(f"/api/pipelines/{named(client, pipeline)}/triggers")
    if as_json:
        print_json(response)
        return
    rows = (
        (
            value["name"],
            _says(value["when"]),
            _state(value),
            value["next"][0][:19] if value["next"] else None,
            value["id"],
        )
        for value in response["items"]
    )
    print_table(("name", "fires", "state", "next (UTC)", "id"), rows, empty="This pipeline has no trigger.")


@command(app)
def show(client: Client, trigger: Named, pipeline: Of = None, as_json: Json = False) -> None:
    """Show a trigger: its condition, its next starts, and the access that it lacks now."""
    response = client.get(_place(client, trigger, pipeline))
    _show(response, as_json=as_json)


@command(app)
def add(  # noqa: PLR0913, PLR0917 - each is an option
    client: Client,
    pipeline: Pipeline,
    name: Annotated[str, typer.Argument(help="The name.")],
    cron: Cron = None,
    zone: Zone = None,
    catch_up: CatchUp = None,
    after: After = None,
    on_change: OnChange = None,
    all_: All = False,
    at_most_every: AtMostEvery = None,
    full_refresh: Annotated[bool, typer.Option("--full-refresh", help="Run a full refresh each time.")] = False,
    parameter: Parameter = None,
    as_json: Json = False,
) -> None:
    """Add a trigger to a pipeline. Each start is checked against your permissions at that time."""
    from headgate.cli.pipelines.pipeline import named
    from headgate.kit.errors import Invalid

    when = _when(client, cron, zone, catch_up, after, on_change, all_, at_most_every)
    if when is None:
        raise Invalid("the trigger has no condition; give --cron, --after or --on-change")
    body = {"name": name, "when": when, "full_refresh": full_refresh, "parameters": _parameters(parameter) or {}}
    response = client.post(f"/api/pipelines/{named(client, pipeline)}/triggers", body)
    _show(response, as_json=as_json)


@command(app)
def change(  # noqa: PLR0913, PLR0917 - each is an option
    client: Client,
    trigger: Named,
    pipeline: Of = None,
    name: Annotated[str | None, typer.Option(help="The new name.")] = None,
    cron: Cron = None,
    zone: Zone = None,
    catch_up: CatchUp = None,
    after: After = None,
    on_change: OnChange = None,
    all_: All = False,
    at_most_every: AtMostEvery = None,
    full_refresh: Annotated[
        bool | None, typer.Option("--full-refresh/--no-full-refresh", help="Run a full refresh each time.")
    ] = None,
    parameter: Parameter = None,
    as_json: Json = False,
) -> None:
    """Change a trigger and become its author: each start is checked against your permissions. Options that you do not
    give keep their values.
    """
    when = _when(client, cron, zone, catch_up, after, on_change, all_, at_most_every)
    given = {"name": name, "when": when, "full_refresh": full_refresh, "parameters": _parameters(parameter)}
    body = {field: value for field, value in given.items() if value is not None}
    result = client.request("PATCH", _place(client, trigger, pipeline), body)
    _show(result, as_json=as_json)


def _do(trigger: str, pipeline: str | None, what: str, *, as_json: bool) -> None:
    from headgate.cli.client import connect

    with connect() as client:
        result = client.request("POST", f"{_place(client, trigger, pipeline)}/{what}")
    _show(result, as_json=as_json)


@command(app)
def pause(trigger: Named, pipeline: Of = None, as_json: Json = False) -> None:
    """Pause a trigger. A run that it has already started continues."""
    _do(trigger, pipeline, "pause", as_json=as_json)


@command(app)
def resume(trigger: Named, pipeline: Of = None, as_json: Json = False) -> None:
    """Resume a paused trigger and become its author: each start is checked against your permissions."""
    _do(trigger, pipeline, "resume", as_json=as_json)


@command(app)
def delete(client: Client, trigger: Named, pipeline: Of = None, as_json: Json = False) -> None:
    """Delete a trigger. Runs that it started are kept."""
    result = client.request("DELETE", _place(client, trigger, pipeline))
    if as_json:
        print_json(result)
    else:
        print(f"Deleted {result['name']}.")


@command(app, "next")
def next_fires(
    client: Client,
    cron: Annotated[str, typer.Argument(help="Cron expression, such as '0 6 * * 1-5'.")],
    zone: Annotated[str, typer.Option(help="Time zone of the schedule.")] = "UTC",
    as_json: Json = False,
) -> None:
    """Preview the next times of a schedule, without saving it."""
    response = client.post(f"{PATH}/preview", {"cron": cron, "time_zone": zone})
    if as_json:
        print_json(response)
        return
    print(response["says"])
    for value in response["next"]:
        print(f"{value[:19]} UTC")
