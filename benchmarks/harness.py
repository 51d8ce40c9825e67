"""Measures contenders in turns, so that what the machine does meanwhile meets all alike."""

import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
ROUNDS = int(os.environ.get("ROUNDS", "7"))


@dataclass
class Row:
    """A contender's cost, and how it compares with the base: medians of the rounds, with their spread."""

    name: str
    value: float
    unit: str
    low: float
    high: float
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None


@dataclass
class Table:
    """The answer to one question."""

    question: str
    goal: str
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def print(self) -> None:
        print(f"\n{self.question}\n  goal: {self.goal}")
        width = max(len(row.name) for row in self.rows)
        for row in self.rows:
            ratio = ""
            if row.ratio is not None:
                ratio = f"   ×{row.ratio:.2f} ({row.ratio_low:.2f} to {row.ratio_high:.2f})"
            print(f"  {row.name:<{width}}  {row.value:>10.2f} {row.unit} ({row.low:.2f} to {row.high:.2f}){ratio}")
        for note in self.notes:
            print(f"  {note}")


def seconds_per_call(function: Callable[[], Any], at_least: float = 0.05) -> float:
    """The mean time of a call, over calls that take some time together."""
    calls = 1
    while True:
        started = time.perf_counter()
        for _ in range(calls):
            function()
        spent = time.perf_counter() - started
        if spent >= at_least:
            return spent / calls
        calls = max(calls + 1, int(calls * at_least * 1.2 / max(spent, 1e-9)))


def in_turns(
    contenders: dict[str, Callable[[], Any]],
    measure: Callable[[Callable[[], Any]], float] = seconds_per_call,
    rounds: int = ROUNDS,
) -> dict[str, list[float]]:
    """What each contender measured in each round; they take turns within a round."""
    for function in contenders.values():
        function()
    found: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, function in contenders.items():
            found[name].append(measure(function))
    return found


def row(name: str, values: list[float], unit: str, scale: float = 1.0) -> Row:
    """A contender's row, without a comparison."""
    scaled = [value * scale for value in values]
    return Row(name, statistics.median(scaled), unit, min(scaled), max(scaled))


def compared(one: Row, values: list[float], base: list[float]) -> Row:
    """The row, with how many times the base it is, round by round."""
    ratios = [value / other for value, other in zip(values, base, strict=True)]
    one.ratio, one.ratio_low, one.ratio_high = statistics.median(ratios), min(ratios), max(ratios)
    return one


def save(name: str, tables: list[Table]) -> None:
    """Print the tables, and write them as JSON."""
    for table in tables:
        table.print()
    RESULTS.mkdir(exist_ok=True)
    machine = {"python": platform.python_version(), "machine": platform.machine(), "system": platform.system()}
    body = {"machine": machine, "tables": [asdict(table) for table in tables]}
    (RESULTS / f"{name}.json").write_text(json.dumps(body, indent=1) + "\n")
