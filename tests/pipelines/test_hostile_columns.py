"""Columns whose names would steer a terminal or a page are names, in lineage as elsewhere."""

import json

import pytest

from headgate.cli.main import app
from tests.organization.profile.support import Commands
from tests.pipelines.probes import LONG, Probe, create, fields
from tests.support.company import Company

HOSTILE = (
    "red\x1b[31m",
    "clear\x9b2J",
    "\u202eback",
    "two\nlines",
    "<img src=x onerror=alert(1)>",
    "[red]loud[/red]",
    "a'; DROP TABLE x; --\"`",
    "l" * 255,
)


def test_lineage_shows_them_as_text(millrace_on_sqlite: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    millrace = millrace_on_sqlite
    create(millrace, "Tess", "raw.sold", **dict.fromkeys(HOSTILE, LONG))
    probe = Probe(millrace, "Tess", "Odd", "trusted.odd")
    origins = [(name, [("raw.sold", name)]) for name in HOSTILE]
    pipeline = probe.save(fields(**dict.fromkeys(HOSTILE, LONG)), "raw.sold", origins=origins)
    told = millrace.as_("Tess").get(f"/api/pipelines/{pipeline}/lineage", columns=True)
    assert {one["target_column"] for one in told.json()["columns"]} == set(HOSTILE)
    assert told.headers["content-type"] == "application/json"
    run = Commands(millrace, app, monkeypatch)
    shown = run("Tess", "pipeline", "lineage", "Odd", "--columns").output
    assert all(one.isprintable() for one in shown.split("\n"))
    assert shown.count("trusted.odd.") == len(HOSTILE), "each is one line"
    as_json = run("Tess", "pipeline", "lineage", "Odd", "--columns", "--json").output
    assert all(one.isprintable() for one in as_json.split("\n"))
    assert {one["source_column"] for one in json.loads(as_json)["columns"]} == set(HOSTILE)
