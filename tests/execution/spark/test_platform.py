"""The platform's own Spark: started when first needed, and ended when idle."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from headgate.execution.sandbox.processes import started
from headgate.execution.spark.errors import SparkUnavailable, SqlFailed
from headgate.execution.spark.platform import PlatformSpark
from headgate.execution.steps.context import RunStopped, StepFailed
from headgate.settings.settings import Settings
from tests.execution.spark.conftest import Lakehouse
from tests.support.spark import cpu_seconds, rows_of, within
from tests.support.steps import Running, Workshop, workshop

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
        assert server.sandboxed
        assert server.address.socket
        assert Path(f"/proc/{pid}").stat().st_uid == (os.getuid() or settings.spark.sandbox_uid)
        session.close()
        within(60, lambda: not platform.state()["up"])
        within(60, lambda: started(pid) == 0)
    finally:
        platform.close()


FUNCTIONS = "tests.execution.spark.step_functions"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    with workshop(tmp_path_factory.mktemp("workshop")) as found:
        yield found


def started_in(running: Running) -> int:
    """The process that a slow call says it is, once Spark works for it."""
    within(60, lambda: running.told)
    return int(running.text.rpartition(" ")[2])


def in_thread(running: Running, function: str = "slow") -> "Future[Any]":
    call: Future[Any] = Future()

    def work() -> None:
        try:
            call.set_result(running.context.platform.call(f"{FUNCTIONS}:{function}", {}, running.context))
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            call.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return call


def is_calm(shop: Workshop) -> bool:
    """Whether Spark computes nothing."""
    pid = shop.platform.state()["pid"]
    before = cpu_seconds(pid)
    time.sleep(1)
    return cpu_seconds(pid) - before < 0.3


def test_a_function_has_a_session_of_its_run_and_tells_how_it_goes(shop: Workshop) -> None:
    running = shop.run(time_zone="Asia/Tokyo")
    given = {"password": "p4ss-w0rd", "more": [1, None, "ü"]}
    found = shop.platform.call(f"{FUNCTIONS}:look", given, running.context)
    assert found["given"] == given
    assert found["rows"] == 499_500
    assert (found["zone"], found["at"]) == ("Asia/Tokyo", "2026-01-01 00:00:00")
    assert running.lines == [("info", "looking"), ("warning", "something is odd")]
    assert "p4ss" not in str(found["environment"]) + found["command"]
    assert running.context.job.token not in str(found["environment"]) + found["command"]
    assert not [name for name in found["environment"] if name.startswith("HEADGATE")]
    within(60, lambda: started(found["pid"]) == 0)


def test_a_function_writes_as_its_run_and_nothing_else(shop: Workshop) -> None:
    running = shop.run("raw.made")
    assert shop.platform.call(f"{FUNCTIONS}:write", {"table": "raw.made"}, running.context) == {"rows": 10}
    with pytest.raises(SqlFailed):
        shop.rows("SELECT * FROM raw.made")
    running.publish()
    assert shop.rows("SELECT SUM(twice) AS n FROM raw.made") == [{"n": 90}]
    with pytest.raises(SqlFailed):
        shop.platform.call(f"{FUNCTIONS}:write", {"table": "raw.other"}, shop.run().context)


def test_failures_come_as_what_they_are(shop: Workshop) -> None:
    context = shop.run().context

    def call(name: str, **arguments: Any) -> Any:
        return shop.platform.call(f"{FUNCTIONS}:{name}", arguments, context)

    for passing in (True, False):
        with pytest.raises(StepFailed, match="another day") as failed:
            call("fail", passing=passing)
        assert (failed.value.code, failed.value.passing) == ("NO_LUCK", passing)
    with pytest.raises(StepFailed, match="Internal error") as failed:
        call("fail", fault=True)
    assert "no member" not in failed.value.message
    with pytest.raises(SqlFailed) as wrong:
        call("run", sql="SELECT * FROM raw.nothing_there")
    assert wrong.value.code.startswith("TABLE_OR_VIEW_NOT_FOUND")
    with pytest.raises(SqlFailed) as wrong:
        call("run", sql="SELECT 1 / id FROM range(3)")
    assert wrong.value.code.startswith("DIVIDE_BY_ZERO")
    with pytest.raises(StepFailed, match="in its own words"):
        call("run", sql="SELECT 1 / id FROM range(3)", told="in its own words")


def test_a_run_that_is_to_end_ends_its_process_and_spark(shop: Workshop) -> None:
    running = shop.run()
    call = in_thread(running)
    pid = started_in(running)
    running.context.stop()
    with pytest.raises(RunStopped):
        call.result(60)
    assert started(pid) == 0
    within(60, lambda: is_calm(shop))
    with pytest.raises(RunStopped):
        shop.platform.call(f"{FUNCTIONS}:look", {}, running.context)
    assert shop.platform.state()["sessions"] == 0


def test_a_process_that_dies_is_worth_another_try_and_leaves_nothing_running(shop: Workshop) -> None:
    running = shop.run()
    call = in_thread(running)
    os.kill(started_in(running), signal.SIGKILL)
    with pytest.raises(StepFailed, match="the step is retried") as failed:
        call.result(60)
    assert failed.value.passing
    within(60, lambda: is_calm(shop))
    assert shop.platform.call(f"{FUNCTIONS}:look", {}, shop.run().context)["rows"] == 499_500


def test_a_spare_process_is_loaded_while_spark_is_up(shop: Workshop) -> None:
    shop.platform.call(f"{FUNCTIONS}:look", {}, shop.run().context)
    spare = shop.platform._spare._child
    assert spare
    assert spare.lives
    assert shop.platform.call(f"{FUNCTIONS}:look", {}, shop.run().context)["pid"] == spare.pid
    spare = shop.platform._spare._child
    assert spare
    shop.platform.close()
    assert not spare.lives


def test_spark_that_dies_ends_the_call(shop: Workshop) -> None:
    running = shop.run()
    call = in_thread(running)
    pid = started_in(running)
    os.kill(shop.platform.state()["pid"], signal.SIGKILL)
    with pytest.raises(SparkUnavailable):
        call.result(60)
    assert started(pid) == 0
    assert shop.platform.call(f"{FUNCTIONS}:look", {}, shop.run().context)["rows"] == 499_500


def test_a_run_that_takes_all_memory_of_a_server_of_its_own_ends_no_other(shop: Workshop) -> None:
    running, culprit, waiting = shop.run(), shop.run(), shop.run()
    call = in_thread(running)
    process, spark = started_in(running), shop.platform.state()["pid"]
    with shop.platform.alone() as own:
        # One call after the other is on the same server.
        own.call(f"{FUNCTIONS}:look", {}, culprit.context)
        with pytest.raises(SparkUnavailable) as lost:
            own.call(f"{FUNCTIONS}:bomb", {}, culprit.context)
        assert lost.value.out_of_memory
        # There is memory for one such server.
        with shop.platform.alone() as next_one:
            waiting.context.stop()
            with pytest.raises(RunStopped):
                next_one.call(f"{FUNCTIONS}:look", {}, waiting.context)
    assert started(process)
    assert not call.done()
    assert shop.platform.state()["pid"] == spark
    with shop.platform.alone() as own:
        assert own.call(f"{FUNCTIONS}:look", {}, shop.run().context)["rows"] == 499_500
    running.context.stop()
    with pytest.raises(RunStopped):
        call.result(60)
