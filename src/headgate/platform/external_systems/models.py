"""The endpoints of connections and destinations, and their secrets."""

from sqlalchemy import JSON, CheckConstraint, Column, ForeignKey, Integer, Table, Text

from headgate.kit.columns import METADATA, Id, UtcDateTime, Word
from headgate.platform.secrets.rotation import register

place_table = Table(
    "places",
    METADATA,
    Column("id", Id, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("place_kind", Word, nullable=False),
    Column("config", JSON, nullable=False),
    Column("version", Integer, nullable=False),
    Column("moved_at", UtcDateTime, nullable=False),
    CheckConstraint(
        "place_kind IN ('postgresql', 'mysql', 'http', 'object_store', 'folder', 'iceberg')", name="place_kind"
    ),
)
"""The endpoint of a connection or destination. `version` counts its changes: a pipeline that was authorized for an
earlier version must not write to it before a member confirms the new one.
"""

place_secret_table = Table(
    "place_secrets",
    METADATA,
    Column("place_id", Id, ForeignKey("places.id", ondelete="CASCADE"), primary_key=True),
    Column("name", Word, primary_key=True),
    Column("value", Text, nullable=False),
    Column("set_at", UtcDateTime, nullable=False),
)
"""A sealed secret of an endpoint: a password, token or key. It is sent only to workers and never returned."""

register(place_secret_table, "value")
