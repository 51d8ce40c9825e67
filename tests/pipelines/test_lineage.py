"""Lineage as members see it: whole to those who see all of it, and cut where they may not see on."""

from typing import Any

from tests.pipelines.runs.support import make
from tests.support.company import Company


def names(millrace: Company, member: str, table: str, **more: Any) -> tuple[set[str], set[tuple[str, str]]]:
    """The names on an answer, and its edges by name."""
    answer = millrace.as_(member).get(f"/api/lineage/{millrace.id('table', table)}", **more)
    assert answer.status_code == 200, answer.text
    known = {one["id"]: one["name"] for one in answer.json()["nodes"]}
    return set(known.values()), {(known[one["source"]], known[one["target"]]) for one in answer.json()["edges"]}


def test_a_chain_is_shown_in_both_directions(millrace: Company) -> None:
    make(millrace, name="Versions", table="trusted.orders", output="service.versions")
    found, edges = names(millrace, "Tess", "trusted.orders")
    chain = {"raw.orders", "Refine orders", "trusted.orders", "Versions", "service.versions", "Land shop orders"}
    assert found == chain
    assert edges == {
        ("Land shop orders", "raw.orders"),
        ("raw.orders", "Refine orders"),
        ("Refine orders", "trusted.orders"),
        ("trusted.orders", "Versions"),
        ("Versions", "service.versions"),
    }
    assert names(millrace, "Tess", "trusted.orders", direction="downstream")[0] == {
        "trusted.orders",
        "Versions",
        "service.versions",
    }
    assert "Land shop orders" not in names(millrace, "Tess", "trusted.orders", depth=1)[0]


def test_a_way_ends_where_one_may_not_see_on(millrace: Company) -> None:
    make(millrace, name="Versions", table="trusted.orders", output="service.versions")
    # Ana sees the layer trusted: neither what comes before it, nor what is made of it.
    assert names(millrace, "Ana", "trusted.orders") == ({"trusted.orders"}, set())
    hidden = millrace.as_("Bea").get(f"/api/lineage/{millrace.id('table', 'trusted.orders')}")
    missing = millrace.as_("Bea").get(f"/api/lineage/tbl_{'0' * 20}")
    assert (hidden.status_code, hidden.json()["detail"]) == (missing.status_code, missing.json()["detail"])


def test_a_pipeline_that_names_hidden_tables_is_left_out(millrace: Company) -> None:
    for number in range(12):
        make(millrace, name=f"Versions {number}", table="trusted.orders", output=f"service.versions_{number}")
    found, _ = names(millrace, "Tess", "trusted.orders", direction="downstream", depth=1)
    assert len(found) == 25
    assert (
        millrace.as_("Tess")
        .change(change="grant", to="Ana", resource="table:service.versions_3", level="viewer")
        .status_code
        == 200
    )
    found, edges = names(millrace, "Ana", "trusted.orders", direction="downstream")
    assert found == {"trusted.orders", "Versions 3", "service.versions_3"}
    assert len(edges) == 2
