"""Opens a connection or destination for a worker's job: its endpoint, with secrets in plain text."""

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
    """A connection or destination with its secrets, for a worker's job only.

    It does not authorize: the caller has authorized the member that the job acts for in the same transaction, and has
    compared `repository.place_of` if the job writes. Raises NotFound if there is no endpoint, and Conflict, with what
    to do, if it uses a gateway that no worker here runs or its secrets cannot be decrypted.
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
