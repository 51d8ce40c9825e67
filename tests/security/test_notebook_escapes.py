"""Hostile notebooks in the real sandbox: nothing beyond what they declared, no limit exceeded, and words for why."""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.contracts.pipelines.definitions import SecretRef
from headgate.execution.sandbox import bubblewrap as sandbox
from headgate.execution.steps import notebook
from headgate.execution.steps.context import RunStopped
from headgate.kit.database import Database
from headgate.schema import METADATA
from headgate.settings.settings import Settings
from tests.execution.spark.sandbox_walk import DEVICES
from tests.lakehouse.catalog.support import ROWS, lake
from tests.security.notebook_attacks import BOMBS, PROBES, THROUGH
from tests.support.company import Api
from tests.support.notebooks import Notebooks, Told

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
NAME = "canary-nb-31c7"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebooks]:
    """The company, a table that the notebook declares and one that it does not, a volume, and tight limits."""
    lacking = sandbox.missing(Settings().spark.sandbox_uid)
    assert lacking is None, lacking
    folder: Path = tmp_path_factory.mktemp("escapes")
    database = Database(f"sqlite:///{folder}/headgate.db")
    METADATA.create_all(database.engine)
    with lake(database, folder) as found:
        for name in ("raw.events", "raw.hidden"):
            found.engine("Tess").create_table(name, ROWS.schema).append(ROWS)
        api = found.api("Tess")
        for name in ("landing", "secretly"):
            assert api.post("/api/volumes", {"name": name, "layer": "raw"}).status_code < 300
        notebooks = Notebooks(
            found,
            folder,
            notebooks={"memory": "3g", "processes": 100, "disk_bytes": 300 << 20},
            outgoing={"allow": ["localhost"]},
        )
        volume = notebooks.item("volume", "raw.landing").id
        assert api.request("PUT", f"/api/volumes/{volume}/files/a.txt", content=b"text").status_code < 300
        yield notebooks


