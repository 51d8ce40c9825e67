"""`headgate demo`: creates the company, starts the server, runs five queries, and shows how to continue."""

import os
import shutil
import signal
import socket
import sys
import time
from importlib.resources import files
from pathlib import Path

import httpx2 as httpx

from headgate.access.worlds import read_world
from headgate.demo import flow, lake
from headgate.demo.commands import MemberCommands, StepFailed
from headgate.kit.clock import now
from headgate.kit.errors import Conflict
from headgate.organization.tokens.service import create
from headgate.settings.settings import PREFIX, Settings, load
from headgate.supervisor.preflight import check, opened
from headgate.supervisor.run import hold, main_or_exit
from headgate.worlds.loader import Names
from headgate.worlds.loader import load as load_world

WORLD = files("headgate.demo") / "company.yaml"
MARKER = "demo"
DOCTOR = "`headgate doctor` says what this machine lacks, and what to do"
SHOWN = {
    "Olga": "owner",
    "Adam": "admin",
    "Tess": "technical",
    "Ana": "technical",
    "Ben": "business",
    "Bea": "business",
    "Dora": "business, data admin",
}

QUESTIONS = (
    ("Which data marts does Ben see, and what can he do with them?", "Ben", "resource list data_mart"),
    ("May Ben edit Revenue? What is missing, and who could grant it?", "Ben", "access explain edit data_mart:Revenue"),
    ("Who can edit Revenue?", "Tess", "access who-can edit data_mart:Revenue"),
    (
        "What if Tess shared Revenue for maintenance?",
        "Tess",
        "access what-if share resource=data_mart:Revenue for_maintenance=true",
    ),
    (
        "May Bea read the table behind it, and by what?",
        "Adam",
        "access explain execute table:service.revenue --member Bea",
    ),
)


def run(folder: Path, *, stay: bool) -> int:
    """Create and serve the demo; without `stay`, only until the queries have run."""
    settings = _settings(folder)
    _refuse_without_what_it_needs(settings)
    print("Making Millrace Foods: 8 members, 2 groups, 2 contexts, resources of every kind …", flush=True)
    tokens = _make(settings)

    def when_started(address: str) -> int:
        try:
            _wait(address)
            _show(address, tokens, folder, stay=stay)
        except StepFailed as error:
            sys.stdout.flush()
            print(f"\nerror: The demo stops, since one of its steps failed.\n{error}", file=sys.stderr, flush=True)
            print(f"The server's log is above; {DOCTOR}", file=sys.stderr, flush=True)
            return 1
        if not stay:
            os.kill(os.getppid(), signal.SIGTERM)
        return 0

    return main_or_exit(settings, when_started)


def _refuse_without_what_it_needs(settings: Settings) -> None:
    """Report missing requirements of this machine before the demo starts."""
    from headgate.execution.sandbox import bubblewrap  # noqa: PLC0415 - loads what speaks with Spark's machine
    from headgate.execution.spark import doctor  # noqa: PLC0415 - loads what speaks with Spark's machine

    lacking = doctor.wrong(settings)
    if settings.notebooks.mode == "sandbox" and (why := bubblewrap.missing(settings.spark.sandbox_uid)):
        lacking.append(f"notebooks need a sandbox: {why}")
    if lacking:
        raise Conflict("This machine lacks what the demo needs. " + ". ".join(dict.fromkeys(lacking)) + f". {DOCTOR}")


def _settings(folder: Path) -> Settings:
    """The settings of the demo, also for its child processes."""
    if folder.exists():
        if not (folder / MARKER).exists() and any(folder.iterdir()):
            raise Conflict(f"{folder} holds something that is no demo; give --folder another place")
        os.close(hold(folder))
        shutil.rmtree(folder)
    folder.mkdir(parents=True, mode=0o700)
    (folder / MARKER).touch()
    os.environ[f"{PREFIX}DATA_DIR"] = str(folder.absolute())
    os.environ.setdefault(f"{PREFIX}LOG__LEVEL", "warning")
    # The demo has its own database and warehouse, regardless of the settings.
    os.environ[f"{PREFIX}DATABASE__URL"] = f"sqlite:///{folder.absolute()}/headgate.db"
    os.environ[f"{PREFIX}WAREHOUSE__URL"] = f"file://{folder.absolute()}/warehouse"
    os.environ[f"{PREFIX}WAREHOUSE__EXTERNAL_ENGINES"] = "same-host"
    # The demo's API runs on this machine.
    os.environ[f"{PREFIX}OUTGOING__ALLOW"] = '["127.0.0.1"]'
    settings = load()
    if f"{PREFIX}SERVER__PORT" not in os.environ and _is_taken(settings.server.port):
        print(f"Port {settings.server.port} is taken; the demo takes a free one.")
        os.environ[f"{PREFIX}SERVER__PORT"] = "0"
    return load()


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def _make(settings: Settings) -> dict[str, str]:
    """Fill the database; returns a token for each shown member."""
    check(settings)
    database = opened(settings)
    moment = now()
    world = read_world(WORLD.read_text(encoding="utf-8"), "company.yaml")
    try:
        names: Names = database.write(lambda c: load_world(c, world, moment, name="Millrace Foods"))
        members = {name: names.of("member", name) or "" for name in SHOWN}
        return database.write(
            lambda c: {name: create(c, member, "demo", moment).secret for name, member in members.items()}
        )
    finally:
        database.close()


def _wait(address: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{address}/readyz", timeout=2).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise StepFailed("headgate up", "the server did not become ready within a minute")


def _show(address: str, tokens: dict[str, str], folder: Path, *, stay: bool) -> None:
    commands = MemberCommands(address, tokens, folder.absolute() / "pipelines")
    commands.folder.mkdir(parents=True, exist_ok=True)
    print(f"\nHeadgate serves Millrace Foods at {address}  (data in {folder})\n")
    print("A token for each role:")
    for name, role in SHOWN.items():
        print(f"  {name:5} {role:20} {tokens[name]}")
    print("\nFive questions, as you would ask them:")
    for number, (question, member, command) in enumerate(QUESTIONS, 1):
        print(f"\n{number}. {question}")
        print(f"   $ HEADGATE_SERVER_URL={address} HEADGATE_TOKEN={tokens[member]} \\\n     headgate {command}\n")
        commands.run(member, command, lambda line: print(f"   {line}"))
    lake.show(commands)
    flow.show(commands)
    example = f'curl -s -H "Authorization: Bearer {tokens["Ben"]}" "{address}/api/resources?kind=data_mart"'
    print(f"\nThe same over HTTP:\n   $ {example}")
    print(f"The whole API: {address}/api/openapi.json")
    if stay:
        print("\nThe server runs until you press Ctrl-C.", flush=True)
    sys.stdout.flush()
