"""The platform's own Spark: started when first needed, and ended when idle."""

from pathlib import Path

import pytest

from headgate.config import Settings
from headgate.engine.platform import PlatformSpark
from headgate.engine.processes import started
from tests.engine.conftest import Lakehouse
from tests.support.spark import rows_of, within

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def test_it_starts_when_needed_and_ends_when_idle(lakehouse: Lakehouse, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, spark={"memory": "512m"}, warehouse=lakehouse.spark.warehouse)
    platform = PlatformSpark(settings, lakehouse.spark.doorway.catalog_url, idle_seconds=1)
    try:
        assert platform.state() == {"up": False, "pid": None, "sessions": 0}
        session = platform.open(lakehouse.work("Tess"))
        pid = platform.state()["pid"]
        assert rows_of(session, "SELECT 1 AS a") == [{"a": 1}]
        # It is not guarded: what members may not say, its steps may.
        assert rows_of(session, "SET spark.sql.session.timeZone") == [
            {"key": "spark.sql.session.timeZone", "value": "UTC"}
        ]
        server = platform._server
        assert server
        assert server.address.token
        assert server.address.socket is None
        session.close()
        within(20, lambda: not platform.state()["up"])
        within(10, lambda: started(pid) == 0)
    finally:
        platform.close()
