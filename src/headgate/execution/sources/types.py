"""Types: which ones a table's columns have and can grow to, what texts hold, and whether a value fits.

Spark's own casts turn `2026` into a date, 1.5 into 1 and what does not fit into nothing. Here a value fits a column if
it can be written there and read back as it was; otherwise its row is rejected.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_WHOLE = r"^-?(0|[1-9][0-9]{0,18})$"
_NUMBER = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$"
_PLAIN_NUMBER = r"^[+-]?[0-9]+([.][0-9]*)?$"
_BEHIND = r"[.]([0-9]*?)0*$"
_TRUTH = r"^(?i:true|false)$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?( ?(Z|[+-][0-9]{2}(:?[0-9]{2})?))?$"
)
_SHAPES = {"date": _DATE, "timestamp": _TIME, "timestamp_ntz": _TIME}
_BITS = ((_WHOLE, "bigint"), (_NUMBER, "double"), (_TRUTH, "boolean"), (_DATE, "date"), (_TIME, "timestamp"))
_OTHER = 1 << len(_BITS)
_WHOLES = {"int": 10, "bigint": 19}


@dataclass(frozen=True)
class TypeCast:
    """A cast to a column's type; `ok` is whether the value fits, None if it always does."""

    value: "Column"
    ok: "Column | None" = None


def stored(kind: "DataType") -> "DataType":
    """The table type for a source type; unsupported types become text."""
    from pyspark.sql import types as t

    match kind:
        case t.StructType():
            fields = [t.StructField(field.name, stored(field.dataType)) for field in kind.fields]
            return t.StructType(fields) if fields else t.StringType()
        case t.ArrayType():
            return t.ArrayType(stored(kind.elementType))
        case t.MapType():
            return t.MapType(stored(kind.keyType), stored(kind.valueType))
        case t.ByteType() | t.ShortType():
            return t.IntegerType()
    kept = (
        t.IntegerType,
        t.LongType,
        t.FloatType,
        t.DoubleType,
        t.DecimalType,
        t.BooleanType,
        t.DateType,
        t.TimestampType,
        t.TimestampNTZType,
        t.BinaryType,
    )
    return kind if type(kind) in kept else t.StringType()


def grown(old: "DataType", new: "DataType") -> "DataType":
    """The widened type of a column, or the old type if it cannot be widened."""
    from pyspark.sql import types as t

    match old, new:
        case t.IntegerType(), t.LongType():
            return new
        case t.FloatType(), t.DoubleType():
            return new
        case t.DecimalType(), t.DecimalType() if old.scale == new.scale:
            return t.DecimalType(max(old.precision, new.precision), old.scale)
        case t.ArrayType(), t.ArrayType():
            return t.ArrayType(grown(old.elementType, new.elementType))
        case t.MapType(), t.MapType():
            return t.MapType(old.keyType, grown(old.valueType, new.valueType))
        case t.StructType(), t.StructType():
            return _grown_fields(old, new)
    return old


def _grown_fields(old: Any, new: Any) -> "DataType":
    from pyspark.sql import types as t

    others = {field.name.lower(): field for field in new.fields}
    fields = [
        t.StructField(field.name, grown(field.dataType, others.pop(field.name.lower()).dataType))
        if field.name.lower() in others
        else t.StructField(field.name, field.dataType)
        for field in old.fields
    ]
    return t.StructType([*fields, *(t.StructField(other.name, other.dataType) for other in others.values())])


def common(kinds: "list[DataType]") -> "DataType":
    """A common type of all of these; text if there is no other."""
    from pyspark.sql import types as t

    data_type = kinds[0]
    for entry in kinds[1:]:
        wider = grown(data_type, entry)
        if not same(wider, grown(entry, data_type)):
            return t.StringType()
        data_type = wider
    return data_type


def fit(value: "Column", old: "DataType", new: "DataType") -> TypeCast:
    """Cast a value of one type to another."""
    from pyspark.sql import types as t

    if same(old, new):
        return TypeCast(value)
    match old, new:
        case t.StructType(), t.StructType():
            return _fit_fields(value, old, new)
        case t.ArrayType(), t.ArrayType():
            return _fit_elements(value, old.elementType, new.elementType)
        case t.MapType(), t.MapType() if same(old.keyType, new.keyType):
            return _fit_values(value, old.valueType, new.valueType)
    return _fit_plain(value, old, new)


def same(old: "DataType", new: "DataType") -> bool:
    """Whether two types are equal, ignoring nullability."""
    return old.simpleString() == new.simpleString()


def _fit_plain(value: "Column", old: "DataType", new: "DataType") -> TypeCast:
    from pyspark.sql import functions as f
    from pyspark.sql import types as t

    nested = (t.StructType, t.ArrayType, t.MapType)
    if isinstance(new, t.StringType):
        if isinstance(old, t.BinaryType):
            return TypeCast(f.base64(value))
        return TypeCast(f.to_json(value) if isinstance(old, nested) else value.cast(new))
    if isinstance(new, nested) or isinstance(old, nested):
        return TypeCast(f.lit(None).cast(new), f.lit(col=False))
    if isinstance(old, t.StringType):
        return _fit_text(value, new)
    if _always_fits(old, new):
        return TypeCast(value.cast(new))
    if isinstance(old, t.NumericType) and isinstance(new, t.NumericType):
        column = value.try_cast(new)
        return TypeCast(column, column.isNotNull() & (column.try_cast(old) == value))
    return _fit_text(value.cast("string"), new)


