"""`headgate trigger`, as a member uses it."""

import json
from pathlib import Path

import pytest

from headgate.kit.database import Database
from headgate.pipelines.triggers.models import trigger_table
from tests.pipelines.triggers.support import define
from tests.support.installation import Installation


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    """The company, with a definition for one of its pipelines."""
    one = Installation(tmp_path)
    one.fill()
    database = Database(one.url)
    with database.read() as connection:
        row = connection.execute(trigger_table.select().where(trigger_table.c.kind == "pipeline_trigger")).one()
    define(database, row.parent_id)
    database.close()
    return one


def test_the_commands(installation: Installation) -> None:
    with installation.serving() as server:
        tess = {"HEADGATE_SERVER_URL": server, "HEADGATE_TOKEN": installation.token("Tess")}

        def run(*arguments: str) -> str:
            done = installation.headgate("trigger", *arguments, **tess)
            assert done.returncode == 0, done.stderr
            return done.stdout

        def refused(*arguments: str) -> str:
            done = installation.headgate("trigger", *arguments, **tess)
            assert done.returncode != 0, done.stdout
            return done.stderr

        said = run("next", "0 6 * * 1-5", "--zone", "Europe/Berlin")
        assert said.splitlines()[0] == "At 06:00 on Monday through Friday"
        assert len(said.splitlines()) == 6
        assert "never matches" in refused("next", "0 0 30 2 *")

        more = ("--zone", "Europe/Berlin", "--catch-up", "all", "--parameter", "days=3", "--parameter", "name=a=b")
        found = json.loads(run("add", "Land payments", "Mornings", "--cron", "0 6 * * *", *more, "--json"))
        assert found["parameters"] == {"days": 3, "name": "a=b"}
        assert (found["when"]["time_zone"], found["when"]["catch_up"]) == ("Europe/Berlin", "all")
        assert "Mornings" in run("list", "Land payments")
        assert "Europe/Berlin" in run("show", "Mornings", "--pipeline", "Land payments")
        assert "paused" in run("pause", found["id"])
        assert "on" in run("resume", "mornings", "-p", "Land payments")
        assert installation.headgate("pipeline", "deactivate", "Land payments", **tess).returncode == 0
        for shown in (run("list", "Land payments"), run("show", found["id"])):
            assert "inactive: its pipeline is deactivated; `headgate pipeline activate` activates it" in shown
        assert installation.headgate("pipeline", "activate", "Land payments", **tess).returncode == 0
        assert "off" not in run("list", "Land payments")
        changed = json.loads(
            run("change", found["id"], "--on-change", "raw.orders", "--at-most-every", "10 minutes", "--json")
        )
        assert changed["when"]["sources"][0]["name"] == "raw.orders"
        assert "when any of raw.orders changed, at most every 10 minutes" in run("show", found["id"])
        chained = json.loads(run("add", "Refine orders", "After it", "--after", "Land payments", "--all", "--json"))
        assert (chained["when"]["which"], chained["when"]["sources"][0]["name"]) == ("all", "Land payments")
        assert "would trigger itself" in refused("add", "Land payments", "x", "--after", "Land payments")
        assert "Deleted Mornings." in run("delete", found["id"])

        assert "--cron, --after or --on-change" in refused("add", "Land payments", "x")
        assert "one condition" in refused("add", "Land payments", "x", "--cron", "@daily", "--on-change", "raw.orders")
        assert "require --cron" in refused("add", "Land payments", "x", "--on-change", "raw.orders", "--zone", "UTC")
        assert "NAME=VALUE" in refused("add", "Land payments", "x", "--cron", "@daily", "--parameter", "days")
        assert "--pipeline" in refused("show", "Mornings")
        assert "no trigger called 'Evenings'" in refused("show", "Evenings", "-p", "Land payments")
        assert "no pipeline called" in refused("list", "Nothing")
