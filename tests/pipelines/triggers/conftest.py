"""The company's pipelines, with triggers to come."""

import pytest

from tests.pipelines.triggers.support import Yard
from tests.support.company import Company


@pytest.fixture
def yard(millrace: Company) -> Yard:
    """Pipelines with definitions, on each kind of database in turn."""
    return Yard(millrace)


@pytest.fixture
def yard_on_sqlite(millrace_on_sqlite: Company) -> Yard:
    """The same, on SQLite."""
    return Yard(millrace_on_sqlite)
