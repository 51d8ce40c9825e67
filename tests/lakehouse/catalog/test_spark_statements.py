"""Plain Spark with members' tokens: each statement that changes a table, and the level that it needs."""

from pathlib import Path
from typing import Any

import pytest

from headgate.lakehouse.catalog import commit as committing
from tests.lakehouse.catalog.support import MORE, ROWS, Lake
from tests.lakehouse.catalog.test_stock_clients import spark

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.slow]

STATEMENTS: tuple[tuple[str, Any], ...] = (
    ("CREATE TABLE tom.raw.t (id BIGINT, name STRING) PARTITIONED BY (truncate(1, name)) COMMENT 'tried'", None),
    ("CREATE TABLE IF NOT EXISTS tom.raw.t (id BIGINT)", None),
    ("CREATE TABLE tom.raw.t (id BIGINT)", "TABLE_OR_VIEW_ALREADY_EXISTS"),
    ("INSERT INTO tom.raw.t VALUES (1, 'a'), (2, 'b')", None),
    ("MERGE INTO tom.raw.t t USING (SELECT 2L AS id, 'B' AS name UNION ALL SELECT 3L, 'c') s ON t.id = s.id "
     "WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT *", None),
    ("UPDATE tom.raw.t SET name = 'z' WHERE id = 1", None),
    ("DELETE FROM tom.raw.t WHERE id = 3", None),
    ("SELECT id, name FROM tom.raw.t ORDER BY id", [[1, "z"], [2, "B"]]),
    ("ALTER TABLE tom.raw.t ADD COLUMN price DECIMAL(10, 2) AFTER id", None),
    ("ALTER TABLE tom.raw.t RENAME COLUMN name TO title", None),
    ("ALTER TABLE tom.raw.t ADD PARTITION FIELD bucket(4, id)", None),
    ("ALTER TABLE tom.raw.t DROP PARTITION FIELD truncate(1, title)", None),
    ("ALTER TABLE tom.raw.t WRITE ORDERED BY id", None),
    ("INSERT INTO tom.raw.t VALUES (4, 1.5, 'd')", None),
    ("ALTER TABLE tom.raw.t SET TBLPROPERTIES ('write.parquet.compression-codec' = 'snappy')", None),
    ("ALTER TABLE tom.raw.t UNSET TBLPROPERTIES ('write.parquet.compression-codec')", None),
    ("ALTER TABLE tom.raw.t SET TBLPROPERTIES ('write.data.path' = 'file:///tmp/elsewhere')", "is reserved"),
    ("ALTER TABLE tom.raw.t SET TBLPROPERTIES ('format-version' = '3')", "not supported"),
    ("ALTER TABLE tom.raw.t SET LOCATION 'file:///tmp/elsewhere'", "cannot change"),
    ("CREATE TABLE tom.raw.x (id INT) LOCATION 'file:///tmp/elsewhere'", None),
    ("INSERT INTO tom.raw.x VALUES (1)", None),
    ("SELECT count(*), count_if(file_path LIKE '%/elsewhere/%') FROM tom.raw.x.files", [[1, 0]]),
    ("SELECT count(*) FROM tom.raw.t.snapshots", [[5]]),
    ("SELECT count(*) FROM tom.raw.t.history", [[5]]),
    ("SELECT count(*) > 0 FROM tom.raw.t.files", [[True]]),
    ("ALTER TABLE tom.raw.t CREATE BRANCH audit", None),
    ("INSERT INTO tom.raw.t.branch_audit VALUES (5, 1, 'e')", None),
    ("SELECT count(*) FROM tom.raw.t VERSION AS OF 'audit'", [[4]]),
    ("SELECT count(*) FROM tom.raw.t", [[3]]),
    ("CALL tom.system.fast_forward('raw.t', 'main', 'audit')", "any"),
    ("SELECT count(*) FROM tom.raw.t", [[4]]),
    ("ALTER TABLE tom.raw.t DROP BRANCH audit", None),
    ("CREATE OR REPLACE TABLE tom.raw.t AS SELECT 9L AS other", None),
    ("SELECT * FROM tom.raw.t", [[9]]),
    ("INSERT OVERWRITE tom.raw.t SELECT 8L", None),
    ("SELECT * FROM tom.raw.t", [[8]]),
    ("CREATE OR REPLACE TABLE tom.raw.t (fresh INT)", None),
    ("SELECT * FROM tom.raw.t", []),
    ("CREATE TABLE tom.raw.by_ctas AS SELECT 1 AS one", None),
    ("CREATE OR REPLACE TABLE tom.raw.by_corta AS SELECT 2 AS two", None),
    ("TRUNCATE TABLE tom.raw.by_ctas", None),
    ("DROP TABLE tom.raw.t", "You may not"),
    ("ALTER TABLE tom.raw.t RENAME TO raw.u", "You may not"),
    ("CREATE NAMESPACE tom.own", "You may not"),
    ("SHOW VIEWS IN tom.raw", "any"),
    ("ALTER TABLE tess.raw.t RENAME TO raw.u", None),
    ("DROP TABLE tess.raw.u PURGE", None),
    ("DROP TABLE IF EXISTS tess.raw.u", None),
    ("CREATE NAMESPACE adam.own COMMENT 'mine'", None),
    ("DROP NAMESPACE adam.own", None),
    ("DROP NAMESPACE adam.raw", "not empty"),
    ("SELECT * FROM tom.service.secret", "TABLE_OR_VIEW_NOT_FOUND"),
    ("INSERT INTO tom.service.secret VALUES (1, 'x')", "TABLE_OR_VIEW_NOT_FOUND"),
)  # fmt: skip


