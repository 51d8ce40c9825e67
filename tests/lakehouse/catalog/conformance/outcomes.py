"""What the tests came to, beside what was expected of them."""

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclass(frozen=True)
class Outcome:
    """What one test came to, and why."""

    result: str
    reason: str = ""


def read_report(file: Path) -> dict[str, Outcome]:
    """The outcomes in a report of JUnit's launcher, by class and test."""
    found: dict[str, Outcome] = {}
    for case in ET.parse(file).iter("testcase"):  # noqa: S314 - written by the launcher that we started
        name = f"{case.get('classname')}.{case.get('name')}"
        failures = [part for part in case if part.tag in {"failure", "error"}]
        if failures:
            found[name] = Outcome(FAILED, (failures[0].get("message") or failures[0].text or "").strip())
        else:
            found[name] = Outcome(SKIPPED if case.find("skipped") is not None else PASSED)
    return found


def read_refused(file: Path) -> dict[str, str]:
    """The tests that are refused, each with the words that its failure must have."""
    found: dict[str, str] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, words = line.partition(" | ")
            if not words.strip() or name.strip() in found:
                raise ValueError(f"{file.name}: write each test once, as CLASS.TEST | WORDS OF THE REFUSAL: {line}")
            found[name.strip()] = words.strip()
    return found


def differences(outcomes: dict[str, Outcome], refused: dict[str, str]) -> list[str]:
    """Where the outcomes are not the expected ones: empty if all is well."""
    found = []
    for name, words in sorted(refused.items()):
        outcome = outcomes.get(name)
        if outcome is None:
            found.append(f"{name} is on the list of refused tests and does not exist")
        elif outcome.result != FAILED:
            found.append(f"{name} {outcome.result}, and is on the list of refused tests; take it off the list")
        elif words not in outcome.reason:
            found.append(f"{name} fails for another reason than {words!r}: {outcome.reason[:500]}")
    for name, outcome in sorted(outcomes.items()):
        if outcome.result == FAILED and name not in refused:
            found.append(f"{name} failed: {outcome.reason[:500]}")
    if not any(outcome.result == PASSED for outcome in outcomes.values()):
        found.append("no test passed")
    return found
