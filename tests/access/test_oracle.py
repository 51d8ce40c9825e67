"""The oracle agrees with every world of the seeds and the model, so the two readings of the model are one."""

from pathlib import Path

import pytest
import yaml

from tests.access.oracle import check_world

WORLDS = sorted(
    file for file in (Path(__file__).parent / "worlds").glob("*.yaml") if not file.name.startswith("product_")
)


@pytest.mark.parametrize("file", WORLDS, ids=lambda file: file.stem)
def test_the_oracle_agrees_with_a_world(file: Path) -> None:
    assert check_world(yaml.safe_load(file.read_text())) == []
