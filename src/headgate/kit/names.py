"""Names: any Unicode but control characters; two that look the same under NFKC and case folding are one."""

import re
import unicodedata

MAX_LENGTH = 200
MAX_KEY_LENGTH = 800
SQL_NAME = re.compile(r"[a-z_][a-z0-9_]{0,127}")
_LABEL = r"[^\W_](?:[\w-]*[^\W_])?"
EMAIL = re.compile(rf"[^\s@<>\"'(),:;\\\[\]\x00-\x1f\x7f]{{1,64}}@(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*")
MAX_EMAIL_LENGTH = 254
RESERVED_SQL_NAMES = frozenset({"system", "global_temp", "spark_catalog"})


class BadName(ValueError):
    """A name that cannot be used; the message says why."""


def name_key(name: str) -> str:
    """What two names must share to be the same name; also the order in which lists sort them."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return folded.strip()


def several(kind: str, name: str, ids: list[str]) -> str:
    """What somebody is told whose name stands for more than one resource."""
    noun = kind.replace("_", " ")
    return f"Several resources of kind {noun} are named {name!r}: {', '.join(ids)}. Give the id of one of them"


def is_text(text: str) -> bool:
    """Whether a text holds no control characters and no half characters."""
    return not any(unicodedata.category(c) in {"Cc", "Cs"} for c in text)


def check_name(name: str) -> str:
    """The name, without surrounding space, or BadName."""
    cleaned = name.strip()
    if not cleaned:
        raise BadName("a name cannot be empty")
    if len(cleaned) > MAX_LENGTH:
        raise BadName(f"a name has at most {MAX_LENGTH} characters; this one has {len(cleaned)}")
    if not is_text(cleaned):
        raise BadName("a name cannot contain control characters")
    if not name_key(cleaned) or len(name_key(cleaned)) > MAX_KEY_LENGTH:
        raise BadName("this name is empty after Unicode normalization (NFKC)")
    return cleaned


def email_key(email: str) -> str:
    """What two mail addresses must share to be the same account."""
    return unicodedata.normalize("NFKC", email.strip()).casefold()


def check_email(email: str) -> str:
    """The mail address, without surrounding space, or BadName."""
    cleaned = email.strip()
    if (
        not EMAIL.fullmatch(cleaned)
        or "=?" in cleaned
        or len(cleaned) > MAX_EMAIL_LENGTH
        or len(email_key(cleaned)) > MAX_EMAIL_LENGTH
    ):
        raise BadName(f"{cleaned[:100]!r} is not a mail address")
    return cleaned


def check_sql_name(name: str) -> str:
    """The name of a layer, table or volume as SQL will use it, in lower case, or BadName."""
    lowered = name.strip().lower()
    if not SQL_NAME.fullmatch(lowered):
        raise BadName(
            f"{name!r} is not a valid SQL name: start with a letter or underscore, then letters, digits and "
            "underscores, at most 128"
        )
    if lowered in RESERVED_SQL_NAMES:
        raise BadName(f"{lowered!r} is reserved")
    return lowered
