"""An outbox, and a relay that takes everything."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.kit.database import Database
from tests.platform.mail import Outbox, Server, relay


@pytest.fixture
def outbox(database: Database, tmp_path: Path) -> Outbox:
    return Outbox(database, tmp_path)


@pytest.fixture
def server() -> Iterator[Server]:
    with relay() as found:
        yield found
