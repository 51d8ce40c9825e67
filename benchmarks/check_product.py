"""How long does one decision take on the product's path: from a member's id and a resource's, in the database?"""

import tempfile
from itertools import cycle
from pathlib import Path

from tests.support.postgres import server
from tests.support.worlds import parse

from benchmarks.facts import Cedar, World, agree
from benchmarks.harness import Table, compared, in_turns, row, save
from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.platform.authorization.lookup import Lookup
from headgate.platform.authorization.questions import check
from headgate.schema import METADATA
from headgate.worlds.loader import load


def _stored(database: Database, world: World) -> None:
    METADATA.create_all(database.engine)
    raw = {
        "contexts": ["finance", "sales", "hr"],
        "members": {
            one.id: {
                "role": one.role,
                "scope": "entire" if one.entire else "selected",
                "contexts": sorted(one.contexts),
            }
            for one in world.subjects
        },
        "resources": [
            {
                "kind": "data_mart",
                "name": one.id,
                "technical_owners": sorted(one.technical_owners),
                "business_owners": sorted(one.business_owners),
                "shared_for_reporting": one.shared_for_use,
                "shared_for_maintenance": one.shared_for_maintenance,
                "contexts": sorted(one.contexts),
            }
            for one in world.marts
        ],
    }
    database.write(lambda connection: load(connection, parse(raw), now()))


def main() -> None:
    """The same questions, of the database and of Cedar with its facts in memory."""
    world = World()
    cedar = Cedar(world)
    agree(world, cedar)
    table = Table(
        "One decision on the product's path, facts in the database, beside Cedar with facts in memory",
        "on SQLite at least 3 times faster than cedarpy",
    )
    with tempfile.TemporaryDirectory() as folder, server() as url:
        databases = {"SQLite": Database(f"sqlite:///{Path(folder) / 'b.db'}"), "PostgreSQL": Database(url)}
        contenders = {}
        connections = []
        for name, database in databases.items():
            _stored(database, world)
            reader = database.read()
            connection = reader.__enter__()
            connections.append(reader)
            lookup = Lookup(connection)
            asked = [
                (lookup.of("member", f"m{who}"), action, lookup.of("data_mart", f"d{what}"))
                for who, action, what in world.questions
            ]
            for (member, action, mart), question in zip(asked, world.questions, strict=True):
                assert check(connection, member, action, mart, now()).allowed == world.headgate(*question)
            turns, moment = cycle(asked), now()
            contenders[f"Headgate on {name}"] = lambda c=connection, t=turns, m=moment: check(c, *next(t), m)
        questions = cycle(world.questions)
        contenders["Cedar (cedarpy)"] = lambda: cedar.ask(*next(questions))
        measured = in_turns(contenders)
        for reader in connections:
            reader.__exit__(None, None, None)
        for database in databases.values():
            database.close()
    ours = measured["Headgate on SQLite"]
    for name, values in measured.items():
        found = row(name, values, "µs", 1e6)
        table.rows.append(found if values is ours else compared(found, values, ours))
    ratio = next(one.ratio for one in table.rows if one.name.startswith("Cedar")) or 0
    table.notes.append(f"Cedar takes {ratio:.1f} times as long as SQLite: {'met' if ratio >= 3 else 'NOT MET'}")
    save("check_product", [table])


if __name__ == "__main__":
    main()
