"""Plain Spark, Iceberg's Java client and PyIceberg, each with members' tokens: what one writes, the others read."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headgate.execution.spark import jars, java
from tests.lakehouse.catalog.support import ROWS, Lake

CLIENTS = Path(__file__).with_name("clients")
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.slow]


@pytest.fixture(params=["folder", "bucket"])
def lakehouse(request: pytest.FixtureRequest) -> Lake:
    """The company with its warehouse in a folder, which trusts this host, and in a bucket."""
    found = request.getfixturevalue("served_on_sqlite" if request.param == "folder" else "on_bucket")
    assert isinstance(found, Lake)
    return found


def _run(command: list[str], **more: Any) -> list[str]:
    """What a client answers. It knows no key: none is in its environment, and no file of a home has one."""
    kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME", "TMPDIR") if name in os.environ}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=kept, **more)
    found = [line.removeprefix("ANSWER ") for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    return found


def spark(lakehouse: Lake, folder: Path, members: dict[str, str], statements: list[str]) -> list[Any]:
    """The answers of one plain Spark to statements; each catalog in them has the token of a member."""
    found = jars.ensure(s3=True)
    tokens = {name: lakehouse.company.token(member) for name, member in members.items()}
    given = {
        "jars": f"{found.iceberg},{found.aws}",
        "uri": f"{lakehouse.url}/iceberg",
        "tokens": tokens,
        "folder": str(folder / "spark"),
        "statements": statements,
    }
    answers = _run([sys.executable, str(CLIENTS / "stock_spark.py")], input=json.dumps(given), cwd=folder)
    return [json.loads(one) for one in answers]


def java_client(lakehouse: Lake, member: str, *commands: str) -> list[str]:
    """The answers of Iceberg's Java client to commands, with a member's token."""
    found = jars.ensure(s3=True)
    classes = os.pathsep.join([str(found.iceberg), str(found.aws), f"{java.spark_jars()}/*"])
    command = [java.java(), "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", classes, str(CLIENTS / "StockClient.java")]
    return _run([*command, f"{lakehouse.url}/iceberg", lakehouse.company.token(member), *commands])


def test_what_one_writes_the_others_read(lakehouse: Lake, tmp_path: Path) -> None:
    tess = lakehouse.engine("Tess")
    tess.create_table("raw.shared", ROWS.schema).append(ROWS)
    tess.create_table("trusted.facts", ROWS.schema).append(ROWS)

    answers: list[Any] = java_client(
        lakehouse, "Tom", "append", "raw.shared", "scan", "raw.shared", "create", "raw.by_java", "append", "raw.by_java",
        "scan", "trusted.facts", "list", "trusted.any", "list", "raw.any",
    )  # fmt: skip
    assert answers[0] == "append raw.shared done"
    assert answers[1] == "scan raw.shared [1, 2, 3, 10, 11]"
    assert "/tables/tbl_" in answers[2]
    assert answers[3] == "append raw.by_java done"
    assert answers[4].startswith("scan trusted.facts NoSuchTableException")
    assert answers[5].startswith("list trusted.any NoSuchNamespaceException")
    assert answers[6] == "list raw.any [by_java, shared]"

    members = {"tess": "Tess", "ana": "Ana", "tom": "Tom"}
    answers = spark(
        lakehouse, tmp_path, members,
        [
            "SELECT id FROM tom.raw.by_java ORDER BY id",
            "INSERT INTO tom.raw.shared VALUES (20, 'spark')",
            "CREATE TABLE tess.trusted.sums AS SELECT count(*) AS n FROM tess.raw.shared",
            "SELECT n FROM ana.trusted.sums",
            "SELECT count(*) FROM ana.raw.shared",
            "INSERT INTO ana.trusted.facts VALUES (30, 'no')",
            "SELECT count(*) FROM tom.trusted.facts",
            "DELETE FROM tess.trusted.facts WHERE id = 1",
            "SELECT id FROM ana.trusted.facts ORDER BY id",
            "SHOW TABLES IN ana.trusted",
            "CALL tess.system.expire_snapshots(table => 'trusted.facts', older_than => TIMESTAMP '2099-01-01 00:00:00')",
            "SELECT id FROM ana.trusted.facts ORDER BY id",
        ],
    )  # fmt: skip
    assert answers[0] == [[10], [11]]
    assert answers[1] == []
    assert answers[3] == [[6]]
    assert "TABLE_OR_VIEW_NOT_FOUND" in answers[4]
    assert "Forbidden" in answers[5] or "403" in answers[5] or "You may not" in answers[5], answers[5]
    assert "TABLE_OR_VIEW_NOT_FOUND" in answers[6]
    assert answers[8] == [[2], [3]]
    assert sorted(row[1] for row in answers[9]) == ["facts", "sums"]
    assert answers[10][0][0] == 1, "one file was deleted, by a request whose body was looked at on a bucket"
    assert answers[11] == [[2], [3]]

    shared = tess.load_table("raw.shared").scan().to_arrow()
    assert sorted(shared["id"].to_pylist()) == [1, 2, 3, 10, 11, 20]
    assert lakehouse.engine("Ana").load_table("trusted.sums").scan().to_arrow()["n"].to_pylist() == [6]
    answers = java_client(lakehouse, "Ana", "scan", "trusted.sums_missing", "scan", "trusted.facts")
    assert answers[0].startswith("scan trusted.sums_missing NoSuchTableException")
    assert answers[1] == "scan trusted.facts [2, 3]"
