"""How long until `headgate --help` answers, and until the server is ready? Beside tools of the same libraries."""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx2 as httpx

from benchmarks.harness import ROUNDS, Table, compared, in_turns, row, save
from benchmarks.product import Product


def run(*command: str) -> float:
    """The seconds that a command takes."""
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def ready(command: list[str], environment: dict[str, str], folder: Path, address: str) -> float:
    """The seconds from the start of a server to its first good answer."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command, env=environment, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while True:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(address, timeout=1).is_success:
                    return time.perf_counter() - started
            time.sleep(0.005)
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    """Both questions."""
    folder = Path(sys.executable).parent
    helps = {
        "headgate --help": lambda: run(str(folder / "headgate"), "--help"),
        "uvicorn --help": lambda: run(str(folder / "uvicorn"), "--help"),
        "alembic --help": lambda: run(str(folder / "alembic"), "--help"),
    }
    measured = in_turns(helps, lambda function: function())
    table = Table("How long --help takes", "headgate --help within 0.3 s")
    for name, values in measured.items():
        found = row(name, values, "s")
        table.rows.append(
            found if name.startswith("headgate") else compared(found, values, measured["headgate --help"])
        )
    table.notes.append("met" if table.rows[0].value <= 0.3 else "NOT MET")
    save("start", [table, _ready()])


def _ready() -> Table:
    table = Table(
        "How long until the server answers /readyz, from `headgate up`, on an existing database", "within 2 s"
    )
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), "18422"
        one = Product(folder, HEADGATE_SERVER__PORT=port)
        one.fill()
        up = [sys.executable, "-m", "headgate.cli.main", "up"]
        peer = [sys.executable, "-m", "uvicorn", "benchmarks.bare:app", "--port", "18423"]
        environment = {**os.environ, "BARE_DATABASE": one.url}
        ours, theirs = [], []
        for _ in range(ROUNDS):
            ours.append(ready(up, one.environment, folder, f"http://127.0.0.1:{port}/readyz"))
            theirs.append(ready(peer, environment, Path.cwd(), "http://127.0.0.1:18423/page"))
    table.rows = [row("headgate up", ours, "s"), compared(row("bare FastAPI under uvicorn", theirs, "s"), theirs, ours)]
    table.notes.append("met" if table.rows[0].value <= 2 else "NOT MET")
    return table


if __name__ == "__main__":
    main()
