"""The client configuration sent with a table's metadata: file access by signed requests or by temporary credentials."""

from typing import Any

from headgate.lakehouse.catalog import credentials
from headgate.lakehouse.catalog.config import table_config, work_signing_config
from headgate.platform.unit_of_work.call import Call
from headgate.platform.unit_of_work.stages import Stages
from headgate.warehouse.bucket import BucketStore


def may_write(call: Call, table_id: str) -> bool:
    """Whether credentials for a table's files may write; not evaluated if credentials are not issued."""
    return credentials.vends_credentials(call.services) and bool(call.decide("edit", "table", table_id))


def told_of(stages: Stages, table_id: str, *, writes: bool) -> dict[str, Any]:
    """The fields of a response besides the metadata. The caller's access to the table was already checked."""
    services, ours = stages.services, stages.who.work is not None
    config = table_config(stages.settings, services.store, table_id, ours=ours)
    told: dict[str, Any] = {"config": config}
    if ours and isinstance(services.store, BucketStore):
        told["remote-signing-config"] = work_signing_config(stages.authorization)
    elif not ours and credentials.vends_credentials(services):
        grant = credentials.KeyScope(table_id, stages.who.member, writes)
        lent = credentials.vended_credentials(services, grant)
        told = {"config": {**config, **lent["config"]}, "storage-credentials": [lent]}
    return told
