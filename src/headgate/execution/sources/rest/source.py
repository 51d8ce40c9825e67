"""The Spark data source: an API's rows as JSON strings.

The configuration is part of the class instead of an option, so that no displayed, logged or stored plan contains a
secret.
"""

from collections.abc import Iterator
from typing import Any

from headgate.execution.sources.rest.http_calls import Caller
from headgate.execution.sources.rest.paging import pages
from headgate.execution.sources.rest.requests import RequestOptions
from headgate.execution.sources.rest.responses import as_text

NAME = "headgate_api"
COLUMN = "row"
_BATCH = 10_000


def register(spark: Any, asked: RequestOptions) -> str:
    """Register the API as a data source in a Spark session; returns the format name. Its rows have one string column,
    COLUMN.
    """
    from pyspark import cloudpickle

    import headgate.execution.sources.rest as package  # noqa: PLC0415 - itself, to be sent
    from headgate.contracts import api_paths  # noqa: PLC0415

    for module in (package, api_paths):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    spark.dataSource.register(_source(asked))
    return NAME


def shares(asked: RequestOptions) -> list[tuple[str | None, ...]]:
    """The partitions that each task reads one after the other."""
    values: tuple[str | None, ...] = asked.partitions if asked.partition_parameter else (None,)
    tasks = max(1, min(len(values), asked.tasks))
    return [values[number::tasks] for number in range(tasks)]


def texts(asked: RequestOptions, share: tuple[str | None, ...]) -> Iterator[list[str]]:
    """The rows of some partitions, page by page."""
    caller = Caller(asked, len(shares(asked)))
    try:
        for partition in share:
            for page in pages(caller, asked, partition):
                yield [as_text(row) for row in page]
    finally:
        caller.close()


def _source(asked: RequestOptions) -> type:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    class Reader(DataSourceReader):
        """Reads each share in a task."""

        def partitions(self) -> list[InputPartition]:
            return [InputPartition(share) for share in shares(asked)]

        def read(self, partition: InputPartition) -> Iterator[Any]:
            for page in texts(asked, partition.value):
                for start in range(0, len(page), _BATCH):
                    column = pa.array(page[start : start + _BATCH], pa.string())
                    yield pa.RecordBatch.from_arrays([column], names=[COLUMN])

    class Api(DataSource):
        """An API."""

        @classmethod
        def name(cls) -> str:
            return NAME

        def schema(self) -> str:
            return f"{COLUMN} string"

        def reader(self, schema: Any) -> DataSourceReader:
            return Reader()

    return Api
