"""API tokens over HTTP: one's own, shown once, narrowed, listed and ended."""

from typing import Any

import pytest

from tests.support.company import Api, Company


def make(millrace: Company, who: str, **body: Any) -> Any:
    return millrace.as_(who).post("/api/tokens", {"name": "mine", **body})


def test_a_token_acts_as_its_maker_and_is_shown_once(millrace: Company) -> None:
    made = make(millrace, "Ben").json()
    assert made["token"].startswith("hgt_")
    assert Api(millrace.client, made["token"]).get("/api/access/me").json()["name"] == "Ben"
    listed = millrace.as_("Ben").get("/api/tokens").json()["items"]
    assert made["token"] not in str(listed)
    assert listed[0]["hint"] == made["token"][:8]


def test_a_token_is_narrowed_as_asked(millrace: Company) -> None:
    made = make(millrace, "Tess", read_only=True, only=["table:service.revenue"]).json()
    api = Api(millrace.client, made["token"])
    assert [one["name"] for one in api.get("/api/resources", kind="table").json()["items"]] == ["service.revenue"]
    assert api.may("execute", "table:service.revenue")
    assert not api.may("edit", "table:service.revenue")
    assert millrace.as_("Tess").get("/api/tokens").json()["items"][0]["only"] == [
        millrace.id("table", "service.revenue")
    ]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"only": ["table:raw.nothing"]}, 404),
        ({"only": ["data_mart:Revenue"]}, 422),
        ({"expires": "2020-01-01T00:00:00Z"}, 422),
        ({"name": ""}, 422),
        ({"name": "a\tb"}, 422),
        ({"colour": "red"}, 422),
    ],
)
def test_wrong_limits_are_said(millrace: Company, body: dict[str, Any], status: int) -> None:
    assert make(millrace, "Tess", **body).status_code == status


def test_nobody_narrows_to_what_they_cannot_see(millrace: Company) -> None:
    hidden, missing = (make(millrace, "Ben", only=[f"table:raw.{name}"]) for name in ("orders", "nothing"))
    assert hidden.status_code == missing.status_code == 404
    # The name is the caller's own word; all else is the same.
    assert hidden.json()["detail"].replace("orders", "nothing") == missing.json()["detail"]


def test_own_tokens_are_ended_and_admins_end_any(millrace: Company) -> None:
    made = make(millrace, "Ben").json()
    assert millrace.as_("Bea").request("DELETE", f"/api/tokens/{made['id']}").status_code == 404
    assert millrace.as_("Bea").get("/api/tokens", all=True).status_code == 403
    assert made["id"] in {one["id"] for one in millrace.as_("Adam").get("/api/tokens", all=True).json()["items"]}
    ended = millrace.as_("Adam").request("DELETE", f"/api/tokens/{made['id']}")
    assert ended.json()["revoked_at"] is not None
    assert Api(millrace.client, made["token"]).get("/api/access/me").status_code == 401
    assert millrace.as_("Ben").request("DELETE", f"/api/tokens/{made['id']}").status_code == 409


def test_a_token_has_the_rights_of_its_maker_now(millrace: Company) -> None:
    api = Api(millrace.client, make(millrace, "Ben").json()["token"])
    assert api.may("see", "data_mart:Revenue")
    millrace.as_("Olga").change(change="set_role", member="Ben", role="admin").raise_for_status()
    assert api.may("delete", "data_mart:Revenue")
    millrace.as_("Olga").change(change="remove_member", member="Ben").raise_for_status()
    assert api.get("/api/access/me").status_code == 401


def test_lists_page(millrace: Company) -> None:
    for _ in range(5):
        make(millrace, "Bea")
    first = millrace.as_("Bea").get("/api/tokens", limit=4).json()
    rest = millrace.as_("Bea").get("/api/tokens", limit=4, cursor=first["next_cursor"]).json()
    assert len({one["id"] for one in first["items"] + rest["items"]}) == 6
    assert rest["next_cursor"] is None