def test_each_statement_needs_its_level_and_leads_nowhere_else(served_on_sqlite: Lake, tmp_path: Path) -> None:
    served_on_sqlite.engine("Tess").create_table("service.secret", ROWS.schema).append(ROWS)
    members = {"tom": "Tom", "tess": "Tess", "adam": "Adam"}
    answers = spark(served_on_sqlite, tmp_path, members, [statement for statement, _ in STATEMENTS])
    wrong = []
    for (statement, wanted), answer in zip(STATEMENTS, answers, strict=True):
        if wanted == "any":
            continue
        is_right = isinstance(answer, list) if wanted is None else answer == wanted
        if isinstance(wanted, str):
            is_right = isinstance(answer, str) and wanted in answer
        if not is_right:
            wrong.append((statement, wanted, answer))
    assert not wrong, "\n".join(f"{one[0]}: {one[2]}"[:700] for one in wrong)


def test_rolling_back_needs_manager(served_on_sqlite: Lake, tmp_path: Path) -> None:
    table = served_on_sqlite.engine("Tess").create_table("raw.t", ROWS.schema)
    table.append(ROWS)
    first = table.current_snapshot().snapshot_id
    table.append(MORE)
    back = "CALL {}.system.rollback_to_snapshot('raw.t', " + str(first) + ")"
    expire = "CALL {}.system.expire_snapshots(table => 'raw.t', older_than => TIMESTAMP '2099-01-01 00:00:00')"
    answers = spark(
        served_on_sqlite,
        tmp_path,
        {"tom": "Tom", "tess": "Tess"},
        [back.format("tom"), expire.format("tom"), back.format("tess"), "SELECT count(*) FROM tom.raw.t"],
    )
    assert "You may not" in answers[0]
    assert "You may not" in answers[1]
    assert isinstance(answers[2], list)
    assert answers[3] == [[3]]


def test_sparks_own_retry_succeeds_beside_another_writer(
    served_on_sqlite: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between Spark's first try and the move of the pointer, another commits; once for each of Spark's snapshots."""
    tess = served_on_sqlite.engine("Tess")
    tess.create_table("raw.t", ROWS.schema)
    planned, met = committing._plan, set()

    def plan(*arguments: Any) -> Any:
        found = planned(*arguments)
        for update in found.change.updates:
            is_sparks = (
                update.action == "add-snapshot" and "spark.app.id" in update.snapshot.summary.additional_properties
            )
            if is_sparks and update.snapshot.snapshot_id not in met:
                met.add(update.snapshot.snapshot_id)
                tess.load_table("raw.t").append(MORE)
        return found

    monkeypatch.setattr(committing, "_plan", plan)
    inserts = [f"INSERT INTO tess.raw.t VALUES ({1000 + n}, 'spark')" for n in range(3)]
    counts = ["SELECT count(*) FROM tess.raw.t WHERE id >= 1000", "SELECT count(*) FROM tess.raw.t"]
    answers = spark(served_on_sqlite, tmp_path, {"tess": "Tess"}, [*inserts, *counts])
    assert len(met) == 3
    assert answers == [[], [], [], [[3]], [[9]]]
