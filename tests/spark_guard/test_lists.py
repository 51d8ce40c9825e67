"""The lists name everything that Spark and Iceberg bring: a new version brings nothing that nobody has looked at."""

from pathlib import Path
from typing import Any

import pytest

from headgate.contracts import guard_files
from headgate.execution.spark import java
from headgate.execution.spark.jars import Jars
from tests.spark_guard import java_programs

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

LISTS = guard_files.SOURCES / "resources" / "headgate" / "guard"
SPARK = "org.apache.spark.sql."


def lines(name: str) -> list[str]:
    """The lines of a list, without remarks and reasons."""
    text = (LISTS / f"{name}.txt").read_text().splitlines()
    return [line.split(" : ")[0].strip() for line in text if line.strip() and not line.startswith("#")]


@pytest.fixture(scope="module")
def inventory(jars: Jars, classpath: str) -> dict[str, set[str]]:
    """What the jars bring, by kind."""
    own = sorted(str(path) for path in java.spark_jars().glob("spark-*.jar"))
    found: dict[str, set[str]] = {}
    for line in java_programs.run("Inventory", classpath, str(jars.iceberg), *own).splitlines():
        kind, name = line.split(" ", 1)
        found.setdefault(kind, set()).add(name)
    return found


def _classes(names: list[str]) -> set[str]:
    return {name if name.startswith("org.") else SPARK + name for name in names}


def _compare(found: set[str], allowed: set[str], refused: set[str]) -> None:
    assert found, "nothing was found: the inventory is broken"
    assert sorted(found - allowed - refused) == [], "new: look at each, and put it into one of the two lists"
    assert sorted((allowed | refused) - found) == [], "gone: remove from the lists"
    assert sorted(allowed & refused) == [], "in both lists"


def test_every_plan_class_is_in_a_list(inventory: dict[str, set[str]]) -> None:
    allowed = _classes([line.split()[1] for line in lines("plans")])
    assert {line.split()[0] for line in lines("plans")} == {"both", "parsed", "resolved"}
    _compare(inventory["plan"], allowed, _classes(lines("refused-plans")))


def test_every_expression_class_is_in_a_list(inventory: dict[str, set[str]]) -> None:
    _compare(inventory["expression"], _classes(lines("expressions")), _classes(lines("refused-expressions")))


def test_every_function_is_in_a_list(inventory: dict[str, set[str]]) -> None:
    builtin = {line for line in lines("functions") if not line.startswith("lake.system.")}
    _compare(inventory["function"], builtin, set(lines("refused-functions")))


def test_every_procedure_is_in_a_list(inventory: dict[str, set[str]]) -> None:
    allowed = {line.split()[0] for line in lines("procedures")}
    _compare(inventory["procedure"], allowed, set(lines("refused-procedures")))


def test_every_metadata_table_is_in_a_list(inventory: dict[str, set[str]]) -> None:
    _compare(inventory["metadata-table"], set(lines("metadata-tables")), set(lines("refused-metadata-tables")))


@pytest.mark.parametrize("change", ["plan", "function"])
def test_something_new_is_noticed(inventory: dict[str, set[str]], change: str) -> None:
    listed = {line.split()[-1] for line in lines(f"{change}s")}
    known = _classes(list(listed)) if change == "plan" else listed
    refused = set(lines(f"refused-{change}s"))
    with pytest.raises(AssertionError, match="new: look at each"):
        _compare(inventory[change] | {"brand_new"}, known, _classes(list(refused)) if change == "plan" else refused)


def test_lists_are_sorted_and_without_doubles() -> None:
    for file in sorted(Path(LISTS).glob("*.txt")):
        names = lines(file.stem)
        assert len(names) == len(set(names)), file.name
    for name in ("expressions", "refused-expressions", "refused-plans", "properties"):
        assert lines(name) == sorted(lines(name)), name


def test_documented_examples_pass(spark: object, inventory: dict[str, set[str]]) -> None:
    """Of every allowed function, all examples that its documentation gives are analysed, and none is refused."""
    allowed = set(lines("functions"))
    examples = [line.split(" ", 1) for line in sorted(inventory["example"])]
    of_allowed = [sql.replace("\\n", "\n") for function, sql in examples if function in allowed]
    wanted = [sql for sql in of_allowed if not sql.startswith(("SET ", "DECLARE "))]
    assert len(wanted) > 900
    refused, failed, answered = list[Any](), list[Any](), set()
    for sql in wanted:
        try:
            spark.sql(sql)  # type: ignore[attr-defined]
            answered.add(sql)
        except Exception as problem:  # noqa: BLE001
            (refused if "HEADGATE_REFUSED" in str(problem) else failed).append(f"{sql} -> {str(problem)[:200]}")
    assert "\n".join(refused) == ""
    shown = {function for function, _ in examples}
    can = {function for function, sql in examples if sql.replace("\\n", "\n") in answered}
    assert sorted((allowed & shown) - can) == [], "these cannot answer at all: move them to refused-functions"
    # Some need a type that is off by default; a few show an error on purpose.
    assert len([one for one in failed if "UNSUPPORTED_" not in one]) < 15, "\n".join(failed)


def test_functions_without_examples_answer(spark: object, inventory: dict[str, set[str]]) -> None:
    """Those are names of types, used as functions, and Iceberg's, which other tests call."""
    shown = {line.split(" ", 1)[0] for line in inventory["example"]}
    rest = sorted(one for one in lines("functions") if one not in shown and not one.startswith("lake."))
    assert "bigint" in rest
    for function in rest:
        spark.sql(f"SELECT {function}(NULL)").collect()  # type: ignore[attr-defined]


def test_what_only_rounds_of_a_recursive_query_hold_is_refused_elsewhere() -> None:
    assert set(lines("loops")) <= set(lines("refused-plans"))
