"""Expectations: checks of an output before a run publishes it."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from headgate.contracts.pipelines.fields import Columns, Duration, SqlBody, TableRef
from headgate.kit.request_models import Input

Scalar = str | int | float | bool


class Expectation(Input):
    """A check of an output table; `severity` determines whether a failure warns or stops the run before it publishes.

    not_null, unique, accepted, range, pattern and reference check `columns`; rows and freshness check the table; sql is
    a custom query whose rows are the failures.
    """

    table: TableRef
    check: Literal["not_null", "unique", "accepted", "range", "pattern", "rows", "freshness", "reference", "sql"]
    columns: Columns = ()
    values: Annotated[tuple[Scalar, ...], Field(max_length=1000, description="accepted: the allowed values")] = ()
    least: Annotated[Scalar | None, Field(description="range, rows: the minimum")] = None
    most: Annotated[Scalar | None, Field(description="range, rows: the maximum")] = None
    pattern: Annotated[str, Field(max_length=1000, description="pattern: a regular expression for the whole value")] = (
        ""
    )
    within: Annotated[Duration | None, Field(description="freshness: the maximum age of the newest row")] = None
    other: Annotated[TableRef | Literal[""], Field(description="reference: the table that contains the values")] = ""
    other_columns: Columns = ()
    sql: Annotated[SqlBody | Literal[""], Field(description="sql: a query that returns the failing rows")] = ""
    severity: Literal["warn", "stop"] = "stop"
    tolerance: Annotated[float, Field(ge=0, le=1, description="The share of rows that may fail")] = 0.0

    @model_validator(mode="after")
    def _whole(self) -> "Expectation":
        wants = _WANTS[self.check]
        missing = [name for name in wants if getattr(self, name) in ((), None, "")]
        if missing:
            raise ValueError(f"{self.check} requires {' and '.join(missing)}")
        if self.check in {"range", "rows"} and self.least is None and self.most is None:
            raise ValueError(f"{self.check} requires least or most")
        if self.check == "rows" and any(isinstance(v, str | bool | float) for v in (self.least, self.most)):
            raise ValueError("rows: least and most must be integers")
        if self.check in _ONE_COLUMN and len(self.columns) != 1:
            raise ValueError(f"{self.check} requires exactly one column; add a check for each column")
        if self.check == "reference" and len(self.columns) != len(self.other_columns):
            raise ValueError("reference requires as many other_columns as columns")
        return self


_WANTS: dict[str, tuple[str, ...]] = {
    "not_null": ("columns",),
    "unique": ("columns",),
    "accepted": ("columns", "values"),
    "range": ("columns",),
    "pattern": ("columns", "pattern"),
    "rows": (),
    "freshness": ("columns", "within"),
    "reference": ("columns", "other", "other_columns"),
    "sql": ("sql",),
}
_ONE_COLUMN = {"accepted", "range", "pattern", "freshness"}
