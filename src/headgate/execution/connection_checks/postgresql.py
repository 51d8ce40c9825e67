"""Connection checks of PostgreSQL with psycopg. The host name verifies the certificate; the connection goes to a
verified address.
"""

import ssl
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headgate.execution.connection_checks.checks import CheckRequest, Streams, outgoing
from headgate.execution.steps.context import StepFailed
from headgate.outgoing.sockets import dial

_CONNECT_SECONDS = 20
_LONGEST = 2_000_000_000
_SSL_MODES = {"verify": "verify-full", "require": "require", "off": "disable"}
_CLASSES = {"28": "WRONG_CREDENTIALS", "3D": "NO_SUCH_DATABASE", "42": "DENIED_THERE", "53": "UNREACHABLE"}

_ABOUT = "SELECT current_setting('server_version'), current_user"
_TABLES = """
SELECT c.oid, n.nspname || '.' || c.relname, CASE WHEN c.relkind IN ('v', 'm') THEN 'view' ELSE 'table' END
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND n.nspname !~ '^pg_'
AND n.nspname <> 'information_schema' AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
ORDER BY n.nspname, c.relname
"""
_COLUMNS = """
SELECT a.attrelid, a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull,
  COALESCE(array_position(i.indkey::int2[], a.attnum), -1)
FROM pg_catalog.pg_attribute a
LEFT JOIN pg_catalog.pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
WHERE a.attrelid = ANY(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum
"""


def test(asked: CheckRequest) -> str:
    """Log in, and report the user, the server version and the encryption."""
    with signed_in(asked) as connection:
        version, user = connection.execute(_ABOUT).fetchone()
        how = "over TLS" if connection.pgconn.ssl_in_use else "without TLS"
        return f"PostgreSQL {version.split()[0]}, as {user}, {how}"


def discover(asked: CheckRequest) -> Streams:
    """List the tables and views that the user may read, with their columns and keys."""
    streams = Streams(asked.limit)
    with signed_in(asked) as connection:
        oids = []
        for oid, name, sort in connection.execute(_TABLES):
            if asked.wants(name):
                if not streams.add(name, sort, columns=[], keys=[]):
                    break
                oids.append(oid)
        values = dict(zip(oids, streams.found, strict=True))
        ordered: dict[int, list[tuple[int, str]]] = {}
        for oid, name, kind, nullable, at in connection.execute(_COLUMNS, (oids,)):
            values[oid]["columns"].append({"name": name, "type": kind, "nullable": nullable})
            if at >= 0:
                ordered.setdefault(oid, []).append((at, name))
        for oid, keys in ordered.items():
            values[oid]["keys"] = [name for _, name in sorted(keys)]
    return streams


@contextmanager
def signed_in(asked: CheckRequest, *, writing: bool = False) -> Iterator[Any]:
    """An open connection in autocommit mode, read-only unless `write` is set."""
    import psycopg  # noqa: PLC0415 - only a worker that is asked needs it

    config = asked.config
    limit = f"-c statement_timeout={min(int(asked.left * 1000), _LONGEST)}"
    with outgoing():
        soon = min(asked.deadline, time.monotonic() + _CONNECT_SECONDS)
        place = dial(config["host"], config["port"], asked.settings.outgoing, soon)
    addresses = [str(address) for address in place.addresses]
    with _authority(config) as roots:
        try:
            with psycopg.connect(
                host=",".join([place.name] * len(addresses)),
                hostaddr=",".join(addresses),
                port=place.port,
                dbname=config["database"],
                user=config["user"],
                password=asked.endpoint.secrets.get("password", ""),
                sslmode=_SSL_MODES[config["tls"]],
                sslrootcert=roots,
                connect_timeout=max(2, int(min(asked.left, _CONNECT_SECONDS))),
                options=limit if writing else f"{limit} -c default_transaction_read_only=on",
                keepalives_idle=60,
                application_name="headgate",
                autocommit=True,
                # Nothing of this machine's user goes along: no certificate, no Kerberos ticket, no password file.
                sslcertmode="disable",
                gssencmode="disable",
                passfile="/dev/null/none",
            ) as connection:
                yield connection
        except psycopg.Error as error:
            raise _failure(asked, error) from None


@contextmanager
def _authority(config: dict[str, Any]) -> Iterator[str]:
    """The file of trusted certificate authorities: those of the configuration, or of this machine."""
    if config["tls"] != "verify":
        # Were there a file, the certificate would be checked after all.
        yield "/dev/null/none"
    elif config.get("tls_ca"):
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(config["tls_ca"])
            file.flush()
            yield file.name
    else:
        yield machine_authorities()


def machine_authorities() -> str:
    """The file of certificate authorities that this machine trusts."""
    paths = ssl.get_default_verify_paths()
    known = (paths.cafile, paths.openssl_cafile, "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/cert.pem")
    return next((value for value in known if value and Path(value).is_file()), "system")


def _failure(asked: CheckRequest, error: Any) -> StepFailed:
    """The failure for an error of psycopg or of the network."""
    text, config = str(error), asked.config
    code = _CLASSES.get((error.sqlstate or "")[:2])
    lower = text.lower()
    if error.sqlstate == "57014" or "timeout expired" in lower:
        return StepFailed(
            "TIMEOUT",
            f"{config['host']} timed out; check the host and port, and that the server is running",
            passing=True,
        )
    if code is None and ("password" in lower or "pg_hba.conf" in lower or ("role " in lower and "not exist" in lower)):
        code = "WRONG_CREDENTIALS"
    if code is None and "database " in lower and "does not exist" in lower:
        code = "NO_SUCH_DATABASE"
    if code is None and ("ssl" in lower or "certificate" in lower):
        code = "TLS"
    messages = {
        "WRONG_CREDENTIALS": f"The server rejected the login of {config['user']}; check the user and the password",
        "NO_SUCH_DATABASE": f"There is no database {config['database']!r}; check its name",
        "TLS": "The TLS connection failed; check `tls`, and that the certificate is valid for this host",
        "DENIED_THERE": "The user has no permission to read this",
    }
    if code in messages:
        return StepFailed(code, f"{messages[code]}. Server message: {asked.plain(_told(text))}")
    if "refused" in lower or "unreachable" in lower or "closed the connection" in lower:
        told = (
            f"{config['host']} accepts no connections on port {config['port']}; check the host and port, and that "
            "the server is running"
        )
        return StepFailed("UNREACHABLE", told, passing=True)
    return StepFailed(code or "FAILED_THERE", f"Server message: {asked.plain(_told(text))}", passing=True)


def _told(text: str) -> str:
    """The server's own message, without the IP address of the connection."""
    return text.strip().splitlines()[-1].rpartition("failed: ")[2] if text.strip() else "nothing"