def processes(mark: str, name: str = "cmdline") -> list[int]:
    """Processes of this machine that have a text in their command line, or in another file about them."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if mark.encode() in (entry / name).read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def gone(world: Notebooks) -> None:
    """That nothing of the last run is left: no process, no file but what was there before."""
    assert processes(f"{world.folder}/worker") == []
    assert processes(f"{world.folder}/runs", "mountinfo") == []
    assert not list((world.folder / "runs").glob("*/*/*"))
    assert not list((world.settings.data_dir / "spark").glob("*/processes.json"))


def fails(world: Notebooks, *cells: str, **more: Any) -> Told:
    told = world.go(world.step(*cells), **more)
    assert told.failed is not None
    gone(world)
    assert not (world.lake.warehouse / "staging" / world.run / str(world.fence)).exists()
    return told


def test_nothing_but_what_was_declared_can_be_reached(world: Notebooks) -> None:
    tables = {name: world.item("table", f"raw.{name}") for name in ("events", "hidden")}
    host_files = [
        world.folder / "headgate.db",
        world.folder / "keys.json",
        world.folder / "worker",
        world.folder / "runs",
        world.lake.warehouse / "staging",
        Path(__file__).resolve(),
        Path.home() / ".cache",
    ]
    with socket.create_server(("127.0.0.1", 0)) as declared, socket.create_server(("127.0.0.1", 0)) as other:
        port = declared.getsockname()[1]
        step = world.step(
            *PROBES,
            inputs=(tables["events"],),
            volumes=(world.item("volume", "raw.landing"),),
            hosts=(f"localhost:{port}",),
            secrets=(SecretRef(name="key", connection="con_11111111111111111111", field="token"),),
            parameters={
                "host_files": "|".join(str(one) for one in host_files),
                "host_pid": os.getpid(),
                "other_port": other.getsockname()[1],
                "server_port": int(world.lake.url.rpartition(":")[2]),
                "host": "localhost",
                "host_port": port,
                "warehouse": str(world.lake.warehouse),
                "events": tables["events"].id,
                "hidden": tables["hidden"].id,
            },
        )
        before = world.lake.rows("SELECT table_id, version FROM table_pointers ORDER BY table_id")
        endpoint = Endpoint("con_11111111111111111111", "api", {}, {"token": f"{NAME}-secret", "other": "not-declared"})
        told = world.go(step, endpoints={"con_11111111111111111111": endpoint})
    assert told.failed is None, (told.failed, told.cells[-1])
    found: dict[str, list[str]] = told.values(len(PROBES))
    attempts = {name: one for name, one in found.items() if one[0] != "seen"}
    assert len(attempts) > 100
    wrong = {name: one[1] for name, one in attempts.items() if (one[0] == "through") != (name in THROUGH)}
    assert wrong == {}

    assert set(json.loads(found["what it can write of the kernel"][1])) <= DEVICES
    assert int(found["files of the kernel"][1]) > 500
    programs = [Path(line.split(" ")[0]).name for line in json.loads(found["processes"][1]) if line.strip()]
    assert {name for name in programs if not name.startswith(("python", "java"))} <= {"bwrap"}
    assert len(programs) < 8
    assert not [name for name in json.loads(found["environment"][1]) if "HEADGATE" in name or "TOKEN" in name]
    assert [line.split(":")[0].strip() for line in found["interfaces"][1].splitlines()[2:]] == ["lo"]
    assert not [one for one in json.loads(found["unix sockets"][1]) if "connect" in one]
    assert "403" in found["smuggled"][1].split("\r\n")[0]
    assert "member" not in found["smuggled"][1]
    assert json.loads(found["tables that are seen"][1]) == [tables["events"].id]
    assert int(found["files of the declared table"][1]) > 0
    assert json.loads(found["tokens"][1]) == []
    assert found["the secret that was"][1] == "•••", "what a notebook prints of a secret is hidden"
    assert found["where secrets are"][1] == "tmpfs"
    assert world.lake.rows("SELECT table_id, version FROM table_pointers ORDER BY table_id") == before
    assert world.lake.engine("Tess").load_table("raw.events").scan().to_arrow().num_rows == 3
    gone(world)
    for artifact in told.artifacts.values():
        assert f"{NAME}-secret".encode() not in artifact[1]


@pytest.mark.parametrize("code", BOMBS)
def test_what_takes_all_that_there_is_is_ended(world: Notebooks, code: str) -> None:
    source, says = BOMBS[code]
    began = time.monotonic()
    told = fails(world, "print('before')", source)
    assert told.failed is not None
    assert told.failed.code == code, told.failed.message
    assert says in told.failed.message
    assert not told.failed.passing
    assert time.monotonic() - began < 120
    assert told.printed(1) == "before\n", "what ran before it is kept"


def test_one_that_ends_its_own_processes_is_over_and_told(world: Notebooks) -> None:
    for source in (
        "import os; os.kill(-1, 9)",
        "import os; os.kill(os.getppid(), 9); import time; time.sleep(600)",
    ):
        told = fails(world, "1", source)
        assert told.failed is not None
        assert told.failed.code == "NOTEBOOK_ENDED"
        assert "process ended unexpectedly, after cell" in told.failed.message


def test_one_that_sleeps_beyond_its_time_is_ended(world: Notebooks) -> None:
    told = fails(world, "import time; time.sleep(600)", seconds=20)
    assert told.failed is not None
    assert told.failed.code == "NOTEBOOK_TIME"
    assert "longer than 20 seconds" in told.failed.message


def test_a_run_that_is_stopped_leaves_nothing(world: Notebooks) -> None:
    step, told = (
        world.step(
            "import subprocess; subprocess.Popen(['sleep', '613'], start_new_session=True)",
            "import time; time.sleep(600)",
        ),
        Told(),
    )
    context = world.context(step, told)

    def stop() -> None:
        deadline = time.monotonic() + 60
        while not told.lines and time.monotonic() < deadline:
            time.sleep(0.1)
        context.stop()

    threading.Thread(target=stop, daemon=True).start()
    with pytest.raises(RunStopped):
        notebook.run(step, context)
    assert processes("sleep\x00613") == []
    gone(world)


FLOOD = """
import subprocess, sys
subprocess.Popen(["sh", "-c", "sleep 617 & setsid sleep 617 & (setsid sh -c 'sleep 617' &)"], start_new_session=True)
for _ in range(400):
    sys.stdout.write("x" * (1 << 20))
