"""JSON texts, one per row: infer their columns, and parse their values."""

from typing import TYPE_CHECKING

from headgate.execution.sources.detection import in_utf_8, read_start
from headgate.execution.sources.readers import FAULT, FILE, RECORD, SPOILT, File, ReadOptions
from headgate.execution.sources.variants import columns_of
from headgate.execution.spark.step_session import Step
from headgate.execution.steps.context import StepFailed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MAX_COLUMNS = 2000
NOT_JSON = "the record is not JSON"
NO_OBJECT = "the record is JSON, but not an object"
WRONG_BYTES = f"the record contains {SPOILT}"
_TEXT = "__headgate_text"
_LONGEST = 2**31 - 1
_SHAPE = "__headgate_shape"
_VALUES = "__headgate_values"


def parts(asked: ReadOptions, step: Step, files: list[File]) -> "list[DataFrame]":
    """The rows of files of JSON: a value a line, or each file one value or a list of them."""
    options = asked.stream.files
    for file in files:
        read_start(file, options.encoding)
    copies = in_utf_8(files, options.encoding, asked.folder)
    return rows(step, _records(step, [file.path for file in copies], whole=options.multiline))


def _records(step: Step, paths: list[str], *, whole: bool) -> "DataFrame":
    from pyspark.sql import functions as f

    frame = step.spark.read.text(paths, wholetext=whole)
    value = f.col("value")
    text = f.when(f.startswith(value, f.lit("\ufeff")), f.substring(value, 2, _LONGEST)).otherwise(value)
    frame = frame.select(text.alias(_TEXT), f.col("_metadata.file_name").alias(FILE))
    if whole:
        listed = f.from_json(_TEXT, "array<string>")
        is_list = f.ltrim(f.col(_TEXT)).startswith("[") & listed.isNotNull()
        each = f.when(is_list, listed).otherwise(f.array(f.col(_TEXT)))
        frame = frame.select(f.explode(each).alias(_TEXT), FILE)
    return frame.filter(f.trim(f.col(_TEXT)) != "")


def rows(step: Step, records: "DataFrame") -> "list[DataFrame]":
    """The rows of texts of JSON, and those that are none, with the reason."""
    from pyspark.sql import functions as f

    # The last of two fields of a name counts, as most readers of JSON have it.
    step.spark.conf.set("spark.sql.variant.allowDuplicateKeys", "true")
    value = f.try_parse_json(f.when(f.is_valid_utf8(_TEXT), f.col(_TEXT)))
    is_object = f.startswith(f.schema_of_variant(value), f.lit("OBJECT<"))
    step.log("Inferring the fields of the records")
    told = records.select(f.schema_of_variant_agg(f.when(is_object, value)).alias(_SHAPE)).collect()[0][_SHAPE]
    columns = columns_of(told or "")
    if len(columns.fields) > MAX_COLUMNS:
        told = f"The records have {len(columns.fields)} distinct fields, but a table has at most {MAX_COLUMNS} columns"
        raise StepFailed("TOO_MANY_COLUMNS", f"{told}. Check whether some field names are really values")
    fault = (
        f.when(~f.is_valid_utf8(_TEXT), f.lit(WRONG_BYTES))
        .when(value.isNull(), f.lit(NOT_JSON))
        .when(~f.coalesce(is_object, f.lit(col=False)), f.lit(NO_OBJECT))
    )
    read = records.withColumn(FAULT, fault).withColumn(RECORD, _shown(fault))
    values: list[Column] = []
    if columns.fields:
        read = read.withColumn(_VALUES, f.from_json(f.when(f.col(FAULT).isNull(), f.col(_TEXT)), columns))
        values = [f.col(_VALUES).getField(field.name).alias(field.name) for field in columns.fields]
    return [read.select(*values, FAULT, RECORD, *([FILE] if FILE in read.columns else []))]


def _shown(fault: "Column") -> "Column":
    from pyspark.sql import functions as f

    return f.when(fault.isNotNull(), f.make_valid_utf8(f.col(_TEXT))).otherwise(f.col(_TEXT))
