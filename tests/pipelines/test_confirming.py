"""Confirming a repointed connection or destination: what saving needs, of what was shown, by who then answers for it."""

from typing import Any

from tests.pipelines.pipeline_company import PipelineCompany, delivery, notebook, source
from tests.pipelines.test_code_secrets import allow, secret_of
from tests.spaces.connections.support import PLACE

CONSUME = "can_consume_data"


def repoint(firm: PipelineCompany, endpoint: str, host: str, member: str = "Olga") -> None:
    kind = "connections" if endpoint.startswith("con_") else "destinations"
    changed = {"place": {**PLACE, "host": host}}
    firm.ok(firm.as_(member).request("PATCH", f"/api/{kind}/{endpoint}", json=changed))


def versions(firm: PipelineCompany, member: str, pipeline: str) -> dict[str, int]:
    """What a member is shown, as they would confirm it."""
    return {one["id"]: one["version"] for one in firm.shown(member, pipeline)["endpoints"]}


def confirm(firm: PipelineCompany, member: str, pipeline: str, seen: dict[str, int]) -> Any:
    return firm.as_(member).post(f"/api/pipelines/{pipeline}/confirm", {"versions": seen})


def test_confirming_needs_what_saving_needs(firm: PipelineCompany) -> None:
    found = firm.made("Adam", source(connection=firm.database, grain=True))
    repoint(firm, firm.database, "needs.example.com")
    seen = versions(firm, "Adam", found)
    firm.grant("Ben", "viewer", "layer:land")
    firm.role("Ben", CONSUME)
    assert confirm(firm, "Ben", found, seen).status_code == 403
    firm.grant("Ben", "editor", "layer:land")
    firm.take("Ben", CONSUME)
    # Ben may start it: it runs as Adam, who may use the connection.
    assert "trigger" in firm.may("Ben", found)
    assert confirm(firm, "Ben", found, seen).status_code == 403
    firm.role("Ben", CONSUME)
    assert confirm(firm, "Ben", found, seen).status_code == 200


def test_the_confirmer_is_the_last_saver_from_then_on(firm: PipelineCompany) -> None:
    found = firm.made("Adam", source(connection=firm.database, grain=True))
    firm.grant("Ben", "editor", "layer:land")
    firm.role("Ben", CONSUME)
    repoint(firm, firm.database, "saver.example.com")
    firm.ok(confirm(firm, "Ben", found, versions(firm, "Ben", found)))
    shown = firm.shown("Adam", found)
    assert (shown["acts_for"], shown["saved_by"]) == (firm.member("Ben"), firm.member("Ben"))
    assert firm.start("Adam", found) == 200
    firm.take("Ben", CONSUME)
    assert firm.start("Adam", found) == 403
    # Adam takes it over by a save of his own.
    assert firm.patch("Adam", found, definition=source(connection=firm.database, grain=True)) == 200
    assert firm.start("Adam", found) == 200


def test_what_was_repointed_after_it_was_shown_is_not_confirmed(firm: PipelineCompany) -> None:
    found = firm.made("Adam", source(connection=firm.database, grain=True))
    repoint(firm, firm.database, "first.example.com")
    shown = firm.shown("Adam", found)["endpoints"]
    assert [(one["config"]["host"], one["version"] - one["confirmed"]) for one in shown] == [("first.example.com", 1)]
    seen = versions(firm, "Adam", found)
    repoint(firm, firm.database, "second.example.com")
    for wrong in (seen, {}, {firm.bakery: 1}):
        answer = confirm(firm, "Adam", found, wrong)
        assert answer.status_code == 409, wrong
        assert "Mill database" in answer.json()["detail"]
    assert firm.start("Adam", found) == 409
    firm.ok(confirm(firm, "Adam", found, versions(firm, "Adam", found)))
    again = confirm(firm, "Adam", found, versions(firm, "Adam", found))
    assert (again.status_code, "nothing to confirm" in again.json()["detail"]) == (409, True)


def test_saving_confirms_no_place_that_was_repointed(firm: PipelineCompany) -> None:
    found = firm.made("Adam", source(connection=firm.database, grain=True))
    repoint(firm, firm.database, "unseen.example.com")
    seen = versions(firm, "Adam", found)
    more = source(connection=firm.database, grain=True, flour=True)
    assert firm.patch("Adam", found, definition=more) == 200
    assert firm.start("Adam", found) == 409
    firm.ok(confirm(firm, "Adam", found, seen))
    assert firm.start("Adam", found) == 200
    # What a save names for the first time is chosen as it is now.
    repoint(firm, firm.shop, "other.example.com", "Tess")
    assert firm.patch("Adam", found, definition=source(connection=firm.shop, grain=True)) == 200
    assert firm.start("Adam", found) == 200


def test_a_delivery_to_a_repointed_destination_waits_for_who_may_use_it(firm: PipelineCompany) -> None:
    firm.ok(firm.as_("Bea").change(change="share", resource=firm.bakery, for_use=True))
    firm.grant("Tess", "editor", "table:land.grain")
    found = firm.made("Tess", delivery(firm.bakery, "land.grain"))
    repoint(firm, firm.bakery, "owner.example.com", "Bea")
    assert firm.start("Tess", found) == 409
    seen = versions(firm, "Tess", found)
    firm.ok(firm.as_("Bea").change(change="share", resource=firm.bakery, for_use=False))
    assert confirm(firm, "Tess", found, seen).status_code == 403
    firm.ok(firm.as_("Bea").change(change="share", resource=firm.bakery, for_use=True))
    firm.ok(confirm(firm, "Tess", found, seen))
    assert firm.start("Tess", found) == 200
    firm.ok(firm.as_("Bea").change(change="share", resource=firm.bakery, for_use=False))


def test_a_task_is_confirmed_by_who_may_update_it(firm: PipelineCompany) -> None:
    found = firm.made("Adam", source(connection=firm.shop, grain=True), project=firm.project)
    repoint(firm, firm.shop, "task.example.com", "Tess")
    seen = versions(firm, "Adam", found)
    # Tom edits the project's tasks, but writes to none of its tables; Ben operates it.
    assert [confirm(firm, who, found, seen).status_code for who in ("Tom", "Ben")] == [403, 403]
    firm.grant("Tom", "editor", "layer:land")
    firm.ok(confirm(firm, "Tom", found, seen))
    assert firm.shown("Adam", found)["saved_by"] == firm.member("Tom")


def test_an_endpoint_that_one_may_not_see_is_not_shown(firm: PipelineCompany) -> None:
    found = firm.made("Adam", source(connection=firm.database, grain=True))
    firm.grant("Ben", "viewer", "layer:land")
    assert firm.shown("Ben", found)["endpoints"] == []
    firm.role("Ben", "can_view")
    [shown] = firm.shown("Ben", found)["endpoints"]
    assert (shown["name"], shown["config"]) == ("Mill database", None)


def test_confirming_a_notebook_needs_that_code_may_read_its_secrets(firm: PipelineCompany) -> None:
    allow(firm, firm.database, on=True)
    found = firm.made("Adam", notebook((), ("mill.bread",), secrets=[secret_of(firm.database)]))
    repoint(firm, firm.database, "code.example.com")
    allow(firm, firm.database, on=False)
    refused = confirm(firm, "Adam", found, versions(firm, "Adam", found))
    assert (refused.status_code, "does not allow code" in refused.json()["detail"]) == (403, True)
    allow(firm, firm.database, on=True)
    firm.ok(confirm(firm, "Adam", found, versions(firm, "Adam", found)))
    allow(firm, firm.database, on=False)
