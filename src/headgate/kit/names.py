"""Names: any Unicode but control characters; two that look the same under NFKC and case folding are one."""

import re
import unicodedata

MAX_LENGTH = 200
MAX_KEY_LENGTH = 800
SQL_NAME = re.compile(r"[a-z_][a-z0-9_]{0,127}")
RESERVED_SQL_NAMES = frozenset({"system", "global_temp", "spark_catalog"})


class BadName(ValueError):
    """A name that cannot be used; the message says why."""


def name_key(name: str) -> str:
    """What two names must share to be the same name; also the order in which lists sort them."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return folded.strip()


def check_name(name: str) -> str:
    """The name, without surrounding space, or BadName."""
    cleaned = name.strip()
    if not cleaned:
        raise BadName("a name cannot be empty")
    if len(cleaned) > MAX_LENGTH:
        raise BadName(f"a name has at most {MAX_LENGTH} characters; this one has {len(cleaned)}")
    if any(unicodedata.category(c) in {"Cc", "Cs"} for c in cleaned):
        raise BadName("a name cannot hold control characters")
    if not name_key(cleaned) or len(name_key(cleaned)) > MAX_KEY_LENGTH:
        raise BadName("this name has no usable form under Unicode's NFKC normalisation")
    return cleaned


def check_sql_name(name: str) -> str:
    """The name of a layer, table or volume as SQL will use it, in lower case, or BadName."""
    lowered = name.strip().lower()
    if not SQL_NAME.fullmatch(lowered):
        raise BadName(
            f"{name!r} is not an SQL name: start with a letter or underscore, then letters, digits and "
            "underscores, at most 128"
        )
    if lowered in RESERVED_SQL_NAMES:
        raise BadName(f"{lowered!r} is reserved")
    return lowered
