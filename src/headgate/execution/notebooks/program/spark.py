"""The notebook's own Spark: a Java child process and a session."""

import os
import struct
import subprocess
import time
from pathlib import Path
from typing import Any

START_SECONDS = 120
_AUTHORIZATION = "spark.sql.catalog.lake.header.Authorization"


class NoSpark(Exception):
    """Spark did not start."""


class NotebookSpark:
    """A Spark process with the lifetime of the notebook."""

    def __init__(self, job: dict[str, Any]) -> None:
        told = Path(job["scratch"], "tmp", "gateway")
        environment = {**os.environ, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(told)}
        self._process = subprocess.Popen(  # noqa: S603 - the program that the job names
            job["java"], stdin=subprocess.PIPE, env=environment
        )
        deadline = time.monotonic() + START_SECONDS
        while not told.exists():
            if self.has_ended or time.monotonic() > deadline:
                raise NoSpark
            time.sleep(0.02)
        content = told.read_bytes()
        port, length = struct.unpack(">ii", content[:8])
        os.environ["PYSPARK_GATEWAY_PORT"] = str(port)
        os.environ["PYSPARK_GATEWAY_SECRET"] = content[8 : 8 + length].decode()
        from pyspark.sql import SparkSession

        self.session = SparkSession.builder.getOrCreate()
        token = Path(job["secrets"], ".token")
        if token.exists():
            # Without a sandbox there is nobody outside of it who adds it.
            self.session.conf.set(_AUTHORIZATION, f"Bearer {token.read_text(encoding='utf-8')}")

    @property
    def has_ended(self) -> bool:
        """Whether the process has exited."""
        return self._process.poll() is not None
