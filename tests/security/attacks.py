"""What an attacker with few rights sends. `{mine}` is a table that they may read, `{hidden}` one that they must not know of.

The guard's own list (tests/spark_guard/attacks.py) is sent as well; here is what needs the catalog, a member and other members.
"""

_PATHS = (
    "/etc/passwd", "file:/etc/passwd", "file:///etc/passwd", "FILE:/etc/passwd", "file://localhost/etc/passwd",
    "/etc/./passwd", "/etc/../etc/passwd", "/etc//passwd", "%2fetc%2fpasswd", "file:%2f%2f%2fetc%2fpasswd",
    "..%2f..%2fetc%2fpasswd", "../../../../etc/passwd", "/proc/self/environ", "/proc/1/cmdline", "{root}", "{root}/data",
    "{root}/data/*.parquet", "file:{root}/data/{{*}}", "hdfs:/etc/passwd", "s3a://bucket/x", "http://127.0.0.1:1/x",
    "jar:file:/etc/passwd!/x", "\\etc\\passwd", "/etc/passwd\\u0000.parquet",
)  # fmt: skip
_POSITIONS = (
    "SELECT * FROM {path}",
    "TABLE {path}",
    "WITH x AS (SELECT * FROM {path}) SELECT * FROM x",
    "SELECT (SELECT max(value) FROM {path})",
    "SELECT * FROM {mine} WHERE EXISTS (SELECT 1 FROM {path})",
    "SELECT * FROM {mine} JOIN LATERAL (SELECT * FROM {path})",
    "SELECT * FROM {mine} UNION ALL SELECT * FROM {path}",
    "SELECT * FROM {mine} TIMESTAMP AS OF (SELECT max(value) FROM {path})",
    "INSERT INTO {mine} SELECT * FROM {path}",
    "CREATE TABLE raw.taken AS SELECT * FROM {path}",
    "MERGE INTO {mine} t USING {path} s ON true WHEN MATCHED THEN DELETE",
    "DELETE FROM {mine} WHERE id IN (SELECT 1 FROM {path})",
    "DESCRIBE {path}",
    "SHOW COLUMNS IN {path}",
    "EXPLAIN EXTENDED SELECT * FROM {path}",
    "FROM {mine} |> JOIN {path} ON true",
)

PATHS = (
    *(f"SELECT * FROM {form}.`{path}`" for path in _PATHS for form in ("parquet", "text")),
    *(one.replace("{path}", "text.`/etc/passwd`") for one in _POSITIONS),
    *(one.replace("{path}", "parquet.`{root}/data`") for one in _POSITIONS),
    *(f"SELECT * FROM lake.`{path}`" for path in _PATHS[:6]),
    "SELECT * FROM iceberg.`{root}`",
    "SELECT * FROM lake.iceberg.`{root}#snapshots`",
    "SELECT * FROM read_files('{root}')",
    "CREATE TABLE raw.taken (id INT) USING parquet LOCATION '{root}'",
    "CREATE TABLE raw.taken (id INT) LOCATION '{root}'",
    "CREATE TABLE raw.taken TBLPROPERTIES ('write.data.path'='{root}') AS SELECT 1 AS id",
    "CREATE TABLE raw.taken TBLPROPERTIES ('write.object-storage.path'='{root}') AS SELECT 1 AS id",
    "CALL lake.system.register_table('raw.taken', '{root}/metadata/x.json')",
    "CALL lake.system.add_files('raw.orders', 'parquet.`{root}/data`')",
    "CALL lake.system.snapshot('{hidden}', 'raw.taken')",
    "CALL lake.system.remove_orphan_files(table => '{mine}', location => '{root}')",
)

SETTINGS = (
    "SET", "SET -v", "SET spark.sql.catalog.lake.header.Authorization", "SET spark.sql.catalog.lake.uri",
    "SET spark.sql.catalog.lake.header.Authorization=Bearer x", "SET spark.sql.catalog.mine=org.apache.iceberg.spark.SparkCatalog",
    "SET spark.sql.catalog.mine.warehouse=/tmp", "SET `spark.sql.catalog.lake.io-impl`=`org.apache.iceberg.hadoop.HadoopFileIO`",
    "SET spark.sql.runSQLOnFiles=true", "SET spark.sql.variable.substitute=true", "SET spark.sql.extensions=", "SET spark.redaction.regex=x",
    "SET `spark.sql.catalog.lake.cache-enabled` = true", "SET TIME ZONE 'UTC'", "SET VAR x = 1", "DECLARE x = (SELECT 1)",
    "RESET", "RESET spark.sql.catalog.lake.header.Authorization", "USE raw", "USE lake.raw", "USE CATALOG lake", "USE spark_catalog",
    "SET CATALOG spark_catalog", "SHOW CATALOGS", "SHOW CURRENT NAMESPACE", "CONFIG spark.sql.catalog.lake.uri", "SHOW CONF",
    "SELECT current_setting('spark.sql.catalog.lake.uri')", "SELECT reflect('java.lang.System', 'getenv')", "SELECT java_method('java.lang.System', 'getProperties')",
    "SELECT current_catalog()", "SELECT input_file_name()", "SELECT version()",
)  # fmt: skip
"""Settings, catalogs and the token: neither asked for nor set."""

