"""The layers of a new installation. They have no creator; every admin may change them."""

from datetime import datetime

from sqlalchemy import Connection, insert, select, union_all

from headgate.lakehouse.items.service import insert_layer
from headgate.lakehouse.models import lake_text_table, layer_table
from headgate.lakehouse.trash.models import deleted_item_table
from headgate.platform.directory.models import member_table

LAYERS = {
    "raw": ("Raw", "Raw data as loaded from sources."),
    "trusted": ("Trusted", "Cleaned and validated data."),
    "service": ("Service", "Data ready for use."),
}


def make_layers(connection: Connection, now: datetime) -> bool:
    """Create the default layers if this installation is unused; returns whether it did."""
    used = union_all(*(select(table.c.id).limit(1).subquery().select() for table in _USED))
    if connection.execute(used).first() is not None:
        return False
    for name, (title, description) in LAYERS.items():
        layer = insert_layer(connection, name, now, None)
        text = {"resource_id": layer, "field_id": 0, "title": title, "description": description, "updated_at": now}
        connection.execute(insert(lake_text_table).values(text))
    return True


_USED = (member_table, layer_table, deleted_item_table)
