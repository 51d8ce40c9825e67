"""The streams of a source; each is loaded into its own table."""

import codecs
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from headgate.contracts.pipelines.fields import ColumnName, Columns, Duration, SqlName
from headgate.kit.patterns import TextPattern
from headgate.kit.request_models import Input

_ENCODING = TextPattern(r"^[A-Za-z0-9_-]{1,40}$", "must be the name of an encoding, such as UTF-8 or windows-1252")


def _encoding(name: str) -> str:
    try:
        encoders = codecs.lookup(name)
    except LookupError:
        encoders = None
    if encoders is None or not getattr(encoders, "_is_text_encoding", True):
        raise ValueError(f"unknown encoding {name!r}; write one such as UTF-8 or windows-1252")
    return name


class FileOptions(Input):
    """How files are read."""

    format: Literal["csv", "json", "parquet", "avro", "xml", "excel"] = "csv"
    header: bool = True
    delimiter: Annotated[str, Field(min_length=1, max_length=4)] = ","
    quote: Annotated[str, Field(max_length=1)] = '"'
    encoding: Annotated[str, _ENCODING, AfterValidator(_encoding)] = "UTF-8"
    multiline: Annotated[bool, Field(description="csv: values contain line breaks; json: a file is one value")] = False
    row_tag: Annotated[str, Field(max_length=100, description="xml: the element of a row")] = "row"
    sheet: Annotated[str, Field(max_length=100, description="excel: the sheet. Default: the first sheet")] = ""
    nulls: Annotated[tuple[str, ...], Field(max_length=20, description="csv, excel: texts that stand for NULL")] = ("",)


class Paging(Input):
    """Pagination of an API."""

    style: Literal["none", "page", "offset", "cursor", "link"] = "none"
    parameter: Annotated[str, Field(max_length=100, description="page, offset, cursor: the query parameter")] = "page"
    first: Annotated[int, Field(ge=0, description="page, offset: the first value")] = 1
    size: Annotated[int, Field(ge=1, le=10_000, description="rows per page")] = 100
    size_parameter: Annotated[str, Field(max_length=100)] = ""
    next: Annotated[
        str,
        Field(
            max_length=200,
            description=(
                "cursor, link: the path of the value in the response, as meta.next or data.-1.id. Default: the "
                "Link header"
            ),
        ),
    ] = ""

    @model_validator(mode="after")
    def _whole(self) -> "Paging":
        if self.style == "cursor" and not self.next:
            raise ValueError("paging by cursor requires next: the path of the cursor in the response, as meta.next")
        if self.style in {"page", "offset", "cursor"} and not self.parameter:
            raise ValueError(f"paging by {self.style} requires parameter: the query parameter to set")
        return self


class ApiOptions(Input):
    """Options for reading an API."""

    rows: Annotated[
        str,
        Field(
            max_length=200,
            description=(
                "the path of the rows in the response, as data.items; `.` if the response is one row. Default: "
                "the response is a list of rows"
            ),
        ),
    ] = ""
    parameters: Annotated[
        dict[Annotated[str, Field(max_length=100)], Annotated[str, Field(max_length=2000)]], Field(max_length=50)
    ] = Field(default_factory=dict)
    paging: Paging = Paging()
    cursor_parameter: Annotated[str, Field(max_length=100, description="the query parameter of the cursor")] = ""
    partition_parameter: Annotated[
        str, Field(max_length=100, description="the query parameter that is set to each of `partitions`")
    ] = ""
    partitions: Annotated[tuple[Annotated[str, Field(max_length=1000)], ...], Field(max_length=1000)] = ()

    @model_validator(mode="after")
    def _whole(self) -> "ApiOptions":
        if bool(self.partition_parameter) != bool(self.partitions):
            raise ValueError("partition_parameter and partitions require each other")
        if len(set(self.partitions)) < len(self.partitions):
            raise ValueError("partitions contains a value twice, which would read its rows twice")
        return self


class ReadInParts(Input):
    """Parallel reads of a database by column ranges."""

    column: ColumnName
    parts: Annotated[int, Field(ge=1, le=256)] = 4


class Stream(Input):
    """A stream of a source and its target table."""

    name: Annotated[
        str,
        Field(
            min_length=1,
            max_length=1000,
            description="database: schema.table; API: the path; files: a path with * and **; catalog: namespace.table",
            examples=["public.orders", "/v1/orders", "orders/*.csv"],
        ),
    ]
    table: SqlName
    of: Annotated[Literal["rows", "files"], Field(description="HTTP: rows of an API, or a file")] = "rows"
    enabled: bool = True
    read: Literal["full", "incremental"] = "full"
    write: Annotated[
        Literal["replace", "append", "merge"],
        Field(description="overwrite the table, append to it, or merge by keys"),
    ] = "replace"
    keys: Columns = ()
    cursor: Annotated[ColumnName | None, Field(description="incremental: the column whose values only increase")] = None
    look_back: Annotated[
        Duration | None, Field(description="incremental: how far before the last value to read again")
    ] = None
    files: FileOptions = FileOptions()
    api: ApiOptions = Field(default_factory=ApiOptions)
    in_parts: ReadInParts | None = None

    @model_validator(mode="after")
    def _whole(self) -> "Stream":
        if self.write == "merge" and not self.keys:
            raise ValueError(f"stream {self.name!r}: merge requires keys: the columns that identify a row")
        if self.read == "incremental":
            if self.write == "replace":
                raise ValueError(f"stream {self.name!r}: incremental loads require append or merge, not replace")
            if self.look_back and self.write != "merge":
                raise ValueError(f"stream {self.name!r}: look_back reads rows again, so it requires write merge")
        return self
