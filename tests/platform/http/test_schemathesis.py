"""The OpenAPI document, turned into requests by schemathesis: whatever is sent, no server error and no odd status."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, status_code_conformance

from headgate.app import create_app
from headgate.kit.database import Database
from headgate.schema import METADATA
from headgate.settings.settings import Settings
from tests.support.company import Company, company

EXAMPLES = int(os.environ.get("EXAMPLES", "8"))
MEMBERS = ("Olga", "Ben")


def _operations() -> list[tuple[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        paths = create_app(Settings(data_dir=Path(folder), database={"url": "sqlite://"})).openapi()["paths"]
    return [(method.upper(), path) for path, item in paths.items() for method in item]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Company, Any]]:
    """The company, and the document of its API."""
    folder = tmp_path_factory.mktemp("schemathesis")
    database = Database(f"sqlite:///{folder}/headgate.db")
    METADATA.create_all(database.engine)
    with company(database, folder) as found:
        yield found, schemathesis.openapi.from_asgi("/api/openapi.json", found.client.app)


@pytest.mark.xdist_group("schemathesis")
@pytest.mark.parametrize(("method", "path"), _operations())
def test_whatever_is_sent_is_answered(asked: tuple[Company, Any], method: str, path: str) -> None:
    millrace, document = asked
    checks = [not_a_server_error, content_type_conformance, status_code_conformance]

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=document[path][method].as_strategy())
    def send(case: Any) -> None:
        for member in MEMBERS:
            headers = {"Authorization": f"Bearer {millrace.token(member)}"}
            case.call_and_validate(headers=headers, checks=checks)

    send()
