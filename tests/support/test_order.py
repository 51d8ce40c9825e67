"""The order of Spark's tests: its list is of files that are there, and two processes take them from its two ends."""

from collections import OrderedDict
from pathlib import Path
from typing import Any

from tests.support.order import BACK, FRONT, FromBothEnds, arrange


class Process:
    """One that is given tests."""

    def __init__(self) -> None:
        self.given: list[int] = []

    def send_runtest_some(self, tests: list[int]) -> None:
        self.given += tests


class Item:
    """A test of a file."""

    def __init__(self, name: str) -> None:
        self.name, self.path = name, Path(__file__).parents[1] / name


def test_each_file_is_there_once_and_is_sparks() -> None:
    names = [*FRONT, *BACK]
    assert len(set(names)) == len(names)
    for name in names:
        assert "mark.spark" in (Path(__file__).parents[1] / name).read_text(encoding="utf-8"), name


def test_the_ends_of_the_list_are_at_the_ends_and_all_else_stays_as_it_was() -> None:
    files = [BACK[0], "z.py", FRONT[1], BACK[1], "a.py", FRONT[0]]
    items: list[Any] = [Item(name) for name in files]
    arrange(items)
    assert [item.name for item in items] == [FRONT[0], FRONT[1], "z.py", "a.py", BACK[1], BACK[0]]


def test_two_processes_begin_at_the_two_ends() -> None:
    tests = [f"{name}.py::test" for name in "abcd"]
    first, second = Process(), Process()
    scheduler: Any = FromBothEnds.__new__(FromBothEnds)
    scheduler.workqueue = OrderedDict((f"{one}.py", {f"{one}.py::test": False}) for one in "abcd")
    scheduler.assigned_work = {first: {}, second: {}}
    scheduler.registered_collections = {first: tests, second: tests}
    for process in (first, second, second, first):
        scheduler._assign_work_unit(process)
    assert (first.given, second.given) == ([0, 1], [3, 2])
