"""How many sign-ins a second, beside argon2 alone? What does a session cost beside a token? And the list of members?"""

import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2 as httpx
from sqlalchemy import insert

from benchmarks.harness import ROUNDS, Table, compared, row, save
from benchmarks.product import product
from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.organization.contexts.models import context_table
from headgate.organization.groups.models import group_table
from headgate.organization.sessions import passwords
from headgate.platform.authorization.fact_tables import group_member_table, member_context_table
from headgate.platform.directory.models import member_table, principal_table

PASSWORD, EMAIL = "seven quiet herons fishing", "olga@example.com"
MEMBERS = 10_000
SECONDS = 1.5


def _rate(work: Any, threads: int) -> float:
    """How often a second something is done, by several threads."""
    deadline, done = time.perf_counter() + SECONDS, 0

    def until(_: int) -> int:
        count = 0
        while time.perf_counter() < deadline:
            work()
            count += 1
        return count

    with ThreadPoolExecutor(threads) as pool:
        done = sum(pool.map(until, range(threads)))
    return done / SECONDS


def sign_ins(address: str) -> Table:
    """Sign-ins over HTTP, and the hash that each needs, in turns."""
    stored, threads = passwords.hashed(PASSWORD), os.cpu_count() or 1
    clients = httpx.Client(base_url=address, headers={"Origin": address})

    def sign_in() -> None:
        clients.post("/api/sign-in", json={"email": EMAIL, "password": PASSWORD}).raise_for_status()

    ours, alone = [], []
    for _ in range(ROUNDS):
        ours.append(_rate(sign_in, threads))
        alone.append(_rate(lambda: passwords.is_right(stored, PASSWORD), threads))
    table = Table(f"Sign-ins a second, {threads} at a time", "bounded by argon2 alone")
    base = row("argon2 alone, in the load's process", alone, "a second")
    table.rows = [compared(row("Headgate, over HTTP", ours, "a second"), ours, alone), base]
    table.notes.append("the load, the server and its hashes share the same cores")
    return table


def session_or_token(address: str, token: str) -> Table:
    """GET of oneself with each, in turns."""
    by_session, by_token = httpx.Client(base_url=address), httpx.Client(base_url=address)
    signed = httpx.post(f"{address}/api/sign-in", json={"email": EMAIL, "password": PASSWORD}).raise_for_status()
    # As a plain header on both sides: a jar of cookies is the client's cost, not the server's.
    by_session.headers["Cookie"] = f"headgate={signed.cookies['headgate']}"
    by_token.headers["Authorization"] = f"Bearer {token}"

    def cost(client: httpx.Client) -> float:
        started = time.perf_counter()
        for _ in range(200):
            client.get("/api/access/me").raise_for_status()
        return (time.perf_counter() - started) / 200 * 1e3

    cost(by_session), cost(by_token)
    pairs = [(cost(by_session), cost(by_token)) for _ in range(ROUNDS)]
    sessions, tokens = [one for one, _ in pairs], [one for _, one in pairs]
    table = Table("A request with a session, and with a token", "within 0.1 ms of one another")
    table.rows = [compared(row("session", sessions, "ms"), sessions, tokens), row("token", tokens, "ms")]
    apart = abs(sorted(sessions)[ROUNDS // 2] - sorted(tokens)[ROUNDS // 2])
    table.notes.append(f"{apart:.3f} ms apart: {'met' if apart <= 0.1 else 'NOT MET'}")
    return table


def members(address: str, token: str) -> Table:
    """A page of the list of members, with groups and contexts, at eight and at ten thousand members."""
    client = httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"})
    times = {sort: [] for sort in ("name", "-last_seen", "role")}
    for _ in range(ROUNDS):
        for sort, found in times.items():
            started = time.perf_counter()
            client.get("/api/members", params={"sort": sort, "limit": 200}).raise_for_status()
            found.append((time.perf_counter() - started) * 1e3)
    table = Table(f"A page of 200 of {MEMBERS:,} members with groups and contexts", "a constant number of queries")
    table.rows = [row(f"by {sort}", found, "ms") for sort, found in times.items()]
    table.notes.append("tests/organization/members/test_members.py counts the statements")
    return table


def _named(prefix: str, count: int) -> list[dict[str, Any]]:
    names = [f"{prefix} {number}" for number in range(count)]
    return [
        {"id": f"{prefix}_{n:020d}", "name": one, "name_key": one, "created_at": now()} for n, one in enumerate(names)
    ]


def _fill(url: str) -> None:
    database = Database(url)

    def work(connection: Any) -> None:
        moment = now()
        ids = [f"mbr_{number:020d}" for number in range(MEMBERS)]
        people = [
            {"id": one, "name": one, "name_key": one, "role": "business", "scope": "selected", "created_at": moment}
            for one in ids
        ]
        contexts = [
            {"id": f"ctx_{n:020d}", "name": f"c{n}", "name_key": f"c{n}", "created_at": moment} for n in range(20)
        ]
        groups = [
            {"id": f"grp_{n:020d}", "name": f"g{n}", "name_key": f"g{n}", "created_at": moment} for n in range(50)
        ]
        connection.execute(insert(principal_table), [{"id": one} for one in [*ids, *(g["id"] for g in groups)]])
        connection.execute(insert(member_table), people)
        connection.execute(insert(context_table), contexts)
        connection.execute(insert(group_table), groups)
        connection.execute(
            insert(member_context_table),
            [{"member_id": one, "context_id": contexts[n % 20]["id"]} for n, one in enumerate(ids)],
        )
        connection.execute(
            insert(group_member_table),
            [{"group_id": groups[(n + k) % 50]["id"], "member_id": one} for n, one in enumerate(ids) for k in range(3)],
        )

    database.write(work)
    database.close()


def main() -> None:
    """On SQLite, one server process."""
    with (
        tempfile.TemporaryDirectory() as folder,
        product(Path(folder), spark=False, HEADGATE_LOG__LEVEL="warning") as one,
    ):
        one.fill()
        database = Database(one.url)
        values = {"email": EMAIL, "email_key": EMAIL, "password": passwords.hashed(PASSWORD)}
        update = member_table.update().where(member_table.c.name == "Olga").values(**values)
        database.write(lambda connection: connection.execute(update))
        database.close()
        _fill(one.url)
        token = one.token("Olga")
        address = one.up()
        tables = [sign_ins(address), session_or_token(address, token), members(address, token)]
        one.stop()
    save("sign_in", tables)


if __name__ == "__main__":
    main()
