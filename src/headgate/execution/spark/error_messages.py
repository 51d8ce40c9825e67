"""Rewrites messages of Spark and Iceberg for members: without advice that the guard rejects, and with usable table
names.
"""

import re

NO_TABLE, NO_LAYER, NO_LAYER_NAMED = "TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "TABLE_NAME_WITHOUT_LAYER"
_END = re.compile(r"(?<=[.!?])(?=\s)")
_SETTING = re.compile(r"\bspark\.[a-z][\w.]+")
_OWN = re.compile(r"`lake`\.(?=`)")
_NAME = r"`(?:[^`]|``)*`"
_QUOTED = re.compile(rf"{_NAME}(?:\.{_NAME})*")
_PLAIN = re.compile(
    r"(?:Invalid (?:table identifier|namespace)|(?:Table|Namespace) does not exist): ?(.*)"
    r"|The (?:table or view|schema) ([\w.]+) cannot be found"
)
_LOOK = "SHOW NAMESPACES lists the layers, and SHOW TABLES IN layer its tables"


def without_settings(text: str) -> str:
    """The text without advice about Spark's configuration. The first sentence is always kept."""
    first, *others = _END.split(text)
    return first + "".join(part for part in others if not _SETTING.search(part))


def without_catalog(text: str) -> str:
    """The text with table names as members write them."""
    return _OWN.sub("", text)


def of_missing(code: str, text: str) -> tuple[str, str]:
    """The code and message for a missing table or layer."""
    parts = _parts(text)
    name = ".".join(parts)
    if code == NO_TABLE and len(parts) == 1:
        how = "write table names as layer.table, or add USE layer; before the statement"
        return NO_LAYER_NAMED, f"There is no table {name} in a layer that the statement uses: {how}. {_LOOK}"
    if code == NO_TABLE:
        inside = f"SHOW TABLES IN {parts[0]} lists the tables of the layer" if parts else _LOOK
        return NO_TABLE, f"There is no table {name} that you may see; {inside}"
    if not parts:
        return NO_LAYER, f"The table has no layer: {_LOOK}"
    return NO_LAYER, f"There is no layer {name} that you may see; {_LOOK}"


def _parts(text: str) -> list[str]:
    """The parts of the name in a sentence, without the catalog."""
    plain = _PLAIN.match(text)
    if plain is not None:
        results = [value for value in (plain[1] or plain[2] or "").strip().split(".") if value]
    else:
        quoted = _QUOTED.search(text)
        results = [value[1:-1].replace("``", "`") for value in re.findall(_NAME, quoted[0])] if quoted else []
    return results[1:] if len(results) > 1 and results[0] == "lake" else results
