"""The worlds: every cell of every table in the seeds, and every rule of the access model, as files."""

from pathlib import Path

import pytest

from headgate.access.worlds import read_world
from headgate.kit.database import Database
from headgate.worlds.runner import run_in, run_world
from tests.support.worlds import empty

WORLDS = sorted((Path(__file__).parent / "worlds").glob("*.yaml"))
DEMO = Path(__file__).parents[2] / "src/headgate/demo/company.yaml"


@pytest.mark.parametrize("file", [*WORLDS, DEMO], ids=lambda file: file.stem)
def test_every_assertion_of_a_world_holds(file: Path) -> None:
    results = run_world(read_world(file.read_text(), file.name))
    assert results
    assert [f"{one.line}: {one.text}" for one in results if not one.passed] == []


@pytest.mark.postgres
def test_every_assertion_holds_on_postgresql_too(postgres_database: Database) -> None:
    for file in WORLDS:
        empty(postgres_database)
        results = run_in(postgres_database, read_world(file.read_text(), file.name))
        assert [f"{file.name}:{one.line}: {one.text}" for one in results if not one.passed] == []


def test_the_seeds_and_the_joints_are_all_there() -> None:
    names = {file.stem for file in WORLDS}
    for seed in ("000", "001", "002", "003", "004"):
        assert any(name.startswith(f"seed_{seed}_") for name in names), seed
    for joint in range(1, 7):
        assert any(name.startswith(f"joints_{joint}_") for name in names), joint


@pytest.mark.parametrize("file", WORLDS, ids=lambda file: file.stem)
def test_a_world_names_its_source(file: Path) -> None:
    head = "".join(line for line in file.read_text().splitlines(keepends=True) if line.startswith("#"))
    assert "seed" in head.lower() or "access model" in head.lower(), file.name
