"""Spark does not start without its guard in place."""

import subprocess
from pathlib import Path

import pytest

from headgate.execution.spark import conf, java
from headgate.execution.spark.jars import Jars
from tests.spark_guard import java_programs, server

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


SPARKS_OWN = "org.apache.spark.sql.connect.service.SparkConnectServer"


def _start(jars: str, confs: dict[str, str], folder: Path, main: str = conf.CONNECT) -> str:
    """What a server that must not start has said when it ended."""
    answer = subprocess.run(
        server.command(jars, confs, main),
        capture_output=True,
        text=True,
        env=server.environment(),
        cwd=folder,
        check=False,
        timeout=90,
    )
    assert answer.returncode != 0
    return answer.stdout + answer.stderr


@pytest.mark.parametrize(("main", "missing"), [(conf.CONNECT, conf.CONNECT), (SPARKS_OWN, conf.PLUGIN)])
def test_no_start_without_the_jar(jars: Jars, tmp_path: Path, main: str, missing: str) -> None:
    assert missing in _start(str(jars.iceberg), server.settings(tmp_path / "w"), tmp_path, main)


def test_no_start_with_the_guard_before_iceberg(jars: Jars, tmp_path: Path) -> None:
    confs = {**server.settings(tmp_path / "w"), "spark.sql.extensions": f"{server.GUARD},{server.ICEBERG}"}
    assert "HEADGATE_GUARD: Spark must not start" in _start(str(jars), confs, tmp_path)


WRONG = {
    "no guard": {"spark.sql.extensions": server.ICEBERG},
    "no extensions": {"spark.sql.extensions": ""},
    "guard first": {"spark.sql.extensions": f"{server.GUARD},{server.ICEBERG}"},
    "guard alone": {"spark.sql.extensions": server.GUARD},
    "something after it": {"spark.sql.extensions": f"{server.ICEBERG},{server.GUARD},x.Y"},
    "files by name": {"spark.sql.runSQLOnFiles": "true"},
    "substitution": {"spark.sql.variable.substitute": "true"},
    "another catalog": {"spark.sql.defaultCatalog": "spark_catalog"},
    "a cache of tables": {"spark.sql.catalog.lake.cache-enabled": "true"},
    "another analyzer": {"spark.sql.analyzer.singlePassResolver.enabled": "true"},
}
LEFT_OUT = (
    "spark.sql.extensions",
    "spark.sql.runSQLOnFiles",
    "spark.sql.variable.substitute",
    "spark.sql.defaultCatalog",
    "spark.sql.catalog.lake.cache-enabled",
)


def test_wrong_settings_are_named(classpath: str, tmp_path: Path) -> None:
    right = server.settings(tmp_path)
    cases = [right, *({**right, **wrong} for wrong in WRONG.values())]
    cases += [{key: value for key, value in right.items() if key != left} for left in LEFT_OUT]
    given = "\n\n".join("\n".join(f"{key}={value}" for key, value in case.items()) for case in cases)
    answers = java_programs.run("PluginProbe", classpath, given=given).splitlines()
    assert answers[0] == "starts"
    keys = [next(iter(wrong)) for wrong in WRONG.values()] + list(LEFT_OUT)
    assert len(answers) == len(keys) + 1
    for key, answer in zip(keys, answers[1:], strict=True):
        assert answer.startswith(f"HEADGATE_GUARD: Spark must not start: {key} must be "), answer


def test_no_start_when_a_listed_class_is_gone(jars: Jars, tmp_path: Path) -> None:
    """The lists were made for other versions than those that are there: here, Iceberg's jar is missing."""
    given = "\n".join(f"{key}={value}" for key, value in server.settings(tmp_path).items())
    without = f"{java.spark_jars()}/*:{jars.guard}"
    answer = java_programs.run("PluginProbe", without, given=given)
    assert answer.startswith("HEADGATE_GUARD: Spark must not start: the lists name org.apache.spark.sql.catalyst.")
    assert "which is gone" in answer
