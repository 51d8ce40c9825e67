"""Connection checks of MySQL and MariaDB with PyMySQL, over a socket to a verified address."""

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from headgate.execution.connection_checks.checks import CheckRequest, Streams, outgoing
from headgate.execution.steps.context import StepFailed
from headgate.outgoing.sockets import dial

_CONNECT_SECONDS = 20.0
_WRONG, _NO_DATABASE, _DENIED, _TIMEOUT = {1045, 1698, 1251, 1524}, {1049, 1044}, {1142, 1143, 1227}, {1969, 3024}

_TABLES = """
SELECT table_name, CASE WHEN table_type LIKE '%%VIEW%%' THEN 'view' ELSE 'table' END
FROM information_schema.tables WHERE table_schema = %s ORDER BY table_name
"""
_COLUMNS = """
SELECT table_name, column_name, column_type, is_nullable FROM information_schema.columns
WHERE table_schema = %s ORDER BY table_name, ordinal_position
"""
_KEYS = """
SELECT table_name, column_name FROM information_schema.key_column_usage
WHERE table_schema = %s AND constraint_name = 'PRIMARY' ORDER BY table_name, ordinal_position
"""


def test(asked: CheckRequest) -> str:
    """Log in, and report the user, the server version and the encryption."""
    with signed_in(asked) as connection:
        version, user = _rows(connection, "SELECT VERSION(), CURRENT_USER()")[0]
        cipher = _rows(connection, "SHOW STATUS LIKE 'Ssl_version'")
        how = f"over {cipher[0][1]}" if cipher and cipher[0][1] else "without TLS"
        name = "MariaDB" if "mariadb" in version.lower() else "MySQL"
        return f"{name} {version.split('-')[0]}, as {user}, {how}"


def discover(asked: CheckRequest) -> Streams:
    """List the tables and views of the database with their columns and keys."""
    streams, schema = Streams(asked.limit), asked.config["database"]
    with signed_in(asked) as connection:
        values: dict[str, dict[str, Any]] = {}
        for name, sort in _rows(connection, _TABLES, schema):
            if asked.wants(f"{schema}.{name}"):
                if not streams.add(f"{schema}.{name}", sort, columns=[], keys=[]):
                    break
                values[name] = streams.found[-1]
        for table, name, kind, nullable in _rows(connection, _COLUMNS, schema):
            if table in values:
                values[table]["columns"].append({"name": name, "type": kind, "nullable": nullable == "YES"})
        for table, name in _rows(connection, _KEYS, schema):
            if table in values:
                values[table]["keys"].append(name)
    return streams


def _rows(connection: Any, sql: str, *values: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values or None)
        return list(cursor.fetchall())


@contextmanager
def signed_in(asked: CheckRequest, *, writing: bool = False) -> Iterator[Any]:
    """An open connection, in autocommit mode if it is to write."""
    import pymysql  # noqa: PLC0415 - only a worker that is asked needs it

    config = asked.config
    with outgoing():
        soon = min(asked.deadline, time.monotonic() + _CONNECT_SECONDS)
        place = dial(config["host"], config["port"], asked.settings.outgoing, soon)
        opened = place.connect(soon)
    seconds = min(asked.left, _CONNECT_SECONDS)
    connection = pymysql.Connection(
        host=place.name,
        port=place.port,
        user=config["user"],
        password=asked.endpoint.secrets.get("password", ""),
        database=config["database"],
        ssl=_tls(config),
        connect_timeout=max(1, int(seconds)),
        read_timeout=max(1, int(asked.left)),
        write_timeout=max(1, int(asked.left)),
        charset="utf8mb4",
        # The server must not ask for files of this machine.
        local_infile=False,
        # Nothing of this machine's user goes along.
        read_default_file=None,
        autocommit=writing,
        defer_connect=True,
    )
    try:
        opened.settimeout(seconds)
        connection.connect(opened)
        yield connection
    except (pymysql.MySQLError, OSError) as error:
        raise _failure(asked, error) from None
    finally:
        with suppress(Exception):
            connection.close()
        opened.close()


def _tls(config: dict[str, Any]) -> ssl.SSLContext | None:
    if config["tls"] == "off":
        return None
    context = ssl.create_default_context(cadata=config.get("tls_ca"))
    if config["tls"] == "require":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _failure(asked: CheckRequest, error: Any) -> StepFailed:
    """The failure for an error of PyMySQL or of the network."""
    config = asked.config
    number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    told = asked.plain(str(error.args[1]) if len(error.args) > 1 else str(error))
    if number in _WRONG:
        message = (
            f"The server rejected the login of {config['user']}; check the user and the password. Server message: "
            f"{told}"
        )
        return StepFailed("WRONG_CREDENTIALS", message)
    if number in _NO_DATABASE:
        message = f"There is no database {config['database']!r} for this user; check its name. Server message: {told}"
        return StepFailed("NO_SUCH_DATABASE", message)
    if number in _DENIED:
        return StepFailed("DENIED_THERE", f"The user has no permission to read this. Server message: {told}")
    if isinstance(error, TimeoutError) or number in _TIMEOUT or "timed out" in told:
        message = f"{config['host']} timed out; check the host and port, and that the server is running"
        return StepFailed("TIMEOUT", message, passing=True)
    if "ssl" in told.lower() or "certificate" in told.lower():
        message = (
            "The TLS connection failed; check `tls`, and that the certificate is valid for this host. Server "
            f"message: {told}"
        )
        return StepFailed("TLS", message)
    if number in {2003, 2006, 2013}:
        message = (
            f"{config['host']} closed the connection, or does not speak the MySQL protocol on port "
            f"{config['port']}; check the host and port"
        )
        return StepFailed("UNREACHABLE", message, passing=True)
    return StepFailed("FAILED_THERE", f"Server message: {told}", passing=True)
