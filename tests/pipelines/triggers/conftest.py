"""The company's pipelines, with triggers to come."""

import pytest

from tests.pipelines.triggers.support import TriggerBench
from tests.support.company import Company


@pytest.fixture
def trigger_bench(millrace: Company) -> TriggerBench:
    """Pipelines with definitions, on each kind of database in turn."""
    return TriggerBench(millrace)


@pytest.fixture
def yard_on_sqlite(millrace_on_sqlite: Company) -> TriggerBench:
    """The same, on SQLite."""
    return TriggerBench(millrace_on_sqlite)