DYNAMIC = (
    "EXECUTE IMMEDIATE 'SELECT * FROM {hidden}'",
    "EXECUTE IMMEDIATE 'SELECT * FROM {mine}'",
    "EXECUTE IMMEDIATE concat('SELECT * FROM ', '{hidden}')",
    "SELECT * FROM IDENTIFIER('{hidden}')",
    "SELECT * FROM IDENTIFIER('{mine}')",
    "SELECT * FROM IDENTIFIER(concat('ra', 'w.payments'))",
    "SELECT IDENTIFIER('reflect')('java.lang.System', 'getenv')",
    "INSERT INTO IDENTIFIER('{hidden}') VALUES (1, 'x')",
    "DROP TABLE IDENTIFIER('{hidden}')",
    "BEGIN SELECT * FROM {hidden}; END",
    "BEGIN DECLARE x STRING; SET VAR x = (SELECT max(secret) FROM {hidden}); SELECT x; END",
    "CREATE FUNCTION peek() RETURNS STRING RETURN (SELECT max(secret) FROM {hidden})",
    "CREATE FUNCTION lake.service.peek() RETURNS STRING RETURN (SELECT max(secret) FROM {hidden})",
    "CREATE TEMPORARY FUNCTION peek() RETURNS STRING RETURN (SELECT max(secret) FROM {hidden})",
    "CREATE FUNCTION peek() RETURNS TABLE (x STRING) RETURN SELECT secret FROM {hidden}",
    "CREATE OR REPLACE FUNCTION peek AS 'java.lang.Runtime'",
    "CREATE TEMPORARY VIEW peek AS SELECT * FROM {hidden}",
    "CREATE TEMPORARY VIEW peek AS SELECT * FROM {mine}",
    "CREATE GLOBAL TEMPORARY VIEW peek AS SELECT * FROM {mine}",
    "CREATE OR REPLACE TEMP VIEW revenue AS SELECT * FROM {hidden}",
    "CREATE VIEW service.peek AS SELECT * FROM {hidden}",
    "CREATE MATERIALIZED VIEW service.peek AS SELECT * FROM {hidden}",
    "CREATE TEMPORARY VIEW peek USING parquet OPTIONS (path '{root}')",
    "SELECT * FROM global_temp.peek",
    "CACHE TABLE {mine}",
    "CACHE TABLE {hidden}",
    "CACHE TABLE peek AS SELECT * FROM {hidden}",
    "CACHE LAZY TABLE peek AS SELECT * FROM {mine}",
    "UNCACHE TABLE {mine}",
    "REFRESH TABLE {mine}",
    "ANALYZE TABLE {hidden} COMPUTE STATISTICS",
)

ABOUT = (
    "SHOW CREATE TABLE {mine} AS SERDE", "SHOW TBLPROPERTIES {mine} (location)", "SHOW TBLPROPERTIES {mine} ('write.data.path')",
    "DESCRIBE TABLE EXTENDED {mine} AS JSON", "SHOW TABLE EXTENDED IN service LIKE '*'",
    "DESCRIBE NAMESPACE EXTENDED service", "DESCRIBE DATABASE service", "SHOW PARTITIONS {mine}", "SHOW FUNCTIONS", "SHOW PROCEDURES IN lake.system",
    *(f"SELECT * FROM {{mine}}.{kind}" for kind in (
        "files", "data_files", "delete_files", "manifests", "entries", "all_files", "all_data_files", "all_manifests", "all_entries",
        "metadata_log_entries", "position_deletes", "all_delete_files",
    )),
    *(f"EXPLAIN {mode} SELECT * FROM {{mine}}.files" for mode in ("", "EXTENDED", "FORMATTED", "COST", "CODEGEN")),
    "SELECT _file FROM {mine}", "SELECT _metadata FROM {mine}", "SELECT _metadata.file_path FROM {mine}", "SELECT `_FILE` FROM {mine}",
    "SELECT t._file FROM {mine} t", "SELECT * FROM {mine} WHERE _file LIKE '/%'", "SELECT * FROM {mine} ORDER BY _file",
    "SELECT count(*) FROM {mine} GROUP BY _metadata.file_name", "SELECT max(_file) OVER () FROM {mine}", "SELECT {mine}._file FROM {mine}",
)  # fmt: skip
"""What tells places of files, settings and names."""

