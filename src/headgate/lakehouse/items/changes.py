"""Changes a table or volume by one request: its name, layer and texts."""

from headgate.lakehouse.items import presentation, service
from headgate.lakehouse.items.descriptions import ITSELF, Texts, describe
from headgate.lakehouse.items.schemas import VolumePatch
from headgate.platform.unit_of_work.call import Call


def change_item(call: Call, item: str, patch: VolumePatch, fields: dict[int, Texts] | None = None) -> None:
    """Apply the requested changes, each authorized by its own action; all or none."""
    if patch.name is not None or patch.layer is not None:
        layer = presentation.layer_asked(call, patch.layer) if patch.layer is not None else None
        name = patch.name or service.full_name(call.connection, item).rpartition(".")[2]
        service.rename_item(call, item, name=name, layer_id=layer)
    texts = {**({ITSELF: patch.texts()} if patch.texts() else {}), **(fields or {})}
    if texts:
        describe(call, item, texts)
