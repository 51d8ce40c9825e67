"""Reads how Spark writes the shape of JSON values, `OBJECT<a: BIGINT, b: ARRAY<STRING>>`, as columns.

Values that differ become text. Numbers with a point become double; whole numbers beyond 19 digits stay exact.
"""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_WORD = re.compile(r"[A-Z_]+(?:\((\d+), ?(\d+)\))?")
_NAME = re.compile(r"`((?:[^`]|``)*)`|([^:`]+?)(?=: )")


def columns_of(shape: str) -> "StructType":
    """The fields of an object; none for what is no object."""
    from pyspark.sql import types as t

    data_type = _Reader(shape).kind() if shape else None
    return data_type if isinstance(data_type, t.StructType) else t.StructType([])


class _Reader:
    """Reads from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def kind(self) -> "DataType":
        from pyspark.sql import types as t

        if self._took("OBJECT<"):
            return self._fields()
        if self._took("ARRAY<"):
            inner = self.kind()
            self._took(">")
            return t.ArrayType(inner)
        match = _WORD.match(self._text, self._at)
        if match is None:
            raise ValueError(f"this shape is not understood: {self._text[self._at : self._at + 40]}")
        self._at = match.end()
        word = match[0].partition("(")[0]
        if word == "DECIMAL":
            return t.DecimalType(38, 0) if match[2] == "0" else t.DoubleType()
        kinds = {"BIGINT": t.LongType(), "DOUBLE": t.DoubleType(), "FLOAT": t.DoubleType(), "BOOLEAN": t.BooleanType()}
        return kinds.get(word, t.StringType())

    def _fields(self) -> "DataType":
        from pyspark.sql import types as t

        fields = []
        while not self._took(">"):
            match = _NAME.match(self._text, self._at)
            if match is None:
                raise ValueError(f"this shape is not understood: {self._text[self._at : self._at + 40]}")
            self._at = match.end()
            name = match[1].replace("``", "`") if match[1] is not None else match[2]
            self._took(": ")
            fields.append(t.StructField(name, self.kind()))
            self._took(", ")
        return t.StructType(fields) if fields else t.StringType()

    def _took(self, text: str) -> bool:
        if self._text.startswith(text, self._at):
            self._at += len(text)
            return True
        return False
