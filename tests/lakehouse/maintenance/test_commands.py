"""`headgate maintenance`, as an admin uses it, and the scheduler of a whole installation that does it."""

import json
import os
import time
from pathlib import Path

import pytest

from headgate.kit.database import Database
from headgate.platform.authorization.lookup import Lookup
from tests.support.installation import installed

pytestmark = pytest.mark.processes

TEN_DAYS = 10 * 86_400


def test_the_commands(tmp_path: Path) -> None:
    with installed(tmp_path) as one:
        one.fill()
        database = Database(one.url)
        with database.read() as connection:
            table = Lookup(connection).of("table", "service.revenue")
        database.close()
        folder = tmp_path / "warehouse" / "tables" / str(table) / "data"
        folder.mkdir(parents=True)
        old, young = folder / "old.parquet", folder / "young.parquet"
        for file in (old, young):
            file.write_bytes(b"x" * 2048)
        then = time.time() - TEN_DAYS
        os.utime(old, (then, then))
        adam = {"HEADGATE_SERVER_URL": one.up(), "HEADGATE_TOKEN": one.token("Adam")}

        def run(*arguments: str) -> str:
            done = one.headgate("maintenance", *arguments, **adam)
            assert done.returncode == 0, done.stderr
            return done.stdout

        said = run("run", "--dry-run")
        assert "Would expire 0 snapshots, remove 1 files (2.0 KiB), and compact 0 tables." in said
        assert old.exists()
        assert "No table needed maintenance" in run("run", "--table", "raw.orders")
        found = json.loads(run("run", "--json"))
        assert (found["state"], found["summary"]["files_removed"]) == ("succeeded", 1)
        assert (old.exists(), young.exists()) == (False, True)
        assert found["id"] in run("list")
        assert "service.revenue" in run("show", found["id"])
        missing = one.headgate("maintenance", "run", "--table", "raw.nothing", **adam)
        assert (missing.returncode, "name it as layer.table" in missing.stderr) == (1, True)
        tess = {**adam, "HEADGATE_TOKEN": one.token("Tess")}
        refused = one.headgate("maintenance", "run", **tess)
        assert refused.returncode == 1
        assert refused.stderr
