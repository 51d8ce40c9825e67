"""What statements say of themselves and of tables: the member, time zones, layers, definitions, new names, hierarchies."""

from collections.abc import Iterator

import pytest
from sqlalchemy import update

from headgate.platform.directory.models import member_table
from tests.lakehouse.sql.conftest import Bench
from tests.lakehouse.sql.support import STATEMENTS

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

STAFF, CREW = "service.staff", "raw.crew"
TREE = (
    "WITH RECURSIVE tree(id, path) AS (SELECT id, array(name) FROM {table} WHERE boss IS NULL UNION ALL "
    "SELECT s.id, array_append(tree.path, s.name) FROM tree JOIN {other} s ON s.boss = tree.id) "
    "SELECT * FROM tree ORDER BY id"
)
PATHS = [[1, ["Ada"]], [2, ["Ada", "Bo"]], [3, ["Ada", "Bo", "Cy"]]]


@pytest.fixture(scope="module")
def staff(bench: Bench) -> Iterator[Bench]:
    """A worker, and a table of people and their bosses that Bea may read and Ben does not see."""
    with bench.worker():
        properties = "TBLPROPERTIES ('custom.source' = 'hr')"
        columns = "id INT COMMENT 'the number', boss INT, name STRING"
        bench.rows("Tess", f"CREATE TABLE {STAFF} ({columns}) COMMENT 'people' {properties}")
        bench.rows("Tess", f"INSERT INTO {STAFF} VALUES (1, NULL, 'Ada'), (2, 1, 'Bo'), (3, 2, 'Cy')")
        bench.change("Tess", "grant", to="Bea", resource=f"table:{STAFF}", level="viewer")
        yield bench


def test_a_hierarchy_in_a_table_is_followed_and_its_reads_are_recorded(staff: Bench) -> None:
    found = staff.run("Bea", TREE.format(table=STAFF, other=STAFF))
    assert found["data"] == PATHS, found["error"]
    reads = staff.millrace.rows(f"SELECT table_id FROM statement_reads WHERE statement_id = '{found['id']}'")
    assert reads == [(staff.millrace.id("table", STAFF),)]
    staff.rows("Tess", f"CREATE TABLE raw.tree AS {TREE.format(table=STAFF, other=STAFF)}")
    assert staff.rows("Tess", "SELECT * FROM raw.tree ORDER BY id") == PATHS


def test_a_round_reads_no_more_than_its_member_may(staff: Bench) -> None:
    staff.rows("Tess", f"CREATE TABLE service.private AS SELECT * FROM {STAFF}")
    for table, other in (("service.private", STAFF), (STAFF, "service.private")):
        hidden = staff.run("Bea", TREE.format(table=table, other=other))["error"]
        missing = staff.run("Bea", TREE.format(table=table, other=other).replace("private", "missing"))["error"]
        assert hidden["code"] == missing["code"] == "TABLE_OR_VIEW_NOT_FOUND"
        assert hidden["message"] == missing["message"].replace("missing", "private")
    files = f"SELECT f.file_path FROM t JOIN {STAFF}.files f WHERE t.n = 'a'"
    refused = staff.run("Bea", f"WITH RECURSIVE t(n) AS (SELECT 'a' UNION ALL {files}) SELECT * FROM t")
    assert refused["error"]["code"] == "REFUSED"


def test_rounds_and_rows_are_limited(staff: Bench) -> None:
    endless = "WITH RECURSIVE t(n) AS (SELECT id FROM {0} UNION ALL SELECT n FROM t) SELECT count(*) FROM t"
    failed = staff.run("Bea", endless.format(STAFF))["error"]
    assert failed["code"] == "RECURSION_LEVEL_LIMIT_EXCEEDED"
    assert "MAX RECURSION LEVEL" in failed["message"]
    growing = "WITH RECURSIVE t(n) AS (SELECT id FROM {0} UNION ALL SELECT t.n FROM t JOIN range(2000)) SELECT count(*) FROM t"
    assert staff.run("Bea", growing.format(STAFF))["error"]["code"] == "RECURSION_ROW_LIMIT_EXCEEDED"


def test_current_user_is_the_member_by_mail_and_nothing_sets_it(staff: Bench) -> None:
    mails = {}
    for member in ("Bea", "Tess"):
        mail = f"{member.lower()}@millrace.example"
        change = update(member_table).where(member_table.c.name == member).values(email=mail)
        staff.millrace.database.write(lambda connection, change=change: connection.execute(change))
        names = "current_user(), session_user(), user(), current_user, session_user, user"
        assert staff.rows(member, f"SELECT {names}") == [[mail] * 6]
        mails[member] = mail
    assert mails["Bea"] != mails["Tess"]
    staff.rows("Tess", "CREATE TABLE raw.signed AS SELECT 1 AS id, current_user() AS who")
    staff.rows("Tess", "UPDATE raw.signed SET who = concat(session_user, '!') WHERE who = user()")
    assert staff.rows("Tess", "SELECT who FROM raw.signed") == [[f"{mails['Tess']}!"]]
    for sql in ("SET headgate.user = 'x'; SELECT user()", "SET headgate.user = 'x'", "SET ROLE x"):
        assert staff.run("Bea", sql)["state"] == "failed"


