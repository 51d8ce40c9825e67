"""Terms: conditions that several rule tables share, each with a name and one meaning."""

from collections.abc import Callable

from headgate.access.atoms import ADMIN, ALLOWS_CODE, DATA_IS_KNOWN, STARTER, granted, space_role
from headgate.access.conditions import AllRelated, Can, Condition, NoneOf, NotEmpty, OnRelated, Term, all_of, any_of

PLACES = Term("its destination, connections and gateways may be used")
"""What a definition needs of whoever it runs for, outside the lakehouse."""

MAY_USE_SPACE = Term("consume, edit or manage, or ownership")
"""In a space; security roles do not count, the role admin or owner does."""


READS_SECRETS = Term("its code may read the secrets of its connections")
"""What a notebook that reads secrets needs of whoever it runs for, and of who saved it."""


def held(level: int) -> Term:
    """The level itself, as other rules ask for it: admins and, on Starter, everyone have it without a grant."""
    return Term("", level)


def on_all_listed(level: int) -> Term:
    """The level on every table that is listed; if none is, nobody has it."""
    return Term("on every table that it lists", level)


def on_all_counted(level: int) -> Term:
    """The level on everything that counts for a pipeline; if nothing does, on its output layer."""
    return Term("on every table that it reads or writes (if there is none, on its output layer)", level)


def _held(level: int) -> Condition:
    return any_of(ADMIN, all_of(STARTER, DATA_IS_KNOWN), granted(level))


def _on_all_listed(level: int) -> Condition:
    return all_of(NotEmpty("counted"), AllRelated("counted", held(level)))


def _on_all_counted(level: int) -> Condition:
    return any_of(on_all_listed(level), all_of(NoneOf("counted"), OnRelated("output_layer", held(level))))


def _places(_: int) -> Condition:
    return all_of(
        AllRelated("destinations", Can("use")),
        AllRelated("used_connections", OnRelated("space", MAY_USE_SPACE)),
        AllRelated("used_gateways", OnRelated("space", MAY_USE_SPACE)),
    )


def _reads_secrets(_: int) -> Condition:
    # The gateways stand beside the connections, not inside: SQLite parses no deeper.
    return all_of(
        AllRelated("connections", all_of(ALLOWS_CODE, OnRelated("space", MAY_USE_SPACE))),
        AllRelated("gateways", OnRelated("space", MAY_USE_SPACE)),
    )


def _may_use_space(_: int) -> Condition:
    return any_of(ADMIN, space_role("can_consume_data", "can_edit", "can_manage"))


TERMS: dict[str, Callable[[int], Condition]] = {
    held(1).name: _held,
    on_all_listed(1).name: _on_all_listed,
    on_all_counted(1).name: _on_all_counted,
    PLACES.name: _places,
    READS_SECRETS.name: _reads_secrets,
    MAY_USE_SPACE.name: _may_use_space,
}