HIDDEN = (
    "SELECT * FROM {hidden}",
    "SELECT count(*) FROM {hidden}",
    "TABLE {hidden}",
    "FROM {hidden} SELECT *",
    "FROM {hidden} |> LIMIT 1",
    "SELECT * FROM lake.{hidden}",
    "SELECT * FROM {hidden} VERSION AS OF 1",
    "SELECT * FROM {hidden} TIMESTAMP AS OF '2020-01-01'",
    "SELECT * FROM {hidden}.snapshots",
    "SELECT * FROM {hidden}.history",
    "SELECT * FROM {hidden}.refs",
    "SELECT * FROM {hidden}.partitions",
    "SELECT * FROM {hidden}.branch_main",
    "SELECT (SELECT max(secret) FROM {hidden})",
    "SELECT * FROM {mine} WHERE id IN (SELECT id FROM {hidden})",
    "SELECT * FROM {mine} WHERE EXISTS (SELECT 1 FROM {hidden} WHERE secret LIKE 'c%')",
    "SELECT * FROM {mine}, LATERAL (SELECT * FROM {hidden})",
    "SELECT * FROM {mine} NATURAL JOIN {hidden}",
    "SELECT id FROM {mine} UNION SELECT id FROM {hidden}",
    "SELECT id FROM {mine} EXCEPT SELECT id FROM {hidden}",
    "SELECT * FROM (VALUES ((SELECT max(secret) FROM {hidden})))",
    "SELECT * FROM {mine} ORDER BY (SELECT max(secret) FROM {hidden})",
    "SELECT id FROM {mine} GROUP BY id HAVING max(id) < (SELECT count(*) FROM {hidden})",
    "SELECT sum((SELECT count(*) FROM {hidden})) OVER () FROM {mine}",
    "SELECT * FROM {mine} LIMIT (SELECT count(*) FROM {hidden})",
    "SELECT * FROM {mine} TABLESAMPLE (50 PERCENT) JOIN {hidden} USING (id)",
    "SELECT /*+ BROADCAST({hidden}) */ * FROM {hidden}",
    "WITH x AS (SELECT * FROM {hidden}) SELECT 1",
    "WITH x AS (WITH y AS (SELECT * FROM {hidden}) SELECT 1 AS one) SELECT * FROM x",
    "WITH vault AS (SELECT 1 AS id) SELECT * FROM {hidden}",
    "WITH service AS (SELECT 1 AS vault) SELECT * FROM {hidden}",
    "WITH revenue AS (SELECT * FROM {hidden}) SELECT * FROM revenue",
    "WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT n + (SELECT count(*) FROM {hidden}) FROM x WHERE n < 3) SELECT * FROM x",
    "DESCRIBE {hidden}",
    "DESCRIBE {hidden} id",
    "DESCRIBE QUERY SELECT * FROM {hidden}",
    "SHOW COLUMNS IN {hidden}",
    "EXPLAIN SELECT * FROM {hidden}",
    "EXPLAIN EXTENDED SELECT * FROM {hidden}",
    "EXPLAIN FORMATTED SELECT * FROM {hidden}",
    "EXPLAIN COST SELECT * FROM {hidden}",
    "EXPLAIN CODEGEN SELECT * FROM {hidden}",
    "EXPLAIN EXPLAIN SELECT * FROM {hidden}",
    "EXPLAIN INSERT INTO {hidden} VALUES (1, 'x')",
    "INSERT INTO {mine} SELECT id, 1 FROM {hidden}",
    "INSERT INTO {hidden} VALUES (2, 'x')",
    "INSERT OVERWRITE {hidden} VALUES (2, 'x')",
    "UPDATE {hidden} SET secret = 'x'",
    "DELETE FROM {hidden}",
    "TRUNCATE TABLE {hidden}",
    "MERGE INTO {hidden} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "MERGE INTO {mine} t USING {hidden} s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "DROP TABLE {hidden}",
    "ALTER TABLE {hidden} ADD COLUMN x INT",
    "ALTER TABLE {hidden} CREATE BRANCH b",
    "ALTER TABLE {hidden} ADD PARTITION FIELD id",
    "REPLACE TABLE {hidden} AS SELECT 1 AS id",
    "CALL lake.system.rollback_to_snapshot('{hidden}', 1)",
    "CALL lake.system.set_current_snapshot('{hidden}', 1)",
)
"""Every way to name a table; none gives more than that there is no such table."""

