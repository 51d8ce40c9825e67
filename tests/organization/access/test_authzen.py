"""The AuthZEN Authorization API 1.0, on the product's own decisions."""

from typing import Any

import pytest

from tests.support.company import Company

EVALUATION = "/access/v1/evaluation"


def asked(subject: str, action: str, kind: str, name: str) -> dict[str, Any]:
    return {
        "subject": {"type": "member", "id": subject},
        "action": {"name": action},
        "resource": {"type": kind, "id": name},
    }


def test_an_evaluation_is_a_decision(millrace: Company) -> None:
    adam = millrace.as_("Adam")
    yes = adam.post(EVALUATION, asked("Ben", "see", "data_mart", "Revenue"))
    assert (yes.status_code, yes.json()["decision"]) == (200, True)
    no = adam.post(EVALUATION, asked("Ben", "edit", "data_mart", "Revenue"))
    assert (no.status_code, no.json()["decision"]) == (200, False)
    assert no.json()["context"]["ways"]


def test_ids_and_the_type_user_work_too(millrace: Company) -> None:
    body = asked(millrace.id("member", "Ben"), "see", "data_mart", millrace.id("data_mart", "Revenue"))
    body["subject"]["type"] = "user"
    assert millrace.as_("Ben").post(EVALUATION, body).json()["decision"] is True


@pytest.mark.parametrize(
    "change",
    [
        {"subject": {"type": "member", "id": "Nobody"}},
        {"subject": {"type": "robot", "id": "Ben"}},
        {"resource": {"type": "data_mart", "id": "Nothing"}},
        {"resource": {"type": "nonsense", "id": "Revenue"}},
        {"action": {"name": "fly"}},
    ],
)
def test_what_is_unknown_is_denied(millrace: Company, change: dict[str, Any]) -> None:
    answer = millrace.as_("Adam").post(EVALUATION, {**asked("Ben", "see", "data_mart", "Revenue"), **change})
    assert (answer.status_code, answer.json()["decision"]) == (200, False)


@pytest.mark.parametrize("missing", ["subject", "action", "resource"])
def test_what_is_missing_is_a_bad_request(millrace: Company, missing: str) -> None:
    body = asked("Ben", "see", "data_mart", "Revenue")
    del body[missing]
    for path in (EVALUATION, "/access/v1/evaluations"):
        answer = millrace.as_("Adam").post(path, body)
        assert answer.status_code == 400
        assert missing in answer.json()["detail"]


def test_unknown_fields_are_ignored_and_the_request_id_comes_back(millrace: Company) -> None:
    body = {**asked("Ben", "see", "data_mart", "Revenue"), "weather": "fine", "context": {"time": "now"}}
    answer = millrace.as_("Ben").request("POST", EVALUATION, json=body, headers={"X-Request-ID": "bfe9eb29"})
    assert answer.json()["decision"] is True
    assert answer.headers["x-request-id"] == "bfe9eb29"


def test_others_may_not_ask_about_a_member(millrace: Company) -> None:
    assert millrace.as_("Ben").post(EVALUATION, asked("Tess", "see", "data_mart", "Revenue")).status_code == 403
    assert millrace.as_(None).post(EVALUATION, asked("Ben", "see", "data_mart", "Revenue")).status_code == 401


def test_a_state_can_be_given_in_the_context(millrace: Company) -> None:
    body = asked("Ben", "edit", "report", "Weekly revenue")
    body["context"] = {"with": {"destination": "Nowhere"}}
    assert millrace.as_("Ben").post(EVALUATION, body).json()["decision"] is False
    body["context"] = {"with": {"colour": "red"}}
    assert millrace.as_("Ben").post(EVALUATION, body).status_code == 400


def test_several_evaluations_take_defaults_from_the_request(millrace: Company) -> None:
    body = {
        "subject": {"type": "member", "id": "Ben"},
        "action": {"name": "see"},
        "evaluations": [
            {"resource": {"type": "data_mart", "id": "Revenue"}},
            {"resource": {"type": "table", "id": "raw.orders"}},
            {"resource": {"type": "data_mart", "id": "Revenue"}, "action": {"name": "use"}},
        ],
    }
    answer = millrace.as_("Ben").post("/access/v1/evaluations", body).json()
    assert [one["decision"] for one in answer["evaluations"]] == [True, False, True]
    assert "decision" not in answer


