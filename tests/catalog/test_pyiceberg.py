"""Stock PyIceberg with a member's token: what it can do, seeing and doing exactly what the member may."""

import pyarrow as pa
from pyiceberg.types import LongType

from tests.catalog.support import MORE, ROWS, Lake


def test_a_table_is_created_written_changed_and_read(served: Lake) -> None:
    tess = served.engine("Tess")
    table = tess.create_table("raw.events", ROWS.schema)
    assert table.location().startswith(f"file://{served.warehouse}/tables/tbl_")
    table.append(ROWS)
    table.append(MORE)
    assert tess.load_table("raw.events").scan().to_arrow().sort_by("id")["id"].to_pylist() == [1, 2, 3, 4, 5]
    first = table.history()[0].snapshot_id
    table.delete("id = 2")
    assert table.scan().to_arrow().num_rows == 4
    table.overwrite(ROWS)
    with table.update_schema() as update:
        update.add_column("price", LongType())
    table.append(pa.table({"id": [9], "name": ["z"], "price": [7]}))
    again = tess.load_table("RAW.Events")
    assert again.scan().to_arrow().num_rows == 4
    assert again.scan(snapshot_id=first).to_arrow().num_rows == 3
    with again.transaction() as change:
        change.set_properties({"comment": "what happened", "write.parquet.compression-codec": "zstd"})
    assert tess.load_table("raw.events").properties["comment"] == "what happened"
