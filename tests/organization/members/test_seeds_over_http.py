"""Every row of seeds 001 and 003 over HTTP: asked by each member themselves, and, where a route does it, really done."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.testclient import TestClient

from headgate.access.worlds import read_world
from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.settings.settings import Settings
from headgate.worlds.loader import load
from tests.support.apps import app_for
from tests.support.company import Api, Company
from tests.support.databases import on_sqlite

pytestmark = pytest.mark.both_databases

WORLDS = sorted((Path(__file__).parents[2] / "access/worlds").glob("seed_00[13]_*.yaml"))
DOES = {"remove", "change_role", "reset_password", "make_magic_link"}


def assertions(world: Any) -> Iterator[tuple[dict[str, Any], str, bool]]:
    """Each check of a world, with one action and the answer that it expects."""
    for check in world["checks"]:
        if "action" in check:
            yield check, check["action"], check["allowed"]
        for action in check.get("can", []):
            yield check, action, True
        for action in check.get("cannot", []):
            yield check, action, False


@pytest.fixture
def company_of(database: Database, tmp_path: Path) -> Iterator[Any]:
    """Makes a company of a world, once."""
    with TestClient(app_for(Settings(data_dir=tmp_path), database), raise_server_exceptions=False) as client:

        def make(file: Path) -> Company:
            world = read_world(file.read_text(), file.name)
            database.write(lambda connection: load(connection, world, now()))
            return Company(database, Settings(data_dir=tmp_path), client)

        yield make


def asked(api: Api, check: dict[str, Any], action: str) -> bool:
    """What the API answers; hidden, and unknown to the kind, are refusals too."""
    place = {"resource": check["resource"]} if "resource" in check else {"kind": check["kind"]}
    state = {"with": check["with"]} if "with" in check else {}
    answer = api.post("/api/access/explain", {"action": action, **place, **state})
    assert answer.status_code in {200, 404, 422}, answer.text
    return answer.status_code == 200 and bool(answer.json()["allowed"])


@pytest.mark.parametrize("file", WORLDS, ids=lambda file: file.stem)
def test_every_row_is_answered_over_http(company_of: Any, file: Path) -> None:
    world, found = yaml.safe_load(file.read_text()), company_of(file)
    rows = [(found.as_(check["member"]), check, action, allowed) for check, action, allowed in assertions(world)]
    assert rows
    wrong = [(check, action) for api, check, action, allowed in rows if asked(api, check, action) != allowed]
    assert wrong == []


def done(found: Company, check: dict[str, Any], action: str) -> int:
    """Do it; the status."""
    api, name = found.as_(check["member"]), check["resource"].removeprefix("member:")
    if action == "remove":
        return int(api.change(change="remove_member", member=name).status_code)
    if action == "change_role":
        return int(api.change(change="set_role", member=name, role=check["with"]["role"]).status_code)
    path = "magic-link" if action == "make_magic_link" else "password-reset"
    return int(api.request("POST", f"/api/members/{found.id('member', name)}/{path}").status_code)


def managing() -> list[Any]:
    rows = []
    for file in WORLDS:
        for check, action, allowed in assertions(yaml.safe_load(file.read_text())):
            if action in DOES and (action != "change_role" or "with" in check):
                label = f"{file.stem}-{check['member']}-{action}-{check['resource']}-{check.get('with', {}).get('role', '')}"
                rows.append(pytest.param(file, check, action, allowed, id=label))
    return rows


@pytest.mark.parametrize(("file", "check", "action", "allowed"), managing())
def test_what_the_rows_say_of_members_is_what_the_routes_do(
    tmp_path: Path, file: Path, check: dict[str, Any], action: str, allowed: bool
) -> None:
    database = on_sqlite(tmp_path)
    with TestClient(app_for(Settings(data_dir=tmp_path), database), raise_server_exceptions=False) as client:
        database.write(lambda connection: load(connection, read_world(file.read_text(), file.name), now()))
        found = Company(database, Settings(data_dir=tmp_path), client)
        assert done(found, check, action) == (200 if allowed else 403)
