"""Kills at random, for as long as asked: `make kill-test`, or `python -m tests.pipelines.runs.kill_loop`.

A whole installation runs a landing, a query and a notebook, round after round; meanwhile its server, worker, scheduler,
Sparks, sandbox or all of it are killed at random moments. After each round every run has succeeded, every table and
volume holds exactly what so many clean runs leave, and nothing runs any more. MINUTES says for how long (5), ROUNDS how
often (as often as there is time for), SEED which moments (others each time; it is printed).
"""

import os
import random
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.installation import eventually
from tests.support.killing import KINDS, Works, works

KNOWN, LANDED = 100, 1000
VICTIMS = (*KINDS, "all")
MOST_DEATHS = 3
LATEST = 14.0
"""Seconds within which the deaths of a round lie: as long as a clean round takes."""

RETRIES = {"retries": {"times": 10, "delay": "0 seconds"}}
CELLS = """save(load("raw.known"), "trusted.noted")
save_file("raw.kept", f"out/{parameters['round']}.txt", b"kept")
"""


@dataclass
class Loop:
    """The installation, its pipelines, and what is expected of them."""

    site: Works
    dice: random.Random
    rounds: int = 0
    deaths: dict[str, int] = field(default_factory=dict)

    def prepare(self) -> None:
        """Make what the pipelines read, and the pipelines."""
        site = self.site
        site.rows(f"CREATE TABLE raw.known AS SELECT id FROM range({KNOWN})")
        site.volume("landing", known="id\n" + "\n".join(map(str, range(LANDED))))
        self.kept = site.volume("kept")
        stream = {"name": "*.csv", "table": "landed", "write": "append"}
        landing = {"kind": "source", "volume": "raw.landing", "output_layer": "raw", "streams": [stream]}
        query = {"kind": "query", "sql": "SELECT id, id * 2 AS twice FROM raw.known", "output": "trusted.refined"}
        outputs = {"outputs": [{"table": "trusted.noted", "write": "append"}], "output_volumes": ["raw.kept"]}
        notebook = {"kind": "notebook", "inputs": ["raw.known"], "cells": [{"source": CELLS}], **outputs}
        self.pipelines = {
            "landing": site.make("Landing", **landing, **RETRIES),
            "query": site.make("Query", **query, write="append", **RETRIES),
            "notebook": site.make("Notebook", **notebook, **RETRIES),
        }

    def round(self) -> None:
        """Run all pipelines once, kill meanwhile, and compare."""
        self.rounds += 1
        began = time.monotonic()
        body = {"parameters": {"round": self.rounds}}
        runs = {name: self.site.send("POST", f"/api/pipelines/{one}/runs", json=body)["id"]
                for name, one in self.pipelines.items()}  # fmt: skip
        moments = sorted(self.dice.uniform(0, LATEST) for _ in range(self.dice.randint(1, MOST_DEATHS)))
        for moment in moments:
            time.sleep(max(began + moment - time.monotonic(), 0))
            self._kill(moment)
        for name, run in runs.items():
            found = self.site.ended(run, 300)
            assert found["state"] == "succeeded", (name, found, self.site.log(run))
        self._compare()
        begun = sum(self.site.fence(run) for run in runs.values())
        took = time.monotonic() - began
        say(f"round {self.rounds}: right; {len(runs)} runs, begun {begun} times, in {took:.0f} s")

    def _kill(self, moment: float) -> None:
        there = [kind for kind in VICTIMS if kind == "all" or self.site.pids(kind)]
        victim = self.dice.choice(there)
        say(f"  {moment:4.1f} s: {victim}")
        self.deaths[victim] = self.deaths.get(victim, 0) + 1
        if victim == "all":
            self.site.kill_all()
        else:
            self.site.kill(victim)

    def _compare(self) -> None:
        """What there is, and what so many clean runs leave."""
        of = "SELECT count(*), count(DISTINCT id), sum(id) FROM"
        for table, rows in (("raw.landed", LANDED), ("trusted.refined", KNOWN), ("trusted.noted", KNOWN)):
            expected: list[Any] = [self.rounds * rows, rows, self.rounds * rows * (rows - 1) // 2]
            [found] = self.site.rows(f"{of} {table}")
            assert found == expected, f"{table} holds {found}, and should hold {expected}"
        kept = {f"out/{number}.txt": 4 for number in range(1, self.rounds + 1)}
        eventually(lambda: self.site.files(self.kept) == kept, 60)
        eventually(lambda: not self.site.pids("sandbox"), 30)
        listed = [self.site.get(f"/api/pipelines/{one}/runs")["items"] for one in self.pipelines.values()]
        assert {run["state"] for runs in listed for run in runs} == {"succeeded"}


def say(text: str) -> None:
    """Show progress."""
    print(text, flush=True)  # noqa: T201 - the terminal's answer


def main() -> int:
    """Loop until the time is over; 1 if anything was lost, doubled or left."""
    minutes, most = float(os.environ.get("MINUTES", "5")), int(os.environ.get("ROUNDS", "1000000"))
    seed = int(os.environ.get("SEED") or random.randrange(1_000_000))  # noqa: S311 - dice
    say(f"SEED={seed} MINUTES={minutes:g}")
    folder = Path(tempfile.mkdtemp(prefix="headgate-kills-"))
    until = time.monotonic() + minutes * 60
    try:
        with works(folder) as site:
            loop = Loop(site, random.Random(seed))  # noqa: S311 - dice
            loop.prepare()
            say("the installation is up, and its pipelines are saved")
            while loop.rounds < most and time.monotonic() < until:
                loop.round()
    except AssertionError as error:
        say(f"wrong: {error}\nThe installation is kept in {folder}; SEED={seed} kills at the same moments")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    say(f"{loop.rounds} rounds, deaths {loop.deaths}: nothing was lost, doubled, or left")
    return 0


if __name__ == "__main__":
    sys.exit(main())
