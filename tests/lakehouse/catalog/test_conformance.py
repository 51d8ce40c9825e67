"""How `make catalog-tests` judges: by the list of refused tests, in both directions."""

from pathlib import Path

import pytest

from tests.lakehouse.catalog.conformance import __main__ as conformance
from tests.lakehouse.catalog.conformance.outcomes import (
    FAILED,
    PASSED,
    SKIPPED,
    Outcome,
    differences,
    read_refused,
    read_report,
)

REPORT = """<testsuite>
  <testcase name="one()" classname="Tests"/>
  <testcase name="two()" classname="Tests"><failure message="Malformed request: is outside"/></testcase>
  <testcase name="three()" classname="Tests"><skipped/></testcase>
  <testcase name="four()" classname="Tests"><error>no message</error></testcase>
</testsuite>"""


def test_a_report_is_read(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    assert read_report(tmp_path / "report.xml") == {
        "Tests.one()": Outcome(PASSED),
        "Tests.two()": Outcome(FAILED, "Malformed request: is outside"),
        "Tests.three()": Outcome(SKIPPED),
        "Tests.four()": Outcome(FAILED, "no message"),
    }


def test_exactly_the_listed_tests_may_fail_and_for_the_listed_reason() -> None:
    outcomes = {"a": Outcome(PASSED), "b": Outcome(FAILED, "it is outside"), "c": Outcome(SKIPPED)}
    assert differences(outcomes, {"b": "is outside"}) == []
    assert "b failed" in differences(outcomes, {})[0]
    assert "another reason" in differences(outcomes, {"b": "format-version"})[0]
    assert "a passed" in differences(outcomes, {"a": "x", "b": "is outside"})[0]
    assert "c skipped" in differences(outcomes, {"b": "is outside", "c": "x"})[0]
    assert "does not exist" in differences(outcomes, {"b": "is outside", "d": "x"})[0]
    assert differences({}, {}) == ["no test passed"]


def test_the_list_names_each_test_once_with_the_words_of_its_refusal(tmp_path: Path) -> None:
    found = read_refused(conformance.HERE / "refused.txt")
    assert len(found) == 34
    assert {name.partition(".")[0] for name in found} <= set(conformance.CLASSES)
    for text in ("Tests.one()\n", "Tests.one() | x\nTests.one() | y\n", "Tests.one() | \n"):
        (tmp_path / "refused.txt").write_text(text)
        with pytest.raises(ValueError, match="write each test once"):
            read_refused(tmp_path / "refused.txt")