def test_a_time_zone_holds_for_the_statement_that_follows(staff: Bench) -> None:
    sql = "SELECT TIMESTAMP '2026-07-01 12:00:00' AS at, current_timezone() AS zone"
    assert staff.rows("Bea", sql) == [["2026-07-01T12:00:00.000000Z", "UTC"]]
    for zone, shown in (("Europe/Madrid", "+02:00"), ("-03:30", "-03:30"), ("UTC", "Z")):
        expected = [[f"2026-07-01T12:00:00.000000{shown}", zone]]
        assert staff.rows("Bea", f"-- there\nSET TIME ZONE '{zone}';\n{sql}") == expected
    bea = staff.millrace.as_("Bea")
    answer = bea.post(STATEMENTS, {"sql": f"SET TIME ZONE 'Atlantis'; {sql}"})
    assert answer.status_code == 422
    assert "there is no such time zone" in answer.json()["detail"]
    for alone in ("SET TIME ZONE 'UTC'", "SET TIME ZONE LOCAL; SELECT 1"):
        assert staff.run("Bea", alone)["state"] == "failed"


def test_a_layer_is_used_for_names_without_one(staff: Bench) -> None:
    assert staff.rows("Bea", "USE service; SELECT count(*) FROM staff") == [[3]]
    both = "use lake.service ; SET TIME ZONE 'UTC'; SELECT current_schema(), max(s.id) FROM staff s JOIN service.staff USING (id)"
    assert staff.rows("Bea", both) == [["service", 3]]
    assert staff.run("Bea", "SELECT count(*) FROM staff")["state"] == "failed"
    hidden, missing = (
        staff.run(member, f"USE {layer}; SELECT * FROM staff")["error"]
        for member, layer in (("Ben", "service"), ("Ben", "nowhere"))
    )
    assert hidden == missing
    assert "There is no table staff in a layer that the statement uses" in hidden["message"]
    refused = staff.run("Bea", "USE service")["error"]
    assert (refused["code"], "and then one statement" in refused["message"]) == ("REFUSED", True)
    staff.rows("Tess", "USE raw; CREATE TABLE used AS SELECT 1 AS id")
    assert staff.rows("Tess", "SELECT id FROM raw.used") == [[1]]
    wrong = staff.run("Bea", "USE service;\nSELECT * FRO staff")["error"]
    assert "(line 2, pos " in wrong["message"]


def test_a_saved_query_keeps_its_layer(staff: Bench) -> None:
    begun = staff.millrace.as_("Bea").post(
        "/api/sql/saved", {"name": "Used", "sql": "USE service; SELECT id FROM staff"}
    )
    found = staff.done("Bea", begun.json()["statement"])
    assert found["state"] == "succeeded", found["error"]
    shown = staff.millrace.as_("Bea").get(f"/api/sql/saved/{found['saved_query']}").json()
    assert (shown["reads"], shown["sql"]) == ([STAFF], "USE service; SELECT id FROM staff")


ABOUT = ("SHOW CREATE TABLE {0}", "DESCRIBE EXTENDED {0}", "DESCRIBE TABLE EXTENDED {0} id", "SHOW TBLPROPERTIES {0}")


def test_definitions_are_shown_without_places(staff: Bench) -> None:
    for statement in ABOUT:
        told = str(staff.rows("Bea", statement.format(STAFF)))
        for inside in ("location", "file:", "metadata", "snapshot-id", "/"):
            assert inside not in told.lower(), (statement, inside)
        hidden, missing = (staff.run("Ben", statement.format(one))["error"] for one in (STAFF, "service.stuff"))
        assert hidden["code"] == missing["code"] == "TABLE_OR_VIEW_NOT_FOUND"
        assert hidden["message"] == missing["message"].replace("stuff", "staff")
    ((made,),) = staff.rows("Bea", f"SHOW CREATE TABLE {STAFF}")
    assert "COMMENT 'people'" in made
    assert "'custom.source' = 'hr'" in made
    staff.rows("Tess", made.replace("lake.service.staff", "raw.copy"))
    assert ["custom.source", "hr"] in staff.rows("Tess", "SHOW TBLPROPERTIES raw.copy")
    refused = staff.run("Bea", f"SHOW TBLPROPERTIES {STAFF} ('location')")["error"]
    assert refused["code"] == "REFUSED"


def test_a_table_is_renamed_by_who_may_and_stays_the_same(staff: Bench) -> None:
    staff.rows("Tess", f"CREATE TABLE {CREW} AS SELECT 1 AS id")
    table = staff.millrace.id("table", CREW)
    for member, state in (("Tom", "FORBIDDEN"), ("Bea", "TABLE_OR_VIEW_NOT_FOUND")):
        assert staff.run(member, f"ALTER TABLE {CREW} RENAME TO raw.team")["error"]["code"] == state
    for number, (old, new, name) in enumerate(
        (
            (CREW, "raw.team", "raw.team"),
            ("raw.team", "lake.service.team", "service.team"),
            ("service.team", "people", "service.people"),
        )
    ):
        found = staff.run("Tess", f"ALTER TABLE {old} RENAME TO {new}")
        assert found["state"] == "succeeded", (number, found["error"])
        assert staff.millrace.id("table", name) == table
        assert staff.rows("Tess", f"SELECT id FROM {name}") == [[1]]
    taken = staff.run("Tess", f"ALTER TABLE service.people RENAME TO {STAFF}")["error"]
    assert taken["code"] == "TABLE_OR_VIEW_ALREADY_EXISTS"
