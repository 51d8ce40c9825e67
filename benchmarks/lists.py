"""What does a page of a list cost as lists grow, and a count, and who-can? Beside the same list by a plain WHERE."""

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.support.postgres import server

from benchmarks.harness import Row, Table, save, seconds_per_call
from benchmarks.many import MEMBERS, fill, mart_id, member_id
from headgate.access.sql import condition, rows, where
from headgate.kit.clock import now
from headgate.kit.database import Database, bound, fetch
from headgate.platform.authorization.repository import Query, ResourceSort, page, total
from headgate.platform.authorization.who_can import who_can

SIZES = tuple(int(one) for one in os.environ.get("SIZES", "10000,100000,1000000").split(","))
GOAL = 1.5


def by_where(connection: Any, member: str, moment: datetime) -> Any:
    """A page as one would write it without the index: the rule as a condition, sorted and cut."""
    text = (
        f"SELECT rs.id, rs.name FROM {rows('data_mart')} JOIN resources rs ON rs.id = r.id WHERE m.id = :member "
        f"AND {where('data_mart')} AND {condition('see', 'data_mart')} ORDER BY rs.name_key, rs.id LIMIT 51"
    )
    return fetch(connection, text, {"member": member, "now": bound(connection, moment)})


def questions(connection: Any, moment: datetime) -> dict[str, Callable[[], Any]]:
    """What is measured at each size."""
    found: dict[str, Callable[[], Any]] = {}
    for name in MEMBERS:
        query = Query(member_id(name), "data_mart", moment)
        found[f"page, {name}"] = lambda q=query: page(connection, q)
    for sort in (ResourceSort.created_desc, ResourceSort.updated, ResourceSort.created_by):
        query = Query(member_id("technical, entire"), "data_mart", moment, sort)
        found[f"page by {sort.value}, technical, entire"] = lambda q=query: page(connection, q)
    for name in ("admin", "technical, entire", "sees almost nothing"):
        query = Query(member_id(name), "data_mart", moment)
        found[f"count, {name}"] = lambda q=query: total(connection, q)
    found["who can edit one mart"] = lambda: who_can(connection, "edit", mart_id(5), moment, limit=50)
    return found


def measure(database: Database) -> tuple[dict[str, float], dict[str, float]]:
    """Medians of seven rounds in turns, for ours; and single runs of the plain WHERE, which may take long."""
    moment = now()
    with database.read() as connection:
        ours = questions(connection, moment)
        for function in ours.values():
            for _ in range(4):
                function()
        samples: dict[str, list[float]] = {name: [] for name in ours}
        for _ in range(7):
            for name, function in ours.items():
                samples[name].append(seconds_per_call(function, 0.02))
        plain = {}
        for name in MEMBERS:
            started = time.perf_counter()
            by_where(connection, member_id(name), moment)
            plain[f"page, {name}"] = time.perf_counter() - started
    return {name: statistics.median(values) for name, values in samples.items()}, plain


def main() -> None:
    """Fill a database of each size, on both kinds, and measure."""
    tables = []
    for kind in ("SQLite", "PostgreSQL"):
        found: dict[int, tuple[dict[str, float], dict[str, float]]] = {}
        for size in SIZES:
            started = time.perf_counter()
            with tempfile.TemporaryDirectory() as folder:
                if kind == "SQLite":
                    found[size] = _at(f"sqlite:///{Path(folder) / 'b.db'}", size)
                else:
                    with server() as url:
                        found[size] = _at(url, size)
            print(f"  {kind}, {size:,} data marts: made and measured in {time.perf_counter() - started:.0f} s")
        tables.append(_table(kind, found))
    save("lists", tables)


def _at(url: str, size: int) -> tuple[dict[str, float], dict[str, float]]:
    database = Database(url)
    try:
        fill(database, size)
        return measure(database)
    finally:
        database.close()


def _table(kind: str, found: dict[int, tuple[dict[str, float], dict[str, float]]]) -> Table:
    table = Table(
        f"Lists of {', '.join(f'{size:,}' for size in SIZES)} data marts on {kind}; ×: against the smallest size",
        f"a page at the largest size costs at most {GOAL} times one at the smallest, for every kind of member",
    )
    base, worst = found[SIZES[0]][0], 0.0
    for name in base:
        for size in SIZES:
            value = found[size][0][name] * 1e3
            ratio = found[size][0][name] / base[name]
            shown = Row(f"{name}, {size:,}", value, "ms", value, value, ratio, ratio, ratio)
            table.rows.append(shown)
            if name.startswith("page") and size == SIZES[-1]:
                worst = max(worst, ratio)
    for name in found[SIZES[-1]][1]:
        plain, ours = found[SIZES[-1]][1][name] * 1e3, found[SIZES[-1]][0][name] * 1e3
        table.notes.append(f"plain WHERE, {name}, {SIZES[-1]:,}: {plain:.1f} ms, {plain / ours:.0f} times ours")
    table.notes.append(f"worst page: ×{worst:.2f}: {'met' if worst <= GOAL else 'NOT MET'}")
    return table


if __name__ == "__main__":
    main()
