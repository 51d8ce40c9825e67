"""The company with and without a relay."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.kit.database import Database
from tests.platform.mail import HERE, Server, relay
from tests.platform.notifications import House, house


@pytest.fixture
def server() -> Iterator[Server]:
    """A relay that takes everything."""
    with relay() as found:
        yield found


@pytest.fixture
def millrace_house(database: Database, tmp_path: Path) -> Iterator[House]:
    """The company, which sends no mail."""
    with house(database, tmp_path) as found:
        yield found


@pytest.fixture
def mailing_house(database: Database, tmp_path: Path, server: Server) -> Iterator[House]:
    """The company, which sends mail."""
    mail = {"host": HERE, "port": server.port, "security": "none"}
    with house(database, tmp_path, mail=mail) as found:
        yield found
