"""A process for one step on the platform's Spark: `python -m headgate.execution.spark.step_process`.

It imports PySpark, reports that it is ready, and waits. Standard input brings one request as a line of JSON, with all
that the step needs, including secrets; none of it is in the environment or the arguments. The process writes lines of
JSON:

    {"ready": true}                              PySpark is imported
    {"log": [level, text]}                       a line for the run's log
    {"progress": [[id, done, total, bytes, ended], …]}   the stages that Spark runs now
    {"result": {…}}                              the result of the function; the last line
    {"failed": {"kind", "code", "message", "passing"}}   its failure; the last line

It ends after that, or as soon as the parent process is gone and its standard input closes.
"""

import importlib
import json
import os
import sys
import threading
import traceback
from typing import Any, BinaryIO

from headgate.execution.spark.errors import SparkUnavailable, SqlFailed, StatementRefused
from headgate.execution.spark.step_session import SparkEndpoint, Step
from headgate.execution.steps.context import StepFailed

LOADED = ("pyspark.sql.connect.session", "pyspark.sql.functions", "headgate.execution.sources.land")
"""The modules that most steps need, imported in advance."""


class LineWriter:
    """Writes lines to the parent process, thread-safe."""

    def __init__(self, out: BinaryIO) -> None:
        self._out, self._lock = out, threading.Lock()

    def __call__(self, told: dict[str, Any]) -> None:
        line = json.dumps(told).encode() + b"\n"
        with self._lock:
            self._out.write(line)
            self._out.flush()


def answer(request: dict[str, Any], tell: LineWriter) -> dict[str, Any]:
    """The result of a request, as sent in the last line."""
    try:
        step = Step(SparkEndpoint(**request["where"]), tell, proxy=request["proxy"])
        return {"result": _function(request["function"])(request["arguments"], step)}
    except StepFailed as error:
        return _failed("step", error.code, error.message, passing=error.passing)
    except SqlFailed as error:
        return _failed("sql", error.code, error.message)
    except StatementRefused as error:
        return _failed("refused", "REFUSED", error.message)
    except SparkUnavailable as error:
        return _failed("down", "ENGINE_DOWN", error.detail, passing=True)
    except Exception:  # noqa: BLE001 - whatever it is, whoever asked is told
        return _failed("fault", "INTERNAL", traceback.format_exc())


def _function(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


def _failed(kind: str, code: str, message: str, *, passing: bool = False) -> dict[str, Any]:
    return {"failed": {"kind": kind, "code": code, "message": message, "passing": passing}}


def _end_when_alone(source: BinaryIO) -> None:
    while source.read(1024):
        pass
    os._exit(1)


def main() -> None:
    """Serve one request."""
    # Other output must not be parsed as protocol lines.
    own = os.dup(1)
    os.dup2(2, 1)
    tell = LineWriter(os.fdopen(own, "wb"))
    for module in LOADED:
        importlib.import_module(module)

    tell({"ready": True})
    line = sys.stdin.buffer.readline()
    if not line:
        return
    threading.Thread(target=_end_when_alone, args=(sys.stdin.buffer,), daemon=True).start()
    tell(answer(json.loads(line), tell))
    # Exit immediately: the parent process frees the session, and PySpark would wait for it.
    os._exit(0)


if __name__ == "__main__":
    main()
