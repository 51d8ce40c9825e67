"""Secrets of endpoints, sealed for their row."""

from datetime import datetime

from sqlalchemy import Connection, delete, insert

from headgate.kit.encryption import Sealer, row_name
from headgate.platform.external_systems.models import place_secret_table

_secrets = place_secret_table.c


def _bound(identifier: str, name: str) -> tuple[str, str, str]:
    """The table, row and column that a secret is sealed for; key rotation uses the same."""
    return place_secret_table.name, row_name(identifier, name), "value"


def put(connection: Connection, sealer: Sealer, identifier: str, secrets: dict[str, str | None], now: datetime) -> None:
    """Store secrets; those that are None are deleted."""
    for name, text in secrets.items():
        own = (_secrets.place_id == identifier) & (_secrets.name == name)
        connection.execute(delete(place_secret_table).where(own))
        if text is not None:
            sealed = sealer.seal(text, *_bound(identifier, name))
            values = {"place_id": identifier, "name": name, "value": sealed, "set_at": now}
            connection.execute(insert(place_secret_table).values(values))


def opened(sealer: Sealer, identifier: str, sealed: dict[str, str]) -> dict[str, str]:
    """Secrets in plain text; CannotOpen names one whose key is lost."""
    return {name: sealer.open(value, *_bound(identifier, name)) for name, value in sealed.items()}
