"""Column types and the column constructor of the migrations."""

from typing import Any

import sqlalchemy as sa

TIME = sa.DateTime(timezone=True)


def text(length: int) -> sa.types.TypeEngine[str]:
    """Text that both databases sort and compare by code point."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


ID, WORD, NAME, NAME_KEY, EMAIL = text(32), text(40), text(200), text(800), text(320)


def column(name: str, kind: Any, *more: Any, nullable: bool = False, **options: Any) -> sa.Column[Any]:
    """A column that is NOT NULL by default."""
    return sa.Column(name, kind, *more, nullable=nullable, **options)
