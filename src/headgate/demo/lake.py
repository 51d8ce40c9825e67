"""The demo's data: orders loaded by a member, a table derived from them, and one query run by two members."""

import os
import random
import sys
import textwrap
from datetime import UTC, datetime, timedelta

from headgate.demo.commands import MemberCommands, StepFailed, follow

ORDERS = 2000
REGIONS = ("north", "east", "south", "west")
REVENUE = (
    "CREATE OR REPLACE TABLE service.revenue AS SELECT region, COUNT(*) AS orders, "
    "CAST(SUM(amount) AS DECIMAL(12, 2)) AS revenue FROM raw.orders GROUP BY region"
)
QUERY = "SELECT region, orders, revenue FROM service.revenue ORDER BY region"
PLAIN = """
from pyiceberg.catalog.rest import RestCatalog
lake = RestCatalog("lake", uri=URI, token=TOKEN)
print(lake.load_table("service.revenue").scan().to_arrow().sort_by("region").to_pandas())
"""

HIDDEN = "TABLE_OR_VIEW_NOT_FOUND"
"""The error code for a table that is hidden or does not exist."""


def land(address: str, token: str) -> None:
    """Write the orders into raw.orders as a member, with plain PyIceberg."""
    import pyarrow as pa
    from pyiceberg.catalog.rest import RestCatalog

    chance = random.Random(7)  # noqa: S311 - the same orders each time
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    rows = pa.table(
        {
            "id": pa.array(range(1, ORDERS + 1), pa.int64()),
            "region": [chance.choice(REGIONS) for _ in range(ORDERS)],
            "amount": [round(chance.lognormvariate(3.5, 0.8), 2) for _ in range(ORDERS)],
            "ordered_at": [begin + timedelta(minutes=chance.randrange(525_600)) for _ in range(ORDERS)],
        }
    )
    lake = RestCatalog("lake", uri=f"{address}/iceberg", token=token)
    lake.create_table("raw.orders", schema=rows.schema).append(rows)


def show(commands: MemberCommands) -> None:
    """Load the data and run the same query as two members, by Headgate's SQL and by plain PyIceberg."""
    print("\nNow with data. The same rights hold for SQL on Spark, and for every engine that speaks Iceberg.")
    print(
        f"\n6. Tess, who manages the layer raw, lands {ORDERS:,} orders in raw.orders with plain PyIceberg …",
        flush=True,
    )
    try:
        land(commands.address, commands.tokens["Tess"])
    except Exception as error:
        raise StepFailed("landing raw.orders with PyIceberg", f"{type(error).__name__}: {error}") from error
    print("   and makes service.revenue of them, on Spark (its first start takes some seconds):")
    _ask(commands, "Tess", REVENUE)
    print("\n7. Bea was granted that table. Ana was not: for her it does not exist. The same query, by each:")
    _ask(commands, "Bea", QUERY)
    _ask(commands, "Ana", QUERY, refused=HIDDEN)
    print("\n8. The same, by each, from plain PyIceberg:")
    print(textwrap.indent(PLAIN.strip(), "   > "))
    for name, refused in (("Bea", None), ("Ana", "NoSuchTableException")):
        print(f"   as {name}:", flush=True)
        for line in _plain(commands, name, refused):
            print(f"   {line}")
    print(
        "\nOn a folder, only the operating system guards files from other engines, so the demo sets "
        "warehouse.external_engines = same-host. In a bucket, bytes are guarded too: docs/how-to/use-an-object-store.md"
    )


def _ask(commands: MemberCommands, name: str, sql: str, *, refused: str | None = None) -> None:
    print(f'   $ HEADGATE_TOKEN={commands.tokens[name]} \\\n     headgate sql "{sql}"', flush=True)
    commands.run(name, f'sql "{sql}"', lambda line: print(f"   {line}", flush=True), refused=refused)


def _plain(commands: MemberCommands, name: str, refused: str | None) -> list[str]:
    """Run the printed lines in a separate process and return their output."""
    preamble = f"URI, TOKEN = {f'{commands.address}/iceberg'!r}, {commands.tokens[name]!r}\n"
    environment = {"PATH": os.environ.get("PATH", "")}
    arguments = [sys.executable, "-c", preamble + PLAIN]
    output = follow("the lines above", arguments, environment, commands.folder, refused=refused).rstrip().splitlines()
    return output[-1:] if refused else output