WRITES = (
    "INSERT INTO {mine} SELECT * FROM {mine}",
    "INSERT OVERWRITE {mine} SELECT * FROM {mine}",
    "UPDATE {mine} SET id = 9",
    "DELETE FROM {mine}",
    "DELETE FROM {mine} WHERE id = 1",
    "TRUNCATE TABLE {mine}",
    "MERGE INTO {mine} t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "ALTER TABLE {mine} ADD COLUMN x INT",
    "ALTER TABLE {mine} DROP COLUMN id",
    "ALTER TABLE {mine} CREATE BRANCH b",
    "ALTER TABLE {mine} CREATE TAG t",
    "ALTER TABLE {mine} SET TBLPROPERTIES ('custom.x' = '1')",
    "COMMENT ON TABLE {mine} IS 'x'",
    "DROP TABLE {mine}",
    "CREATE OR REPLACE TABLE {mine} AS SELECT 1 AS id",
    "REPLACE TABLE {mine} AS SELECT 1 AS id",
    "CREATE TABLE service.mine AS SELECT 1 AS id",
    "CREATE TABLE service.mine (id INT)",
    "CREATE NAMESPACE mine",
    "DROP NAMESPACE service",
    "DROP NAMESPACE service CASCADE",
    "CALL lake.system.rollback_to_snapshot('{mine}', {snapshot})",
)
"""Writes of a Viewer."""

TEXTS = (
    "SELECT 1; SELECT * FROM {hidden}", "SELECT 1; DROP TABLE {mine}", "; SET", "SELECT 1;; SET", "SELECT 1 -- \nFROM {hidden}", "SELECT * FROM/**/{hidden}",
    "/*! SELECT 1 */ SET", "/*+ x */ SET", "-- x\n/* y */ SET", "/* SELECT * FROM {mine} */ SELECT * FROM {hidden}", "/*", "/* SELECT 1", "SELECT 1 /*", "SELECT /* /* */ * FROM {hidden}",
    "SELECT 1 /* \u2028 */ ; SET", "\ufeffSET", "\u00a0SET", "SELECT 'x\nFROM {hidden}", 'SELECT "', "SELECT `", "SELECT $$x$$", "\\", "SELECT \\; SET", "'", "((((", "))))",
)  # fmt: skip
"""Several statements, comments that hide, and texts that end in the middle."""

NAMES = (
    "SELECT * FROM SERVICE.VAULT", "SELECT * FROM Service.Vault", "SELECT * FROM `service`.`vault`", "SELECT * FROM `service.vault`", "SELECT * FROM lake.`service.vault`",
    "SELECT * FROM `lake.service.vault`", "SELECT * FROM LAKE.service.vault", "SELECT * FROM lake.lake.service.vault", "SELECT * FROM service.`vault `", "SELECT * FROM service.` vault`",
    "SELECT * FROM service.`vault\\0`", "SELECT * FROM service.`..`", "SELECT * FROM service.revenue.`..`.vault", "SELECT * FROM service.`../service/tables/vault`",
    "SELECT * FROM service.`revenue/../vault`", "SELECT * FROM service.`revenue%2f..%2fvault`", "SELECT * FROM `service%1fvault`", "SELECT * FROM `service\u001fvault`.x",
    "SELECT * FROM service.`%2e%2e`", "SELECT * FROM service.`va%75lt`", "SELECT * FROM service.v\u0430ult", "SELECT * FROM service.`v\u0430ult`", "SELECT * FROM \uff53ervice.vault",
    "SELECT * FROM service.`vaul\u0074\u0301`", "SELECT * FROM service.`\u202evault`", "SELECT * FROM service.`vault\u200b`", "SELECT * FROM `\u017fervice`.vault", "SELECT * FROM `servi\u0421e`.vault",
    "SELECT * FROM service.`vault``; --`", "SELECT * FROM service.`vault' OR '1'='1`", "SELECT * FROM service.`?x=1`", "SELECT * FROM service.`vault#`", "SELECT * FROM service.`vault?snapshots=all`",
    "SELECT * FROM service.`tables/vault`", "SELECT * FROM `service/tables/vault?`.x", "SELECT * FROM spark_catalog.service.vault", "SELECT * FROM system.vault", "SELECT * FROM global_temp.vault",
    "SELECT * FROM session.vault", "SELECT * FROM default.vault", "SELECT * FROM information_schema.tables", "SELECT * FROM service", "SELECT * FROM vault", "SELECT * FROM ``.vault",
)  # fmt: skip
"""Names in other spellings, none of which is another way in."""


def filled(statements: tuple[str, ...], *, mine: str, hidden: str, root: str = "/nowhere") -> list[str]:
    """Statements about these tables."""
    return [one.replace("{mine}", mine).replace("{hidden}", hidden).replace("{root}", root) for one in statements]
