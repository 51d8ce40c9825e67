"""The search finds no escalation, and finds one wherever a part of what ends at a promotion is taken out."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headgate.organization.access.changes import promotion
from headgate.organization.sessions import service as sessions
from headgate.platform.authorization.provenance import CredentialOrigin
from headgate.platform.unit_of_work.call import Caller
from tests.escalation.search import Search, cheap_passwords

ORGANIZATIONS = 15
Patch = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Search]:
    with cheap_passwords():
        found = Search(tmp_path_factory.mktemp("escalation"))
        yield found
        found.organization.close()


@pytest.mark.slow
def test_no_coalition_ends_with_a_right_that_nobody_gave(search: Search) -> None:
    before = search.done
    for seed in range(ORGANIZATIONS):
        found = search.random(seed)
        assert found is None, str(search.shortened(found))
    assert search.done - before > ORGANIZATIONS * 5, "hardly anything was allowed, so hardly anything was searched"


def nothing_ends(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(promotion, "end_tainted", lambda *_: {})


def without(table: str) -> Patch:
    def work(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(promotion, "KINDS", tuple(one for one in promotion.KINDS if one.table.name != table))

    return work


def passwords_go_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(promotion, "_end_password", lambda *_: False)


def statements_go_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(promotion, "_cancel_tainted", lambda *_: 0)


def nothing_inherits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Caller, "origin", property(lambda self: CredentialOrigin(self.session or self.token)))


def links_are_untainted(patch: pytest.MonkeyPatch) -> None:
    def work(link: str, member: str, made_by: Any, *, tainted: bool) -> CredentialOrigin:
        return CredentialOrigin(link, tainted)

    patch.setattr(sessions, "of_link", work)


BROKEN: dict[str, tuple[Patch, int]] = {
    "nothing ends": (nothing_ends, 10),
    "sessions go on": (without("sessions"), 10),
    "tokens go on": (without("tokens"), 10),
    "passwords go on": (passwords_go_on, 10),
    "statements go on": (statements_go_on, 114),
    "what is made in a session inherits nothing": (nothing_inherits, 10),
    "links of others are untainted": (links_are_untainted, 114),
}
"""The product with a part of the rule taken out, and the first seed that finds it. A change of what is drawn may need
other seeds: `FURTHER` are tried after it."""

FURTHER = 150


@pytest.mark.parametrize("how", BROKEN)
def test_the_search_finds_what_is_taken_out(search: Search, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    patch, first = BROKEN[how]
    patch(monkeypatch)
    seeds = range(first, first + FURTHER)
    found = next((one for seed in seeds if (one := search.random(seed))), None)
    assert found is not None, "the search does not see this"
    assert found.acts[-1][3] == "set_role owner", str(found)
    monkeypatch.undo()
    assert search.run(found.seed, found.acts) is None, "the product as it is stops the same acts"


@pytest.mark.slow
def test_what_is_found_is_shortened(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_ends(monkeypatch)
    _, first = BROKEN["nothing ends"]
    found = next(one for seed in range(first, first + FURTHER) if (one := search.random(seed)))
    assert len(search.shortened(found).acts) <= min(6, len(found.acts))
