"""What is said of a query that could be read when its save began, and cannot any more."""

from typing import Any

from tests.lakehouse.sql.support import STATEMENTS, Hand
from tests.support.company import Company


def refused(millrace: Company, *tables: str) -> Any:
    """Why a query of Tom's that has loaded these tables is not saved."""
    begun = millrace.as_("Tom").post("/api/sql/saved", {"name": "Kept", "sql": "SELECT 1"}).json()["statement"]
    hand = Hand(millrace)
    (job,) = hand.claim()
    hand.load(begun, *tables)
    assert hand.finish(job).json() == {"state": "failed"}
    return millrace.as_("Tom").get(f"{STATEMENTS}/{begun}").json()["error"]


def test_tables_that_its_author_may_not_read_any_more_are_named(millrace: Company) -> None:
    assert refused(millrace, "raw.orders", "service.revenue") == {
        "code": "NOT_SAVED",
        "message": (
            "There is no table service.revenue that you may read; ask for Viewer on it, or remove it from the query"
        ),
    }
    assert (
        "are no tables service.revenue, trusted.orders that"
        in refused(millrace, "trusted.orders", "service.revenue")["message"]
    )
    assert millrace.as_("Tom").get("/api/sql/saved").json()["items"] == []
    denials = "SELECT kind FROM audit_events WHERE event = 'access.denied' AND action = 'create'"
    assert millrace.rows(denials) == [("saved_query",)] * 2
