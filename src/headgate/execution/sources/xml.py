"""Files of XML: an element of a name is a row, its children and attributes are columns."""

import re
from typing import TYPE_CHECKING
from xml.parsers import expat

from headgate.execution.sources.detection import open_file, unreadable
from headgate.execution.sources.readers import FAULT, FILE, RECORD, File, ReadOptions
from headgate.execution.spark.step_session import Step
from headgate.execution.steps.context import StepFailed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TAG = re.compile(r"[^\W\d][\w.:-]*")
_PIECE = 1 << 20
NOT_XML = "the element cannot be read as a row"


def parts(asked: ReadOptions, step: Step, files: list[File]) -> "list[DataFrame]":
    """The rows of XML files."""
    from pyspark.sql import functions as f
    from pyspark.sql import types as t

    tag = asked.stream.files.row_tag
    if not _TAG.fullmatch(tag):
        raise StepFailed("NO_SUCH_TAG", f"{tag!r} is not a valid element name; set row_tag to the element of a row")
    for file in files:
        _checked(file)
    reader = (
        step.spark.read.format("xml")
        .option("rowTag", tag)
        .option("inferSchema", "false")
        .option("mode", "PERMISSIVE")
        .option("columnNameOfCorruptRecord", RECORD)
        .option("encoding", asked.stream.files.encoding)
    )
    paths = [file.path for file in files]
    fields = [field for field in reader.load(paths).schema.fields if field.name != RECORD]
    if not fields:
        step.log(f"No file has an element <{tag}>", "warning")
        return []
    rows = reader.schema(t.StructType([*fields, t.StructField(RECORD, t.StringType())])).load(paths)
    fault = f.when(f.col(RECORD).isNotNull(), f.lit(NOT_XML))
    own = [f.col("`" + field.name.replace("`", "``") + "`") for field in fields]
    return [rows.select(*own, fault.alias(FAULT), f.col(RECORD), f.col("_metadata.file_name").alias(FILE))]


def _checked(file: File) -> None:
    """See that a file is XML to its end, and defines nothing itself."""
    parser = expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise StepFailed("XML_DOCTYPE", f"{file.name} has a DOCTYPE, which is not supported; remove it")

    parser.StartDoctypeDeclHandler = refuse
    try:
        with open_file(file) as source:
            while piece := source.read(_PIECE):
                parser.Parse(piece, False)  # noqa: FBT003 - it takes no names
        parser.Parse(b"", True)  # noqa: FBT003 - it takes no names
    except expat.ExpatError as error:
        raise unreadable(file, f"it is not valid XML: {error}") from None
    except (OSError, ValueError, LookupError) as error:
        raise unreadable(file, error) from None
