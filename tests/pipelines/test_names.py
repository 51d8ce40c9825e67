"""A layer has one table or volume of a name: what a definition calls both is said at once."""

from typing import Any

import pytest
from pydantic import ValidationError

from headgate.contracts.pipelines.definitions import parse

CELLS = [{"source": "1"}]


@pytest.mark.parametrize("table", ["landing", "Landing"])
def test_a_stream_does_not_land_in_the_name_of_its_volume(table: str) -> None:
    wanted: dict[str, Any] = {"kind": "source", "volume": "raw.landing", "output_layer": "raw"}
    with pytest.raises(ValidationError, match="raw\\.landing is the volume that is read; give the table another name"):
        parse({**wanted, "streams": [{"name": "*.csv", "table": table}]})
    parse({**wanted, "streams": [{"name": "*.csv", "table": "landed"}]})
    parse({**wanted, "output_layer": "trusted", "streams": [{"name": "*.csv", "table": table}]})


@pytest.mark.parametrize(
    "more",
    [
        {"volumes": ["raw.files"], "inputs": ["raw.files"]},
        {"volumes": ["raw.files"], "outputs": [{"table": "raw.files"}]},
        {"output_volumes": ["raw.files"], "outputs": [{"table": "raw.files"}]},
        {"wheels": [{"volume": "raw.files", "path": "a.whl"}], "inputs": ["raw.files"]},
    ],
)
def test_a_notebook_names_none_as_a_volume_and_as_a_table(more: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"raw\.files is both a volume and a table"):
        parse({"kind": "notebook", "cells": CELLS, **more})
    parse({"kind": "notebook", "cells": CELLS, "volumes": ["raw.files"], "output_volumes": ["raw.files"]})
