"""Opens a connection or destination for a job that goes to a worker: where it points, and its secrets in the clear."""

from sqlalchemy import Connection, select

from headgate.contracts.external_systems.endpoints import Endpoint
from headgate.kit.encryption import CannotOpen
from headgate.kit.errors import Conflict, NotFound
from headgate.kit.log import get_logger
from headgate.platform.authorization.resource_tables import resource_table_of
from headgate.platform.external_systems import repository
from headgate.platform.external_systems import secrets as sealing
from headgate.platform.unit_of_work.services import Services

_log = get_logger("headgate.places")


def open_endpoint(connection: Connection, services: Services, identifier: str) -> Endpoint:
    """A connection or destination with its secrets, for a job that goes to a worker and to nobody else.

    It decides nothing: whoever asks has judged the member whom the job acts for in the same transaction, and has
    compared `repository.place_of` if the job writes. NotFound for what points nowhere; Conflict, with what to do, for
    one that goes through a gateway, which no worker here is, or whose secrets cannot be opened.
    """
    row = repository.row(connection, identifier)
    if row is None:
        raise NotFound("It has no host configured; set `place` first")
    _refuse_gateway(connection, identifier)
    try:
        secrets = sealing.opened(services.sealer, identifier, repository.sealed_secrets(connection, identifier))
    except CannotOpen as error:
        _log.error("a secret cannot be decrypted", place=identifier, reason=str(error))
        raise Conflict("Its secrets cannot be decrypted, because their key is missing; set them again") from None
    return Endpoint(identifier, row["place_kind"], dict(row["config"]), secrets)


def _refuse_gateway(connection: Connection, identifier: str) -> None:
    connections = resource_table_of("connection").c
    gateway = select(connections.gateway_id).where(connections.id == identifier)
    if connection.execute(gateway).scalar() is not None:
        raise Conflict("This connection requires a gateway, but this installation has no gateway worker")
