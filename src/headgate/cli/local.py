"""Access of commands to the database of the local installation, which they never create."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from headgate.cli.client import SERVER_VARIABLE
from headgate.cli.credentials import stored
from headgate.kit.database import Database
from headgate.platform.secrets.installation_keys import KEY_FILE
from headgate.settings.settings import Settings, load
from headgate.supervisor.preflight import existing

_HERE = frozenset({"127.0.0.1", "::1", "localhost"})
_PORTS = {"http": 80, "https": 443}


@contextmanager
def installation() -> Iterator[tuple[Settings, Database]]:
    """The settings and the database of the local installation; NotReady if there is none."""
    settings = load()
    database = existing(settings)
    try:
        yield settings, database
    finally:
        database.close()


def describe_installation(settings: Settings) -> str:
    """A description of the installation that these settings belong to."""
    folder = settings.data_dir.absolute()
    missing = "" if (folder / KEY_FILE).exists() else ", which is not initialized"
    return f"the local installation in {folder}{missing}"


def other_server_warning(settings: Settings) -> str | None:
    """A warning that other commands use another server than the local installation; None if they do not."""
    given, kept = os.environ.get(SERVER_VARIABLE), stored()
    named, by = (given, SERVER_VARIABLE) if given else (kept.server, "`headgate login`") if kept else (None, "")
    if named is None or _is_here(named, settings):
        return None
    return f"{by} names {named}, but this command checks the local installation only; run it on that server's machine"


def _is_here(address: str, settings: Settings) -> bool:
    if settings.server.public_url and address.rstrip("/") == settings.server.public_url.rstrip("/"):
        return True
    try:
        parts = urlsplit(address)
        host, port = (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return False
    own = _HERE | {settings.server.host.lower(), socket.gethostname().lower()}
    return host in own and port == settings.server.port
