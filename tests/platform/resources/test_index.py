"""The audience index: derived from the rule tables, and refused where they take a shape it cannot hold."""

import pytest

from headgate.access.atoms import IN_SCOPE, owns
from headgate.access.audience import Unsupported, audience, implies, order
from headgate.access.book import BOOK, RuleBook
from headgate.access.conditions import Can, OnRelated, all_of
from headgate.access.rules import ALL_TABLES, Path, Rules
from headgate.access.rules.terms import held


def test_every_kind_with_a_list_is_in_the_index_parents_first() -> None:
    kinds = order()
    assert set(kinds) == {rules.kind for rules in ALL_TABLES if rules.listed_by}
    for kind in kinds:
        for one in audience(kind).inherited:
            assert kinds.index(one.kind) < kinds.index(kind)


def test_what_follows_a_parent_inherits_its_audience() -> None:
    assert [one.kind for one in audience("report").inherited] == ["data_mart"]
    assert {one.kind for one in audience("run").inherited} == {"data_mart", "report", "pipeline"}


def test_paths_that_add_nobody_are_left_out() -> None:
    meetings = [way.meeting.name for way in audience("data_mart").ways if way.meeting]
    assert meetings == ["owns:technical,business", "in scope", "in scope"]


def test_a_rule_with_two_meetings_is_refused_not_guessed() -> None:
    both = Rules("storage", "Storage", "see", (Path("both", all_of(owns("owner"), IN_SCOPE), ("see",)),))
    with pytest.raises(Unsupported):
        audience("storage", RuleBook([both]))


def test_implication_by_shape() -> None:
    def yes(a: object, b: object, kind: str = "data_mart") -> bool:
        return implies(a, b, BOOK, kind)  # type: ignore[arg-type]

    assert yes(owns("technical"), owns("technical", "business"))
    assert not yes(owns("technical", "business"), owns("technical"))
    assert yes(held(3), held(1))
    assert not yes(held(1), held(2))
    assert yes(OnRelated("data_mart", Can("edit")), OnRelated("data_mart", Can("see")), "report")
    assert not yes(OnRelated("data_mart", Can("see")), OnRelated("data_mart", Can("edit")), "report")
    assert yes(all_of(owns("owner"), IN_SCOPE), IN_SCOPE)
