"""`headgate run`: start, follow, cancel and resume runs."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli.commands import Client, command
from headgate.cli.output import Json, print_json, print_table, printable
from headgate.cli.progress_bar import ProgressBar

if TYPE_CHECKING:
    from headgate.client import Headgate

app = typer.Typer(help="Pipeline runs.", no_args_is_help=True, rich_markup_mode=None)

Run = Annotated[str, typer.Argument(metavar="RUN", help="The id of the run.")]
Pipeline = Annotated[str, typer.Argument(metavar="PIPELINE", help="The pipeline, by name or id.")]
Follow = Annotated[bool, typer.Option("--follow", help="Follow the run until it ends, and print its log.")]
FAILED, INTERRUPTED = 1, 130
ENDED = frozenset({"succeeded", "failed", "cancelled", "blocked", "skipped"})
_LOOK_EVERY = 1.0


def begin(pipeline: str, parameters: list[str], *, full_refresh: bool, follow: bool, as_json: bool) -> None:
    """Start a run, and follow it if requested."""
    from headgate.cli.client import connect
    from headgate.cli.pipelines.pipeline import named

    body = {"full_refresh": full_refresh, "parameters": dict(_parameter(parameter) for parameter in parameters)}
    with connect() as client:
        result = client.request("POST", f"/api/pipelines/{named(client, pipeline)}/runs", body)
        if follow:
            result = watch(client, result["id"])
    _print(result, as_json=as_json)
    if follow and result["state"] != "succeeded":
        raise typer.Exit(FAILED)


def _parameter(text: str) -> tuple[str, Any]:
    import json

    from headgate.kit.errors import Invalid

    name, equals, value = text.partition("=")
    if not equals:
        raise Invalid(f"{text!r} is not a parameter; write NAME=VALUE")
    try:
        document = json.loads(value)
    except ValueError:
        document = value
    return name, document if isinstance(document, str | int | float | bool) or document is None else value


def watch(client: "Headgate", run: str) -> dict[str, Any]:
    """Follow a run until it ends: print its log, and draw a progress bar on a terminal. Ctrl-C only stops watching."""
    after = -1
    with _RunBar() as bar:
        try:
            while True:
                response = client.get(f"/api/runs/{run}/log", after=after, wait=_LOOK_EVERY)
                for line in response["items"]:
                    bar.told(line)
                after = response["next"]
                shown: dict[str, Any] = client.get(f"/api/runs/{run}")
                bar.show(shown)
                if response["ended"] and shown["state"] in ENDED:
                    return shown
        except KeyboardInterrupt:
            bar.told({"level": "info", "text": f"The run continues; `headgate run cancel {run}` cancels it."})
            raise typer.Exit(INTERRUPTED) from None


class _RunBar(ProgressBar):
    """The progress bar of a run on a terminal; otherwise only the log lines."""

    def told(self, line: dict[str, Any]) -> None:
        """Print a log line."""
        self.line({"warning": "warning: ", "error": "error: "}.get(line["level"], "") + line["text"])

    def show(self, run: dict[str, Any]) -> None:
        """Draw the current step and its Spark tasks."""
        steps = run["steps"]
        done = sum(step["state"] == "succeeded" for step in steps)
        waits = f"waiting for {run['waits_for']}" if run["waits_for"] else run["state"]
        now = next((step["title"] for step in steps if step["state"] == "running"), waits)
        far = run["progress"] or {"tasks_done": 0, "tasks_total": 0}
        tasks = f", {far['tasks_done']}/{far['tasks_total']} tasks" if far["tasks_total"] else ""
        self.draw(now[:60], done, len(steps), f"{done}/{len(steps)} steps{tasks}" if steps else "")


def _print(run: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(run)
        return
    print(f"Run {run['id']}: {run['state']}.")
    if run["waits_for"]:
        print(printable(f"The run is waiting for {run['waits_for']}."))
    if run["error"]:
        print(printable(f"[{run['error_code']}] {run['error']}"))
    if run["steps"]:
        rows = (
            (entry["number"] + 1, entry["title"], entry["state"], entry["rows_out"], entry["rejected"], _checked(entry))
            for entry in run["steps"]
        )
        print_table(("", "step", "state", "rows", "rejected", "check"), rows)
    for value in run["written"]:
        print(f"wrote {value['name'] or value['table']}, snapshot {value['snapshot'] or '—'}")


def _checked(step: dict[str, Any]) -> str | None:
    check = step["check"]
    return None if check is None else "as expected" if check["passed"] else check["message"]


@command(app)
def start(
    pipeline: Pipeline,
    full_refresh: Annotated[
        bool, typer.Option("--full-refresh", help="Restart incremental loads from the beginning.")
    ] = False,
    parameter: Annotated[
        list[str] | None, typer.Option("--parameter", "-p", help="A notebook parameter, as NAME=VALUE.")
    ] = None,
    follow: Follow = False,
    as_json: Json = False,
) -> None:
    """Run a pipeline. It runs as its last saver or its service account, not as you."""
    begin(pipeline, parameter or [], full_refresh=full_refresh, follow=follow, as_json=as_json)


@command(app, "list")
def list_runs(
    client: Client,
    pipeline: Pipeline,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Maximum number of items on a page.")] = 20,
    cursor: Annotated[str | None, typer.Option(help="The cursor printed below the previous page.")] = None,
    as_json: Json = False,
) -> None:
    """List the runs of a pipeline, newest first."""
    from headgate.cli.pipelines.pipeline import named

    response = client.get(f"/api/pipelines/{named(client, pipeline)}/runs", limit=limit, cursor=cursor)
    if as_json:
        print_json(response)
        return
    rows = (
        (
            (value["queued_at"] or "")[:19],
            value["state"],
            value["rows_out"],
            value["rejected"],
            value["error_code"],
            value["id"],
        )
        for value in response["items"]
    )
    print_table(("queued", "state", "rows", "rejected", "error", "id"), rows, empty="The pipeline has no runs.")
    if response["next_cursor"]:
        print(f"more: --cursor {response['next_cursor']}")


@command(app)
def show(client: Client, run: Run, as_json: Json = False) -> None:
    """Show a run: its steps, the tables that it wrote, and its error."""
    response = client.get(f"/api/runs/{run}")
    _print(response, as_json=as_json)


@command(app)
def log(client: Client, run: Run, as_json: Json = False) -> None:
    """Print the log of a run."""
    after, lines = -1, []
    while True:
        response = client.get(f"/api/runs/{run}/log", after=after)
        lines += response["items"]
        if not response["items"]:
            break
        after = response["next"]
    if as_json:
        print_json(lines)
        return
    with _RunBar() as bar:
        for line in lines:
            bar.told({**line, "text": f"{line['at'][:19]} {line['text']}"})


@command(app)
def follow(client: Client, run: Run, as_json: Json = False) -> None:
    """Follow a run until it ends, and print its log. Ctrl-C leaves the run running."""
    values = watch(client, run)
    _print(values, as_json=as_json)
    if values["state"] != "succeeded":
        raise typer.Exit(FAILED)


@command(app)
def cancel(run: Run, as_json: Json = False) -> None:
    """Cancel a run. Nothing is committed for it any more, and Spark stops it."""
    _order(run, "cancel", as_json=as_json)


@command(app)
def resume(run: Run, as_json: Json = False) -> None:
    """Resume a failed or cancelled run after its last completed step."""
    _order(run, "resume", as_json=as_json)


def _order(run: str, order: str, *, as_json: bool) -> None:
    from headgate.cli.client import connect

    with connect() as client:
        result = client.request("POST", f"/api/runs/{run}/{order}")
    if as_json:
        print_json(result)
    else:
        print(f"The run is {result['state']}.")


@command(app)
def delete(client: Client, run: Run, as_json: Json = False) -> None:
    """Delete a run from the history. The tables that it wrote are kept."""
    result = client.request("DELETE", f"/api/runs/{run}")
    if as_json:
        print_json(result)
    else:
        print("Deleted.")


@command(app)
def artifact(
    client: Client,
    run: Run,
    name: Annotated[str, typer.Argument(help="The name of the file, as in `headgate run show --json`.")],
    output: Annotated[str, typer.Option("--output", "-o", help="The local path.")],
) -> None:
    """Download an artifact of a run, such as a plot of a notebook."""
    from pathlib import Path

    from headgate.cli.lakehouse.sql import check_free

    check_free(Path(output), overwrite=False)
    content = b"".join(client.read(f"/api/runs/{run}/artifacts/{name}"))
    Path(output).write_bytes(content)
    print(f"Wrote {output}.")
