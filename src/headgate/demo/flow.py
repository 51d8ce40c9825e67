"""The demo's pipelines: files and an API land in raw, a query and a notebook refine them, and a history tracks
changes.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from headgate.demo.commands import MemberCommands
from headgate.demo.lake import HIDDEN

FIRST = """id,name,region,email,since
1,Mill Lane Bakery,north,orders@milllane.example,2024-03-01
2,Weir Café,east,hello@weircafe.example,2024-05-12
3,Sluice & Sons,south,not an address,2024-07-30
4,Race Street Deli,west,deli@racestreet.example,2024-09-09
5,Tailwater Foods,north,buy@tailwater.example,2025-01-15
"""
SECOND = """id,name,region,email,since
2,Weir Café,west,hello@weircafe.example,2024-05-12
6,Pond House,east,post@pondhouse.example,2026-02-02
7,Leat Brothers,south,leat@brothers.example,a while ago
"""
PRODUCTS = [
    {"sku": f"F-{number:02}", "title": title, "price": price}
    for number, (title, price) in enumerate(
        (("Stone-ground flour", 3.2), ("Rye flour", 3.6), ("Oat flakes", 2.4), ("Semolina", 2.9), ("Spelt", 4.1)), 1
    )
]
LAND_CUSTOMERS = """kind: source
volume: raw.landing
output_layer: raw
streams:
  - {name: "customers/*.csv", table: customers, write: merge, keys: [id]}
expectations:
  - {table: raw.customers, check: pattern, columns: [email], pattern: "[^@ ]+@[^@ ]+", severity: warn}
"""
LAND_PRODUCTS = """kind: source
connection: CONNECTION
output_layer: raw
streams:
  - name: /products
    table: products
    api: {rows: items, paging: {style: page, size: 2, size_parameter: limit}}
"""
BY_REGION = """kind: query
sql: |
  SELECT c.region, COUNT(DISTINCT c.id) AS customers, COUNT(o.id) AS orders, SUM(o.amount) AS amount
  FROM raw.customers c LEFT JOIN raw.orders o ON o.region = c.region GROUP BY c.region
output: trusted.by_region
expectations:
  - {table: trusted.by_region, check: unique, columns: [region]}
"""
SPREAD = """kind: notebook
inputs: [raw.orders]
outputs: [{table: trusted.order_sizes}]
parameters: {step: 20}
"""
NOTEBOOK = """# %%
from pyspark.sql import functions as F

orders = load("raw.orders")
sizes = orders.groupBy((F.floor(F.col("amount") / parameters["step"]) * parameters["step"]).alias("from_amount"))
found = sizes.agg(F.count("*").alias("orders")).orderBy("from_amount")
print(found.count(), "sizes of orders")

# %%
save(found, "trusted.order_sizes")
"""
HISTORY = """kind: history
table: raw.customers
output: trusted.customers_history
keys: [id]
"""
QUERY = "SELECT region, customers, orders FROM trusted.by_region ORDER BY region"
REJECTED = "SELECT reason, record FROM raw.customers_rejected"
VERSIONS = "SELECT id, name, region, _is_current FROM trusted.customers_history WHERE id = 2 ORDER BY _valid_from"


class _Products(BaseHTTPRequestHandler):
    """A small paginated API."""

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        parameters = dict(pair.split("=", 1) for pair in query.split("&") if "=" in pair)
        page, size = int(parameters.get("page", 1)), int(parameters.get("limit", 100))
        items = PRODUCTS[(page - 1) * size : page * size] if path == "/products" else []
        body = json.dumps({"items": items}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """No request log: the demo prints only its own output."""


@contextmanager
def api() -> Iterator[str]:
    """Serve the API on loopback; yields its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Products)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class PrintedCommands:
    """Prints commands, runs them as a member and streams their output."""

    def __init__(self, commands: MemberCommands) -> None:
        self._commands, self.folder = commands, commands.folder

    def run(self, member: str, command: str, *, quiet: bool = False, refused: str | None = None) -> str:
        """Run a command as a member and return its output. StepFailed if it fails, or is not refused where it
        must be.
        """
        print(f"   $ headgate {command}" + ("" if member == "Tess" else f"      (as {member})"), flush=True)
        tell = (lambda _: None) if quiet else (lambda line: print(f"     {line}", flush=True))
        return self._commands.run(member, command, tell, refused=refused)

    def file(self, name: str, text: str) -> str:
        """Create a file next to the demo's data; returns its name."""
        place = self.folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        return name


def show(commands: MemberCommands) -> None:
    """Create and run the pipelines with their output, then run the same query as two members."""
    shown = PrintedCommands(commands)
    print(f"\nNow data that moves, in pipelines of Tess's own (their files are in {shown.folder}).")
    with api() as place:
        _land(shown, place)
    _refine(shown)
    _second_file(shown)
    print("\n14. Ana may see the layer trusted, Bea may not. The same query, by each:")
    shown.run("Ana", f'sql "{QUERY}"')
    shown.run("Bea", f'sql "{QUERY}"', refused=HIDDEN)


def _land(shown: PrintedCommands, place: str) -> None:
    print("\n9. A file of customers lands in raw; one expectation warns of an address that is none:")
    shown.run("Tess", "volume create raw.landing", quiet=True)
    shown.file("first.csv", FIRST)
    shown.run("Tess", "volume put first.csv volume:raw.landing/customers/first.csv", quiet=True)
    shown.run("Tess", f'pipeline add "Land customers" -f {shown.file("land_customers.yaml", LAND_CUSTOMERS)}')
    shown.run("Tess", 'run start "Land customers" --follow')
    print(f"\n10. An API on {place} lands beside it, page by page:")
    shown.run("Tess", f'connection add Products --space "Sales data" --kind http --set base_url={place}', quiet=True)
    result = shown.run("Tess", "connection show Products --json", quiet=True)
    connection = json.loads(result)["id"]
    shown.file("land_products.yaml", LAND_PRODUCTS.replace("CONNECTION", connection))
    shown.run("Tess", 'pipeline add "Land products" -f land_products.yaml')
    shown.run("Tess", 'run start "Land products" --follow')


def _refine(shown: PrintedCommands) -> None:
    print("\n11. A query joins customers and orders into trusted.by_region:")
    shown.run("Tess", f'pipeline add "By region" -f {shown.file("by_region.yaml", BY_REGION)}')
    shown.run("Tess", 'run start "By region" --follow')
    print("\n12. A notebook, in a sandbox with a Spark of its own, which reads raw.orders and nothing else:")
    shown.file("order_sizes.yaml", SPREAD)
    shown.file("order_sizes.py", NOTEBOOK)
    shown.run("Tess", 'pipeline add "Order sizes" -f order_sizes.yaml --notebook order_sizes.py')
    shown.run("Tess", 'run start "Order sizes" --follow')


def _second_file(shown: PrintedCommands) -> None:
    print("\n13. A history follows the customers: a second file moves one of them to another region, and has a row")
    print("    that does not fit, which is kept aside with the reason:")
    shown.run("Tess", f'pipeline add "History of customers" -f {shown.file("history.yaml", HISTORY)}')
    shown.run("Tess", 'run start "History of customers" --follow', quiet=True)
    shown.file("second.csv", SECOND)
    shown.run("Tess", "volume put second.csv volume:raw.landing/customers/second.csv", quiet=True)
    for name in ("Land customers", "History of customers"):
        shown.run("Tess", f'run start "{name}" --follow', quiet=True)
    shown.run("Tess", f'sql "{REJECTED}"')
    shown.run("Tess", f'sql "{VERSIONS}"')
