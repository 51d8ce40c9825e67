"""dlt, which reads a table of PostgreSQL into Parquet files; for landing.py."""

import json
import os
import shutil
import sys
import time
from pathlib import Path


def main() -> None:
    """Read and write once for each line."""
    import dlt
    import pyarrow.dataset as ds
    from dlt.sources.sql_database import sql_table

    folder = Path(os.environ["PEER_FOLDER"])
    url = os.environ["PEER_URL"].replace("postgresql://", "postgresql+psycopg://", 1)
    print(json.dumps("ready"), flush=True)
    for _ in sys.stdin:
        shutil.rmtree(folder, ignore_errors=True)
        started = time.perf_counter()
        pipeline = dlt.pipeline(
            "landing",
            destination=dlt.destinations.filesystem(bucket_url=(folder / "out").as_uri()),
            dataset_name="raw",
            pipelines_dir=str(folder / "pipelines"),
        )
        source = sql_table(credentials=url, table="orders", schema="public", backend="pyarrow", chunk_size=100_000)
        pipeline.run(source, loader_file_format="parquet", write_disposition="replace")
        spent = time.perf_counter() - started
        rows = ds.dataset(sorted((folder / "out" / "raw" / "orders").rglob("*.parquet"))).count_rows()
        print(json.dumps({"seconds": spent, "rows": rows}), flush=True)


if __name__ == "__main__":
    main()
