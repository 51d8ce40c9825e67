"""What the tables of all versions are built of."""

from typing import Any

import sqlalchemy as sa

TIME = sa.DateTime(timezone=True)


def text(length: int) -> sa.types.TypeEngine[str]:
    """Text that both databases sort and compare by code point."""
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def column(name: str, kind: Any, *more: Any, nullable: bool = False, **options: Any) -> sa.Column[Any]:
    """A column that is never null, unless that is said."""
    return sa.Column(name, kind, *more, nullable=nullable, **options)


def key(table: str, own: str, target: str, **options: Any) -> sa.ForeignKeyConstraint:
    """A foreign key to the id of another table, under its usual name."""
    return sa.ForeignKeyConstraint([own], [f"{target}.id"], name=f"fk_{table}_{own}_{target}", **options)
