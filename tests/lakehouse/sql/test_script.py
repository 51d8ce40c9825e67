"""What a SQL text sets before its statement."""

import time

import pytest

from headgate.contracts.sql_script import Script, split
from headgate.kit.errors import Invalid


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1", Script("SELECT 1")),
        ("USE raw;SELECT 1", Script("        SELECT 1", layer="raw")),
        ("use schema lake . raw ;\nSELECT 1", Script(" " * 23 + "\nSELECT 1", layer="raw")),
        ("SET TIME ZONE '+02:00'; SELECT 1", Script(" " * 23 + " SELECT 1", "+02:00")),
        ('SET TIME ZONE "UTC"; SELECT 1', Script(" " * 20 + " SELECT 1")),
        ("-- a\nUSE raw; /* b; */ USE bin; SELECT 'USE x;'", Script(" " * 4 + "\n" + " " * 26 + " SELECT 'USE x;'", layer="bin")),
    ],
)  # fmt: skip
def test_settings_are_taken_and_positions_stay(text: str, expected: Script) -> None:
    assert split(text) == expected
    assert len(split(text).sql) == len(text)


@pytest.mark.parametrize(
    "text",
    [
        "", ";", "USE raw", "USE raw;", "USE raw; -- nothing", "SET TIME ZONE 'UTC';", "SELECT 1; USE raw; SELECT 2",
        "SET x = 1; SELECT 1", "USE spark_catalog.raw; SELECT 1", "USE `raw`; SELECT 1", "SET TIME ZONE LOCAL; SELECT 1",
        "/*+ USE raw; */ SELECT 1", "SELECT 'USE raw; SELECT 1'", "SET TIME ZONE 'a' 'b'; SELECT 1", "SET TIME ZONE 'UTC\"; SELECT 1",
    ],
)  # fmt: skip
def test_everything_else_is_left_to_spark(text: str) -> None:
    assert split(text) == Script(text)
    assert not split(text).has_settings


@pytest.mark.parametrize("zone", ["", "Atlantis", "UTC; x", "+2", "+19:00", "+18:30", "x" * 9000])
def test_a_time_zone_must_exist(zone: str) -> None:
    with pytest.raises(Invalid, match="there is no such time zone"):
        split(f"SET TIME ZONE '{zone}'; SELECT 1")


def test_long_texts_are_split_at_once() -> None:
    began = time.monotonic()
    for text in ("/* */" * 20_000, "USE a;" * 16_000 + "SELECT 1", "/*" * 50_000, "-" * 100_000, " " * 100_000 + "USE"):
        split(text)
    assert time.monotonic() - began < 20
