"""Checks of a source or notebook when it is saved: what its connection supports, and the hosts it may call.

A run repeats all these checks, because DNS names and connections may have changed.
"""

from collections.abc import Mapping

from sqlalchemy import select

from headgate.contracts.api_paths import check_api_path
from headgate.contracts.external_systems.kinds import parse
from headgate.contracts.pipelines.definitions import Notebook, Source
from headgate.contracts.pipelines.streams import Stream
from headgate.kit.call_errors import CallRefused
from headgate.kit.errors import Denied, Invalid
from headgate.lakehouse.files.models import volume_file_table
from headgate.outgoing.sockets import check_host
from headgate.platform.external_systems.repository import kinds, row
from headgate.platform.resources import presentation
from headgate.platform.unit_of_work.call import Call

DATABASES = frozenset({"postgresql", "mysql"})
_files = volume_file_table.c


def check(call: Call, definition: object) -> None:
    """Reject a stream that the connection does not support, or a host that it may not call; Invalid says why and what
    to write.
    """
    if isinstance(definition, Source) and definition.connection is not None:
        kind = kinds(call.connection, [definition.connection]).get(definition.connection)
        for number, stream in enumerate(definition.streams if kind else ()):
            try:
                check_stream(stream, str(kind))
            except ValueError as error:
                raise Invalid(f"definition.streams.{number}.{error}") from None
    elif isinstance(definition, Notebook):
        _check_hosts(call, definition)
        _check_secrets(call, definition)


def check_stream(stream: Stream, kind: str) -> None:
    """Check that a kind of connection supports this stream; raises ValueError with the reason."""
    is_api = kind == "http" and stream.of == "rows"
    if stream.read == "incremental" and stream.cursor is None and (is_api or kind in DATABASES):
        told = "an API" if is_api else "a database"
        raise ValueError(f"cursor: required for an incremental load from {told}: the column that identifies new rows")
    if kind == "http":
        try:
            check_api_path(stream.name)
        except ValueError as error:
            raise ValueError(f"name: {error}") from None
        if not is_api and "*" in stream.name:
            raise ValueError(
                "name: an HTTP stream is one file, so its name cannot contain *; add a stream for each file"
            )
    if kind == "iceberg" and not all(("." in stream.name, *stream.name.split("."))):
        raise ValueError(f"name: {stream.name[:100]!r} is not the name of a table; write namespace.table")


def _check_hosts(call: Call, notebook: Notebook) -> None:
    for number, text in enumerate(notebook.hosts):
        host, _, port = text.rpartition(":")
        if not 1 <= int(port) <= 65535:
            raise Invalid(f"definition.hosts.{number}: the port must be a number from 1 to 65535")
        try:
            check_host(host, call.settings.outgoing)
        except CallRefused as error:
            raise Invalid(f"definition.hosts.{number}: {error}") from None


def _check_secrets(call: Call, notebook: Notebook) -> None:
    for connection in dict.fromkeys(secret.connection for secret in notebook.secrets):
        require_code(call, connection)
    for number, secret_ref in enumerate(notebook.secrets):
        result = row(call.connection, secret_ref.connection)
        takes = parse(result["place_kind"], result["config"]).takes() if result else {}
        if result and secret_ref.field not in takes:
            known = f"it has {', '.join(takes)}" if takes else "it has none"
            raise Invalid(
                f"definition.secrets.{number}.field: the connection has no secret {secret_ref.field!r}; {known}"
            )


def require_code(call: Call, connection: str) -> None:
    """Refuse code access to the secrets of a connection if its owner does not allow it or the caller may not use the
    connection.
    """
    if call.decide("read_secrets", "connection", connection):
        return
    if not call.may_see(connection):
        call.refuse("read_secrets", "connection", connection)
    call.note_denial("read_secrets", "connection", connection)
    name = presentation.one(call, connection).name
    raise Denied(
        f"definition.secrets: the connection {name!r} does not allow code to read its secrets. Its owner can "
        "allow it with `headgate connection change --allow-code`"
    )


def missing_wheels(call: Call, definition: object, volumes: Mapping[str, str | None]) -> list[str]:
    """The wheels of a notebook that do not exist in their volumes now; `volumes` maps volume names to ids."""
    result = []
    for wheel in definition.wheels if isinstance(definition, Notebook) else ():
        place = (_files.volume_id == volumes.get(wheel.volume), _files.path == wheel.path)
        if call.connection.execute(select(_files.id).where(*place)).first() is None:
            result.append(
                f"{wheel.volume} has no file {wheel.path}; upload the wheel, or remove it from the dependencies"
            )
    return result