print("the end")
"x" * (50 << 20)
"""
FORGED = """
import json, os
folder = "/headgate/cells/"
os.symlink("/etc/passwd", folder + "cell-0003.json")
os.mkfifo(folder + "cell-0004.json")
open(folder + "cell-0005.json", "w").write("[" * 100000)
html = {"kind": "html", "html": "<script>alert(1)</script>"}
picture = {"kind": "image", "file": "../../../../etc/passwd"}
fake = {"kind": "image", "file": "fake.png"}
open(folder + "fake.png", "w").write("<svg onload=alert(1)>")
os.symlink("/etc/passwd", folder + "linked.png")
told = {"stdout": 7, "stderr": None, "seconds": "x", "cut": 1, "outputs": [html, picture, fake, {"kind": "image", "file": "linked.png"}, 3], "error": None}
open(folder + "cell-0006.json", "w").write(json.dumps(told))
open(folder + "cell-0007.json", "wb").write(b"x" * (20 << 20))
os.symlink("/etc", "/headgate/staging/files")
"""


def test_floods_and_forgeries_are_cut_and_what_is_left_behind_ends(world: Notebooks) -> None:
    told = world.go(world.step(FLOOD, FORGED))
    assert told.failed is None, told.failed
    kinds = {name: kind for name, (kind, _) in told.artifacts.items()}
    assert kinds == {"notebook.json": "application/json"}
    content = told.artifacts["notebook.json"][1]
    assert len(content) < world.settings.notebooks.output_bytes + (1 << 20)
    flood = told.cells[0]
    assert flood["cut"]
    assert len(flood["stdout"]) <= 200_001
    assert len(flood["outputs"][0]["text"]) <= 200_001
    assert b"root:" not in content
    assert b"script" not in content
    assert b"svg" not in content
    assert [one["number"] for one in told.cells] == [1, 2, 3, 4, 5, 6, 7]
    assert {one["kind"] for one in told.cells[5]["outputs"]} == {"text"}
    assert processes("sleep\x00617") == []
    gone(world)


def test_a_stolen_token_would_read_declared_tables_and_die_with_the_run(world: Notebooks) -> None:
    step = world.step("1", inputs=(world.item("table", "raw.events"),))
    stolen = world.context(step, Told()).job.reading_token
    thief = Api(world.lake.company.client, stolen)
    tables = "/iceberg/v1/namespaces/raw/tables"
    assert thief.get(f"{tables}/events").status_code == 200
    assert thief.get(f"{tables}/hidden").status_code == 404
    body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
    assert thief.post(f"{tables}/events", body).status_code in {403, 404}
    assert thief.request("DELETE", f"{tables}/events").status_code in {403, 404}
    assert thief.get("/api/access/me").status_code == 401
    for state in ("succeeded", "failed", "cancelling"):
        world.set_run(state)
        assert thief.get(f"{tables}/events").status_code == 401, state


def test_a_link_among_the_files_of_a_volume_is_refused(world: Notebooks) -> None:
    volume = world.item("volume", "raw.landing")
    [file] = world.listing(volume.id)
    place = world.lake.warehouse / "volumes" / volume.id / file.id
    place.rename(place.with_suffix(".kept"))
    place.symlink_to("/etc/passwd")
    try:
        told = world.go(world.step("1", volumes=(volume,)))
    finally:
        place.unlink()
        place.with_suffix(".kept").rename(place)
    assert told.failed is not None
    assert (told.failed.code, told.artifacts) == ("FILE_REFUSED", {})
    assert "cannot provide a.txt to the notebook" in told.failed.message
    gone(world)


@pytest.mark.parametrize(
    ("host", "says"),
    [
        ("169.254.169.254:80", "metadata service"),
        ("10.0.0.1:5432", "private address"),
        ("0x7f.1:80", "127.0.0.1"),
        ("127.0.0.1:80", "loopback"),
        ("localhost:0", "a number from 1 to 65535"),
        ("no-such-name.invalid:443", "cannot resolve"),
    ],
)
def test_hosts_are_judged_before_anything_starts(world: Notebooks, host: str, says: str) -> None:
    told = world.go(world.step("1", hosts=(host,)))
    assert told.failed is not None
    assert told.failed.code == "HOST_REFUSED"
    assert says in told.failed.message
    gone(world)
