"""Stock PyIceberg on a bucket, with a member's token and no key: every request is signed by the catalog, or fails."""

import pytest
from pyiceberg.exceptions import ForbiddenError, NoSuchTableError, SignError

from tests.lakehouse.catalog.support import MORE, ROWS, Lake
from tests.support.s3 import BUCKET


def test_a_table_is_created_written_changed_and_read(on_bucket: Lake) -> None:
    tess = on_bucket.engine("Tess")
    table = tess.create_table("raw.events", ROWS.schema)
    assert table.location().startswith(f"s3://{BUCKET}/test-")
    table.append(ROWS)
    table.append(MORE)
    table.delete("id = 2")
    found = tess.load_table("raw.events").scan().to_arrow().sort_by("id")
    assert found["id"].to_pylist() == [1, 3, 4, 5]


def test_two_tables_are_read_side_by_side(on_bucket: Lake) -> None:
    """One s3fs would sign for both at the signer of one; each table has its own."""
    tess = on_bucket.engine("Tess")
    tables = [tess.create_table(name, ROWS.schema) for name in ("raw.one", "trusted.two")]
    for rows in (ROWS, MORE):
        for table in tables:
            table.append(rows)
    assert [table.scan().to_arrow().num_rows for table in tables] == [5, 5]


def test_each_member_sees_and_does_what_they_may(on_bucket: Lake) -> None:
    on_bucket.engine("Tess").create_table("trusted.facts", ROWS.schema).append(ROWS)
    viewer = on_bucket.engine("Ana").load_table("trusted.facts")
    assert viewer.scan().to_arrow().num_rows == 3
    with pytest.raises(SignError, match="403"):
        viewer.append(MORE)
    with pytest.raises(NoSuchTableError):
        on_bucket.engine("Tom").load_table("trusted.facts")
    with pytest.raises(NoSuchTableError):
        on_bucket.engine("Bea").load_table("trusted.facts")
    assert on_bucket.engine("Tess").load_table("trusted.facts").scan().to_arrow().num_rows == 3


def test_an_editor_writes_what_others_read(on_bucket: Lake) -> None:
    on_bucket.engine("Tess").create_table("raw.shared", ROWS.schema)
    on_bucket.engine("Tom").load_table("raw.shared").append(ROWS)
    assert on_bucket.engine("Tess").load_table("raw.shared").scan().to_arrow().num_rows == 3


def test_a_token_that_only_reads(on_bucket: Lake) -> None:
    on_bucket.engine("Tess").create_table("raw.kept", ROWS.schema).append(ROWS)
    table = on_bucket.engine("Tess", read_only=True).load_table("raw.kept")
    assert table.scan().to_arrow().num_rows == 3
    with pytest.raises((SignError, ForbiddenError)):
        table.append(MORE)


def test_a_table_that_was_loaded_is_of_no_use_after_the_right_is_gone(on_bucket: Lake) -> None:
    on_bucket.engine("Tess").create_table("trusted.facts", ROWS.schema).append(ROWS)
    table = on_bucket.engine("Ana").load_table("trusted.facts")
    assert table.scan().to_arrow().num_rows == 3
    done = on_bucket.api("Tess").change(change="revoke", to="group:analysts", resource="layer:trusted", level="viewer")
    assert done.status_code == 200, done.text
    with pytest.raises(SignError, match="404"):
        table.scan().to_arrow()
