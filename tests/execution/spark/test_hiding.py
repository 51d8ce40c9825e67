"""Secrets in what others say: gone from it, without making it unreadable."""

from collections.abc import Callable
from typing import Any

import pytest

from headgate.contracts.pipelines.streams import Stream
from headgate.execution.deliveries.spark import tables
from headgate.execution.sources import jdbc
from headgate.execution.sources.postgresql import DIALECT
from headgate.execution.sources.readers import ReadOptions
from headgate.execution.sources.rest.failures import redact
from headgate.execution.spark.failures import Cause

SAID = 'FATAL: password authentication failed for user "anna"'


@pytest.mark.parametrize(
    ("secrets", "text", "left"),
    [
        (["long secret"], "it says long secrets", "it says ***s"),
        (["abcd", "abcdef"], "abcdef abcd xabcdx", "*** *** x***x"),
        (["a"], "a table that was; a=a", "*** table that was; ***=***"),
        (["x7"], "token=x7&more x7x ax7 x7_ (x7)", "token=***&more x7x ax7 x7_ (***)"),
        (["äö"], "äö äöü", "*** äöü"),
        ([".*"], "a.b .* ", "a.b *** "),
        (["", "abc"], "abcabc", "abcabc"),
        ([], "as it was", "as it was"),
    ],
)
def test_long_ones_go_wherever_they_are_and_short_ones_as_words(secrets: list[str], text: str, left: str) -> None:
    assert redact(text, secrets) == left


def tellers(password: str) -> list[Callable[[Cause], Any]]:
    """Who tells what a database says, of what is read and of what is delivered."""
    asked = ReadOptions("postgresql", Stream(name="s", table="t"), secrets={"password": password})
    return [jdbc._teller(DIALECT, asked), tables._teller(password)]


@pytest.mark.parametrize(
    ("password", "told"),
    [
        ("a", SAID),
        ("ail", SAID),
        ("for", SAID.replace(" for ", " … ")),
        ("", SAID),
        ("authentic", SAID.replace("authentic", "…")),
    ],
)
def test_what_a_database_says_stays_readable(password: str, told: str) -> None:
    for tell in tellers(password):
        found = tell(Cause(("org.postgresql.util.PSQLException",), SAID, None))
        assert found.message.endswith(f"message: {told}"), found.message