@pytest.mark.parametrize(
    ("semantic", "expected"),
    [("execute_all", [True, False, True]), ("deny_on_first_deny", [True, False]), ("permit_on_first_permit", [True])],
)
def test_evaluations_can_stop_early(millrace: Company, semantic: str, expected: list[bool]) -> None:
    marts = [("see", True), ("delete", False), ("use", True)]
    body = {
        "subject": {"type": "member", "id": "Ben"},
        "resource": {"type": "data_mart", "id": "Revenue"},
        "evaluations": [{"action": {"name": action}} for action, _ in marts],
        "options": {"evaluations_semantic": semantic, "another": 1},
    }
    answer = millrace.as_("Ben").post("/access/v1/evaluations", body).json()
    assert [one["decision"] for one in answer["evaluations"]] == expected


def test_no_evaluations_means_one(millrace: Company) -> None:
    body = {**asked("Ben", "see", "data_mart", "Revenue"), "evaluations": []}
    answer = millrace.as_("Ben").post("/access/v1/evaluations", body).json()
    assert answer["decision"] is True
    assert "evaluations" not in answer


def test_one_of_several_that_may_not_be_asked_is_an_error_of_its_own(millrace: Company) -> None:
    body = {
        "action": {"name": "see"},
        "resource": {"type": "data_mart", "id": "Revenue"},
        "evaluations": [{"subject": {"type": "member", "id": one}} for one in ("Ben", "Tess")],
    }
    answer = millrace.as_("Ben").post("/access/v1/evaluations", body).json()["evaluations"]
    assert [one["decision"] for one in answer] == [True, False]
    assert answer[1]["context"]["error"]["status"] == 403


def test_searching_subjects_pages_to_the_end(millrace: Company) -> None:
    body: dict[str, Any] = {
        "subject": {"type": "member"},
        "action": {"name": "see"},
        "resource": {"type": "data_mart", "id": "Revenue"},
        "page": {"limit": 3},
    }
    found: list[str] = []
    while True:
        answer = millrace.as_("Tess").post("/access/v1/search/subject", body).json()
        found += [one["id"] for one in answer["results"]]
        assert answer["page"]["count"] == len(answer["results"])
        if not answer["page"]["next_token"]:
            break
        body["page"]["token"] = answer["page"]["next_token"]
    assert sorted(found) == sorted(
        millrace.id("member", one) for one in ("Adam", "Ana", "Bea", "Ben", "Dora", "Olga", "Tess")
    )
    body["action"]["name"] = "edit"
    assert millrace.as_("Tess").post("/access/v1/search/subject", body).status_code == 400


def test_searching_subjects_is_for_who_shares(millrace: Company) -> None:
    body = {
        "subject": {"type": "member"},
        "action": {"name": "see"},
        "resource": {"type": "data_mart", "id": "Revenue"},
    }
    assert millrace.as_("Ben").post("/access/v1/search/subject", body).status_code == 403
    body["resource"]["id"] = "Pipeline health"
    assert millrace.as_("Ben").post("/access/v1/search/subject", body).json()["results"] == []


def test_searching_resources_gives_what_decide_gives(millrace: Company) -> None:
    body = {"subject": {"type": "member", "id": "Tom"}, "action": {"name": "edit"}, "resource": {"type": "table"}}
    answer = millrace.as_("Adam").post("/access/v1/search/resource", body).json()
    expected = {millrace.id("table", one) for one in ("raw.orders", "raw.payments")}
    assert {one["id"] for one in answer["results"]} == expected
    assert answer["page"]["next_token"] == ""
    body["resource"]["type"] = "saved_query"
    body["subject"]["id"], body["action"]["name"] = "Ana", "see"
    assert millrace.as_("Adam").post("/access/v1/search/resource", body).json()["results"] == []
    assert len(millrace.as_("Ana").post("/access/v1/search/resource", body).json()["results"]) == 1


def test_searching_actions_gives_all_that_are_allowed(millrace: Company) -> None:
    body = {"subject": {"type": "member", "id": "Ben"}, "resource": {"type": "data_mart", "id": "Revenue"}}
    answer = millrace.as_("Ben").post("/access/v1/search/action", body).json()
    assert answer["results"] == [{"name": "see"}, {"name": "use"}]
    body["resource"] = {"type": "organization", "id": "organization"}
    actions = millrace.as_("Ben").post("/access/v1/search/action", body).json()["results"]
    assert actions == [{"name": "invite_business"}]


def test_the_metadata_says_where_the_endpoints_are(millrace: Company) -> None:
    found = millrace.as_(None).get("/.well-known/authzen-configuration").json()
    assert found["access_evaluation_endpoint"] == found["policy_decision_point"] + EVALUATION
    assert found["search_action_endpoint"].endswith("/access/v1/search/action")
