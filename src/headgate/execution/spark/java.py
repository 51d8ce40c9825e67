"""The Java of this machine, and pyspark's jars."""

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from headgate.execution.spark.versions import JDK, PYSPARK

_VERSION = re.compile(r'version "(\d+)')


class NoJava(RuntimeError):
    """A requirement for running Spark is missing; the message says which and what to do."""


def program(name: str) -> str:
    """The path of `java` or `javac`, from JAVA_HOME or else PATH."""
    home = os.environ.get("JAVA_HOME")
    result = str(Path(home, "bin", name)) if home else shutil.which(name)
    if result is None or not os.access(result, os.X_OK):
        where = f"JAVA_HOME ({home}) has no bin/{name}" if home else f"there is no `{name}` on the PATH"
        raise NoJava(f"{where}; install a JDK {_either()} (Debian: openjdk-{JDK[0]}-jdk-headless), or set JAVA_HOME")
    return result


def java() -> str:
    """The path of a Java version that Spark supports."""
    path = program("java")
    asked = [path, "-version"]
    answer = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603
    version = _VERSION.search(answer.stderr + answer.stdout)
    if version is None or int(version[1]) not in JDK:
        has = f"is version {version[1]}" if version else "has no version"
        raise NoJava(f"{path} {has}; Headgate needs JDK {_either()}: set JAVA_HOME to one")
    return path


def spark_jars() -> Path:
    """The folder of pyspark's jars, found without importing it."""
    spec = find_spec("pyspark")
    for place in (spec.submodule_search_locations or []) if spec else []:
        if (folder := Path(place, "jars")).is_dir():
            return folder
    raise NoJava(f"pyspark is not installed; install pyspark {PYSPARK}")


def _either() -> str:
    return " or ".join(str(version) for version in JDK)