def _always_fits(old: "DataType", new: "DataType") -> bool:
    from pyspark.sql import types as t

    name, other = old.simpleString(), new.simpleString()
    if isinstance(new, t.DecimalType):
        if isinstance(old, t.DecimalType):
            return new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale
        return name in _WHOLES and new.precision - new.scale >= _WHOLES[name]
    return (name, other) in {
        ("int", "bigint"),
        ("int", "double"),
        ("smallint", "int"),
        ("tinyint", "int"),
        ("smallint", "bigint"),
        ("tinyint", "bigint"),
        ("float", "double"),
        ("date", "timestamp"),
        ("date", "timestamp_ntz"),
    }


def _fit_text(value: "Column", new: "DataType") -> TypeCast:
    from pyspark.sql import functions as f
    from pyspark.sql import types as t

    if isinstance(new, t.BinaryType):
        column = f.try_to_binary(value, f.lit("base64"))
        return TypeCast(column, column.isNotNull())
    text = f.trim(value)
    column = text.try_cast(new)
    ok = column.isNotNull()
    if isinstance(new, t.DecimalType):
        # One with more digits behind the point would be rounded.
        behind = f.length(f.regexp_extract(text, _BEHIND, 1))
        ok = ok & text.rlike(_PLAIN_NUMBER) & (behind <= new.scale)
    elif (shape := _SHAPES.get(new.simpleString())) is not None:
        ok = ok & (text.rlike(shape) | text.rlike(_DATE) if shape == _TIME else text.rlike(shape))
    return TypeCast(column, ok)


def _fit_fields(value: "Column", old: Any, new: Any) -> TypeCast:
    from pyspark.sql import functions as f

    there = {field.name.lower(): field for field in old.fields}
    parts, oks = [], []
    for field in new.fields:
        if field.name.lower() not in there:
            parts.append(f.lit(None).cast(field.dataType).alias(field.name))
            continue
        own = there[field.name.lower()]
        inner = value.getField(own.name)
        cast = fit(inner, own.dataType, field.dataType)
        parts.append(cast.value.alias(field.name))
        if cast.ok is not None:
            oks.append(inner.isNull() | cast.ok)
    return TypeCast(f.when(value.isNotNull(), f.struct(*parts)), _all(oks))


def _fit_elements(value: "Column", old: "DataType", new: "DataType") -> TypeCast:
    from pyspark.sql import functions as f

    possible = fit(f.lit(None).cast(old), old, new).ok is not None
    column = f.transform(value, lambda value: fit(value, old, new).value)
    return TypeCast(column, f.forall(value, lambda entry: _or_null(entry, old, new)) if possible else None)


def _fit_values(value: "Column", old: "DataType", new: "DataType") -> TypeCast:
    from pyspark.sql import functions as f

    possible = fit(f.lit(None).cast(old), old, new).ok is not None
    result = f.transform_values(value, lambda _, column: fit(column, old, new).value)
    ok = f.forall(f.map_values(value), lambda column: _or_null(column, old, new))
    return TypeCast(result, ok if possible else None)


def _or_null(value: "Column", old: "DataType", new: "DataType") -> "Column":
    ok = fit(value, old, new).ok
    return value.isNull() | ok if ok is not None else value.isNull() | value.isNotNull()


def _all(oks: "list[Column]") -> "Column | None":
    column = None
    for entry in oks:
        column = entry if column is None else column & entry
    return column


def inferred(rows: "DataFrame", columns: list[str], *, times: bool = False) -> dict[str, "DataType"]:
    """Infer the types of text columns from all of their values; with `times`, only dates and times."""
    from pyspark.sql import functions as f

    if not columns:
        return {}
    told = rows.agg(*[f.bit_or(_bit(f.col(name))).alias(str(place)) for place, name in enumerate(columns)]).collect()[0]
    return {name: _type(told[place] or 0, times=times) for place, name in enumerate(columns)}


def _bit(value: "Column") -> "Column":
    """What one text holds, as a bit; nothing for a missing one."""
    from pyspark.sql import functions as f

    text = f.trim(value)
    column = f.when(value.isNull(), f.lit(None).cast("int"))
    for place, (shape, kind) in enumerate(_BITS):
        column = column.when(text.rlike(shape) & text.try_cast(kind).isNotNull(), f.lit(1 << place))
    return column.otherwise(f.lit(_OTHER))


def _type(bits: int, *, times: bool) -> "DataType":
    from pyspark.sql import types as t

    whole, number, truth, date, time = (1 << place for place in range(len(_BITS)))
    match bits:
        case _ if bits == date:
            return t.DateType()
        case _ if bits in (time, date | time):
            return t.TimestampType()
        case _ if times:
            return t.StringType()
        case _ if bits == whole:
            return t.LongType()
        case _ if bits in (number, whole | number):
            return t.DoubleType()
        case _ if bits == truth:
            return t.BooleanType()
    return t.StringType()
