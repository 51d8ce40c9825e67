"""Rows of a REST API, read by a data source inside Spark; or the file that the worker got from an address.

Asking an API twice may give other rows, and costs calls. So its rows are first written down, as lines of JSON in the
run's own folder, and then read as files of JSON are.
"""

from dataclasses import replace
from pathlib import Path

from headgate.contracts.pipelines.streams import FileOptions
from headgate.execution.sources import files
from headgate.execution.sources.api_requests import explain_error, request_options
from headgate.execution.sources.readers import File, Read, ReadOptions
from headgate.execution.sources.rest.source import register
from headgate.execution.spark.step_session import Step


def read(asked: ReadOptions, step: Step) -> Read | None:
    """The rows; none if the API returned none and its columns are unknown."""
    if asked.stream.of == "files":
        return files.read(asked, step)
    step.explains(explain_error)
    step.log(f"Requesting {asked.stream.name.partition('?')[0]}")
    folder = Path(asked.folder, "api")
    source = step.spark.read.format(register(step.spark, request_options(asked, step.proxy))).load()
    source.write.mode("overwrite").text(str(folder))
    written = [path for path in sorted(folder.glob("part-*")) if path.stat().st_size]
    if not written and asked.known is not None:
        # That there are no rows is an answer too: what replaces a table's rows then leaves none.
        return Read(step.spark.createDataFrame([], asked.known), again=True, bytes=0)
    lines = replace(
        asked,
        stream=asked.stream.model_copy(update={"files": FileOptions(format="json")}),
        files=tuple(File(str(path), asked.stream.name.partition("?")[0], path.stat().st_size) for path in written),
    )
    return files.read(lines, step)
