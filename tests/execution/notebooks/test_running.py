"""A notebook that does what notebooks are for, from its cells to what it staged, in the real sandbox."""

import io
import json
import zipfile
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.contracts.pipelines.definitions import Cell, SecretRef
from headgate.contracts.pipelines.staged import Manifest
from tests.support.notebooks import Notebooks

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def wheel(entries: dict[str, str]) -> bytes:
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return found.getvalue()


@pytest.fixture(scope="module")
def volume(notebooks: Notebooks) -> str:
    """raw.landing with files in it, and raw.results without."""
    api = notebooks.lake.api("Tess")
    for name in ("landing", "results"):
        answer = api.post("/api/volumes", {"name": name, "layer": "raw"})
        assert answer.status_code < 300, answer.text
    landing = notebooks.item("volume", "raw.landing").id
    package = wheel(
        {
            "millrace_units/__init__.py": "def litres(gallons):\n    return gallons * 3.785\n",
            "millrace_units-1.0.data/purelib/millrace_extra.py": "FOUND = True\n",
            "millrace_units-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\n",
        }
    )
    for path, content in (
        ("orders/2026/january.csv", b"id,name\n10,x\n11,y\n"),
        ("naïve ünd spaces.txt", b"text"),
        ("wheels/millrace_units-1.0-py3-none-any.whl", package),
    ):
        answer = api.request("PUT", f"/api/volumes/{landing}/files/{path}", content=content)
        assert answer.status_code < 300, answer.text
    return "raw.landing"


CELLS = (
    """
import sys
events = load("raw.events")
print("rows:", events.count())
print("to stderr", file=sys.stderr)
import os; os.system("echo from a child")
events.orderBy("id")
""",
    """
from pyspark.sql.functions import udf
from dataclasses import dataclass
import millrace_units, millrace_extra

@dataclass
class Factor:
    by: int

factor = Factor(parameters["by"])

@udf("double")
def litres(x):
    return millrace_units.litres(x) * factor.by

spark.sql("SELECT * FROM raw.events").select(litres("id").alias("litres")).orderBy("litres").toPandas()
""",
    """
csv = spark.read.csv(str(volume_path("raw.landing", "orders/2026")), header=True, schema="id BIGINT, name STRING")
save(events.unionByName(csv), "trusted.facts")
import pandas
save(pandas.DataFrame({"id": [99], "name": ["pandas"]}), "Trusted.Facts")
[one.name for one in load_files("raw.landing", "**/*.txt")], volume_path("raw.landing", "naïve ünd spaces.txt").read_text()
""",
    """
open("/tmp/local.bin", "wb").write(b"local")
save_file("raw.results", "out/report.txt", b"first")
save_file("raw.results", "out/report.txt", b"second")
save_file("raw.results", "local.bin", "/tmp/local.bin")
display(secret("api_key")[::-1])
secret("api_key")
""",
)


def test_a_notebook_reads_computes_shows_and_saves(notebooks: Notebooks, volume: str) -> None:
    facts = notebooks.item("table", "trusted.facts")
    landing = notebooks.item("volume", volume)
    step = notebooks.step(
        *CELLS,
        inputs=(notebooks.item("table", "raw.events"),),
        outputs=(facts,),
        volumes=(landing,),
        output_volumes=(notebooks.item("volume", "raw.results"),),
        wheels=((landing, "wheels/millrace_units-1.0-py3-none-any.whl"),),
        secrets=(SecretRef(name="api_key", connection="con_11111111111111111111", field="token"),),
        parameters={"by": 2},
    )
    step = replace(step, cells=(Cell(kind="text", source="# Text"), *step.cells))
    told = notebooks.go(
        step,
        endpoints={
            "con_11111111111111111111": Endpoint("con_11111111111111111111", "api", {}, {"token": "sesame-7f3a"})
        },
    )
    assert told.failed is None, (told.failed, told.artifacts)
    first, second, third, fourth = told.cells
    assert [one["number"] for one in told.cells] == [2, 3, 4, 5]
    assert first["stdout"].splitlines() == ["rows: 3", "from a child"]
    assert first["stderr"] == "to stderr\n"
    assert first["outputs"] == [
        {"kind": "table", "columns": ["id", "name"], "rows": [["1", "a"], ["2", "b"], ["3", "c"]], "more": False}
    ]
    assert second["outputs"][0]["columns"] == ["litres"]
    assert second["outputs"][0]["rows"][0] == ["7.57"]
    assert third["outputs"] == [{"kind": "text", "text": "(['naïve ünd spaces.txt'], 'text')"}]
    assert [one["text"] for one in fourth["outputs"]] == ["'a3f7-emases'", "'•••'"], "a secret that is shown is hidden"
    assert told.lines[-1].startswith("4 of 4 cells have run")
    assert told.result is not None
    assert [one["number"] for one in told.result.detail["cells"]] == [2, 3, 4, 5]
    assert told.result.detail["artifacts"] == ["notebook.json"]

    root = notebooks.lake.warehouse / "staging" / notebooks.run / str(notebooks.fence)
    manifest = Manifest.read((root / "manifest.json").read_text())
    assert {one.name for one in root.iterdir()} == {"manifest.json", "tables", "files"}
    [staged] = manifest.tables.values()
    assert [(one["name"], one["type"]) for one in staged.schema["fields"]] == [("id", "long"), ("name", "string")]
    rows = [row for name in staged.files for row in pq.read_table(root / name).to_pylist()]
    assert sorted(row["id"] for row in rows) == [1, 2, 3, 10, 11, 99]
    assert {one.path: (root / one.file).read_bytes() for one in manifest.files} == {
        "out/report.txt": b"second",
        "local.bin": b"local",
    }
    assert told.result.bytes == staged.bytes + len("second") + len("local")
    runs = notebooks.folder / "runs" / notebooks.run / str(notebooks.fence)
    assert list(runs.iterdir()) == [], "nothing else is left"


def test_it_stops_at_the_first_cell_that_fails(notebooks: Notebooks) -> None:
    cells = (
        "def inner(x):\n    return 1 / x\n\nprint('before')\ninner(1)",
        "print('so far')\nimport json\ninner(json.loads('0'))",
        "print('never')",
    )
    told = notebooks.go(notebooks.step(*cells))
    assert told.failed is not None
    assert told.failed.code == "CELL_FAILED"
    assert told.failed.message == "Cell 2 failed: ZeroDivisionError: division by zero"
    assert [one["number"] for one in told.cells] == [1, 2]
    assert told.cells[1]["stdout"] == "so far\n"
    trace = told.cells[1]["error"]["traceback"]
    assert 'File "<cell 2>", line 3' in trace
    assert 'File "<cell 1>", line 2, in inner' in trace
    assert "return 1 / x" in trace
    assert "headgate" not in trace
    assert json.dumps(told.cells).count("never") == 0
    assert not (notebooks.lake.warehouse / "staging" / notebooks.run / str(notebooks.fence)).exists()
