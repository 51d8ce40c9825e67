"""A Spark elsewhere that does not answer; tests/pipelines/runs/test_on_cluster.py tries one that does."""

import time
from pathlib import Path

import pytest

from headgate.execution.spark import remote as elsewhere
from headgate.execution.spark.errors import SparkUnavailable
from headgate.execution.spark.platform import PlatformSpark
from headgate.settings.settings import Settings
from tests.support.cluster import free_port


def test_a_step_does_not_wait_for_a_server_that_is_gone(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, spark={"platform_url": f"sc://localhost:{free_port()}/;token=x"})
    platform = PlatformSpark(settings, "http://127.0.0.1:1/iceberg")
    arguments, began = {"folder": str(tmp_path), "modules": []}, time.monotonic()
    try:
        with pytest.raises(SparkUnavailable):
            platform.call(elsewhere.FUNCTION, arguments, elsewhere._context(settings, tmp_path, platform))
    finally:
        platform.close()
    assert time.monotonic() - began < 30
