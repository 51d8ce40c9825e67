"""The data source by itself: it travels whole, to machines that do not have this package."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import headgate.execution.sources.rest as package
from headgate.execution.sources.rest.source import register
from tests.execution.sources.rest import asked, auth
from tests.support.api import SECRET, rows, serving

ELSEWHERE = """
import pickle, sys
sys.modules["headgate"] = None
made = pickle.load(sys.stdin.buffer)
again = pickle.loads(__import__("pyspark").cloudpickle.dumps(made({})))
reader = again.reader(None)
for partition in reader.partitions():
    for batch in reader.read(partition):
        print(again.name(), again.schema(), batch.num_rows, batch.column(0)[0])
"""


class Session:
    """Takes a source as Spark does: pickled."""

    def __init__(self) -> None:
        self.dataSource = self

    def register(self, source: type) -> None:
        from pyspark import cloudpickle  # noqa: PLC0415

        self.sent = cloudpickle.dumps(source)


@pytest.mark.processes
def test_it_works_where_this_package_is_not() -> None:
    with serving(rows(3)) as api:
        session = Session()
        register(session, asked(api, "/bearer", auth=auth("bearer", secret=SECRET)))
        done = subprocess.run(
            [sys.executable, "-c", ELSEWHERE], input=session.sent, capture_output=True, timeout=60, check=False
        )
    assert done.returncode == 0, done.stderr.decode()
    first = '{"id":1,"name":"row 1","amount":0.25,"tags":["a"]}'
    assert done.stdout.decode() == f"headgate_api row string 3 {first}\n"


@pytest.mark.parametrize("file", sorted(Path(package.__file__).parent.glob("*.py")), ids=lambda file: file.name)
def test_its_modules_need_the_standard_library_and_each_other(file: Path) -> None:
    allowed = {"headgate.execution.sources.rest", "headgate.contracts", "headgate.contracts.api_paths"} | (
        {"pyarrow", "pyspark", "pyspark.sql.datasource"} if file.name == "source.py" else {"certifi"}
    )
    for node in ast.walk(ast.parse(file.read_text())):
        for name in (
            [one.name for one in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        ):
            known = name.partition(".")[0] in sys.stdlib_module_names or name in allowed
            assert known or name.startswith("headgate.execution.sources.rest."), name
