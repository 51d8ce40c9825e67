"""Small random organizations behind the real application, one after the other in one database."""

from pathlib import Path
from random import Random
from typing import Any

import yaml
from sqlalchemy import Connection, delete, select, update
from starlette.testclient import TestClient

from headgate.access.book import BOOK
from headgate.access.kinds import stored_kind
from headgate.access.sql import mask, rows, where
from headgate.access.worlds import read_world
from headgate.kit.clock import now
from headgate.kit.database import bound, fetch
from headgate.organization.tokens.service import create
from headgate.platform.directory.models import member_table
from headgate.schema import METADATA
from headgate.settings.settings import Settings
from headgate.worlds.loader import Names, load
from tests.support.apps import app_for
from tests.support.databases import on_sqlite

OWNERS = ("Olga", "Otto")
OTHERS = ("Ada", "Bob", "Eve", "Mia", "Sam")
"""Who has which of the other roles is drawn."""

GROUP = "analysts"
KINDS = (
    "organization", "member", "storage", "data_mart", "destination", "layer", "table", "space", "connection", "project",
)  # fmt: skip
TARGETS = (
    "layer:raw", "table:raw.orders", "storage:wh", "data_mart:sales", "destination:sheet", "space:fin", "connection:erp",
)  # fmt: skip

Rights = dict[tuple[str, str], frozenset[str]]
"""What each member can do with each resource, by their ids."""


def drawn_world(rng: Random) -> dict[str, Any]:
    """Roles, owners, toggles, grants and space roles, at random."""
    roles: dict[str, dict[str, Any]] = {name: {"role": "owner"} for name in OWNERS}
    for name in OTHERS:
        roles[name] = {"role": rng.choice(("admin", "technical", "technical", "business"))}

    def someone() -> str:
        return rng.choice((*OWNERS, *OTHERS))

    def toggles() -> dict[str, bool]:
        return {name: rng.random() < 0.2 for name in ("shared_for_use", "shared_for_maintenance")}

    resources: list[dict[str, Any]] = [
        {"kind": "layer", "name": "raw"},
        {"kind": "table", "name": "raw.orders"},
        {"kind": "storage", "name": "wh", "owners": [someone()], **toggles()},
        {"kind": "destination", "name": "sheet", "owners": [someone()], **toggles()},
        {"kind": "space", "name": "fin", "owner": someone(), "members": {someone(): ["can_manage"]}},
        {"kind": "connection", "name": "erp", "space": "fin", "owner": someone()},
        {"kind": "project", "name": "p1", "space": "fin", "owner": someone()},
    ]
    mart = {"kind": "data_mart", "name": "sales", "storage": "wh", "technical_owners": [someone()], "published": True}
    resources.append({**mart, "shared_for_reporting": rng.random() < 0.2})
    grants = {(someone(), rng.choice(("layer:raw", "table:raw.orders"))): rng.choice(("viewer", "editor", "manager"))}
    given = [{"to": to, "resource": resource, "level": level} for (to, resource), level in grants.items()]
    members = rng.sample((*OWNERS, *OTHERS), 2)
    return {"members": roles, "groups": {GROUP: members}, "resources": resources, "grants": given}


class Organization:
    """The application and its database; `begin` makes another organization in it."""

    def __init__(self, folder: Path) -> None:
        self.database = on_sqlite(folder)
        self.settings = Settings(data_dir=folder, log={"level": "error"})
        self.client = TestClient(app_for(self.settings, self.database), raise_server_exceptions=True)
        self.ids: dict[str, str] = {}

    def begin(self, seed: int) -> None:
        """Another organization, drawn by this seed."""
        text = yaml.safe_dump({**drawn_world(Random(seed)), "checks": [ANY_CHECK]}, sort_keys=False)
        world, moment = read_world(text, f"seed {seed}"), now()

        def work(connection: Connection) -> Names:
            connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
            for table in reversed(METADATA.sorted_tables):
                connection.execute(delete(table))
            names = load(connection, world, moment)
            for name in (*OWNERS, *OTHERS):
                mail = address(name)
                change = update(member_table).where(member_table.c.id == names.of("member", name))
                connection.execute(change.values(email=mail, email_key=mail))
            return names

        names = self.database.write(work)
        self.ids = {name: names.of("member", name) or "" for name in (*OWNERS, *OTHERS)}

    def token(self, name: str) -> str:
        """A token that the operator makes for a member."""
        return self.database.write(lambda c: create(c, self.ids[name], "own", now())).secret

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """A request, with nothing left of the ones before."""
        self.client.cookies.clear()
        return self.client.request(method, path, json=body, headers={"Origin": "http://testserver", **headers})

    def roles(self) -> dict[str, str]:
        """The role of each member who is still there, by name."""
        names = {identifier: name for name, identifier in self.ids.items()}
        active = select(member_table.c.id, member_table.c.role).where(member_table.c.removed_at.is_(None))
        with self.database.read() as connection:
            return {names[row.id]: row.role for row in connection.execute(active) if row.id in names}

    def rights(self) -> Rights:
        """What everyone can do with everything, as the rule tables have it."""
        found: Rights = {}
        with self.database.read() as connection:
            for kind in KINDS:
                identifier = "'organization'" if kind == "organization" else "r.id"
                text = (
                    f"SELECT m.id AS member, {identifier} AS resource, {mask(kind)} AS open_paths "
                    f"FROM {rows(kind)} WHERE {where(kind)}"
                )
                for member, resource, bits in fetch(connection, text, {"now": bound(connection, now())}):
                    actions = frozenset(BOOK.allowed_actions(kind, bits))
                    if actions:
                        found[member, f"{stored_kind(kind)} {resource}"] = actions
        return found

    def close(self) -> None:
        """Let go of the database."""
        self.client.close()
        self.database.close()


ANY_CHECK = {"member": "Olga", "action": "manage_billing", "resource": "organization", "allowed": True}


def address(name: str) -> str:
    """The mail address of a person."""
    return f"{name.lower()}@example.com"
