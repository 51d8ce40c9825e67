"""Makes the archive of Spark's classes on a worker's machine, beside its work, so that later starts are quick."""

import threading

from headgate.execution.spark import archive_training, guard_jar, jars, java
from headgate.execution.worker.statement_execution import Spark
from headgate.kit.log import get_logger
from headgate.settings.settings import Settings

LOOK_SECONDS = 5.0
_log = get_logger("headgate.worker")


class Archiving:
    """Waits until Spark is up, since that is needed first; then makes the archive, unless there is one."""

    def __init__(self, settings: Settings, spark: Spark) -> None:
        self._settings, self._spark = settings, spark
        self._stopping = threading.Event()

    def start(self) -> None:
        """Begin, if this worker starts a Spark in a sandbox by itself."""
        if self._settings.spark.member_url is None and self._settings.spark.sandbox != "off":
            threading.Thread(target=self._work, name="archiving", daemon=True).start()

    def stop(self) -> None:
        """End. What is half made ends with this process."""
        self._stopping.set()

    def _work(self) -> None:
        while not self._stopping.wait(LOOK_SECONDS):
            if self._spark.state()["up"]:
                try:
                    archive_training.ensure(jars.ensure(offline=self._settings.spark.jars_dir), _log.info)
                except (jars.BadJar, guard_jar.BadBuild, java.NoJava) as error:
                    _log.warning("Spark's classes cannot be archived", error=str(error))
                return
