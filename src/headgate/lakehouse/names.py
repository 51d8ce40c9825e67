"""Names of layers, tables and volumes: SQL identifiers in plain ASCII, stored in lower case."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from headgate.kit.names import BadName, check_sql_name

_PLAIN = re.compile(r"[!-~]+")


def sql_name(name: str) -> str:
    """The name in lower case; raises BadName. Characters that look like ASCII or fold to it are rejected."""
    if not _PLAIN.fullmatch(name):
        raise BadName(
            f"{name[:130]!r} is not a valid SQL name: start with a letter from a to z or an underscore, then "
            "letters, digits and underscores, at most 128"
        )
    return check_sql_name(name)


SqlName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=128,
        examples=["orders"],
        description="Letters from a to z, digits and underscores; case-insensitive",
    ),
    AfterValidator(sql_name),
]
"""A name in a request."""
