"""The database driver properties that members may set, each with its allowed values.

Driver properties can load classes, read files and open connections. The allowed ones only tune how rows are fetched.
"""

import re

_NUMBER, _FLAG, _WORD = r"[0-9]{1,9}", r"true|false", r"[A-Za-z0-9_ .:/+-]{1,100}"

POSTGRESQL = {
    "ApplicationName": _WORD,
    "adaptiveFetch": _FLAG,
    "binaryTransfer": _FLAG,
    "connectTimeout": _NUMBER,
    "currentSchema": r"[A-Za-z0-9_]{1,63}(,[A-Za-z0-9_]{1,63}){0,9}",
    "defaultRowFetchSize": _NUMBER,
    "loginTimeout": _NUMBER,
    "prepareThreshold": _NUMBER,
    "reWriteBatchedInserts": _FLAG,
    "socketTimeout": _NUMBER,
    "stringtype": r"unspecified|varchar",
    "tcpKeepAlive": _FLAG,
}
MYSQL = {
    "connectTimeout": _NUMBER,
    "connectionTimeZone": r"[A-Za-z0-9_/+:-]{1,64}",
    "defaultFetchSize": _NUMBER,
    "rewriteBatchedStatements": _FLAG,
    "socketTimeout": _NUMBER,
    "tcpKeepAlive": _FLAG,
    "tinyInt1isBit": _FLAG,
    "useCompression": _FLAG,
    "useCursorFetch": _FLAG,
    "useServerPrepStmts": _FLAG,
    "yearIsDateType": _FLAG,
    "zeroDateTimeBehavior": r"CONVERT_TO_NULL|EXCEPTION|ROUND",
}


def checked(given: dict[str, str], known: dict[str, str]) -> dict[str, str]:
    """The properties, if each is allowed with its value; otherwise ValueError."""
    for name, value in given.items():
        if name not in known:
            raise ValueError(f"properties: {name[:60]!r} cannot be set; the properties are {', '.join(known)}")
        if not re.fullmatch(known[name], value):
            raise ValueError(f"properties: invalid value of {name}; it takes {_words(known[name])}")
    return given


def _words(pattern: str) -> str:
    if pattern == _NUMBER:
        return "a number"
    return pattern.replace("|", " or ") if re.fullmatch(r"[A-Za-z_|]+", pattern) else "letters, digits and - _ . : /"
