"""Confirming a repointed connection or destination: what saving needs, of what was shown, by who then answers for it."""

from typing import Any

from tests.pipelines.pipeline_company import PipelineCompany, delivery, notebook, source
from tests.pipelines.test_code_secrets import allow, secret_of
from tests.spaces.connections.support import PLACE

CONSUME = "can_consume_data"


def repoint(pipeline_company: PipelineCompany, endpoint: str, host: str, member: str = "Olga") -> None:
    kind = "connections" if endpoint.startswith("con_") else "destinations"
    changed = {"place": {**PLACE, "host": host}}
    pipeline_company.ok(pipeline_company.as_(member).request("PATCH", f"/api/{kind}/{endpoint}", json=changed))


def versions(pipeline_company: PipelineCompany, member: str, pipeline: str) -> dict[str, int]:
    """What a member is shown, as they would confirm it."""
    return {one["id"]: one["version"] for one in pipeline_company.shown(member, pipeline)["endpoints"]}


def confirm(pipeline_company: PipelineCompany, member: str, pipeline: str, seen: dict[str, int]) -> Any:
    return pipeline_company.as_(member).post(f"/api/pipelines/{pipeline}/confirm", {"versions": seen})


def test_confirming_needs_what_saving_needs(pipeline_company: PipelineCompany) -> None:
    found = pipeline_company.made("Adam", source(connection=pipeline_company.database, grain=True))
    repoint(pipeline_company, pipeline_company.database, "needs.example.com")
    seen = versions(pipeline_company, "Adam", found)
    pipeline_company.grant("Ben", "viewer", "layer:land")
    pipeline_company.role("Ben", CONSUME)
    assert confirm(pipeline_company, "Ben", found, seen).status_code == 403
    pipeline_company.grant("Ben", "editor", "layer:land")
    pipeline_company.take("Ben", CONSUME)
    # Ben may start it: it runs as Adam, who may use the connection.
    assert "trigger" in pipeline_company.may("Ben", found)
    assert confirm(pipeline_company, "Ben", found, seen).status_code == 403
    pipeline_company.role("Ben", CONSUME)
    assert confirm(pipeline_company, "Ben", found, seen).status_code == 200


def test_the_confirmer_is_the_last_saver_from_then_on(pipeline_company: PipelineCompany) -> None:
    found = pipeline_company.made("Adam", source(connection=pipeline_company.database, grain=True))
    pipeline_company.grant("Ben", "editor", "layer:land")
    pipeline_company.role("Ben", CONSUME)
    repoint(pipeline_company, pipeline_company.database, "saver.example.com")
    pipeline_company.ok(confirm(pipeline_company, "Ben", found, versions(pipeline_company, "Ben", found)))
    shown = pipeline_company.shown("Adam", found)
    assert (shown["acts_for"], shown["saved_by"]) == (pipeline_company.member("Ben"), pipeline_company.member("Ben"))
    assert pipeline_company.start("Adam", found) == 200
    pipeline_company.take("Ben", CONSUME)
    assert pipeline_company.start("Adam", found) == 403
    # Adam takes it over by a save of his own.
    assert (
        pipeline_company.patch("Adam", found, definition=source(connection=pipeline_company.database, grain=True))
        == 200
    )
    assert pipeline_company.start("Adam", found) == 200


def test_what_was_repointed_after_it_was_shown_is_not_confirmed(pipeline_company: PipelineCompany) -> None:
    found = pipeline_company.made("Adam", source(connection=pipeline_company.database, grain=True))
    repoint(pipeline_company, pipeline_company.database, "first.example.com")
    shown = pipeline_company.shown("Adam", found)["endpoints"]
    assert [(one["config"]["host"], one["version"] - one["confirmed"]) for one in shown] == [("first.example.com", 1)]
    seen = versions(pipeline_company, "Adam", found)
    repoint(pipeline_company, pipeline_company.database, "second.example.com")
    for wrong in (seen, {}, {pipeline_company.bakery: 1}):
        answer = confirm(pipeline_company, "Adam", found, wrong)
        assert answer.status_code == 409, wrong
        assert "Mill database" in answer.json()["detail"]
    assert pipeline_company.start("Adam", found) == 409
    pipeline_company.ok(confirm(pipeline_company, "Adam", found, versions(pipeline_company, "Adam", found)))
    again = confirm(pipeline_company, "Adam", found, versions(pipeline_company, "Adam", found))
    assert (again.status_code, "nothing to confirm" in again.json()["detail"]) == (409, True)


def test_saving_confirms_no_place_that_was_repointed(pipeline_company: PipelineCompany) -> None:
    found = pipeline_company.made("Adam", source(connection=pipeline_company.database, grain=True))
    repoint(pipeline_company, pipeline_company.database, "unseen.example.com")
    seen = versions(pipeline_company, "Adam", found)
    more = source(connection=pipeline_company.database, grain=True, flour=True)
    assert pipeline_company.patch("Adam", found, definition=more) == 200
    assert pipeline_company.start("Adam", found) == 409
    pipeline_company.ok(confirm(pipeline_company, "Adam", found, seen))
    assert pipeline_company.start("Adam", found) == 200
    # What a save names for the first time is chosen as it is now.
    repoint(pipeline_company, pipeline_company.shop, "other.example.com", "Tess")
    assert pipeline_company.patch("Adam", found, definition=source(connection=pipeline_company.shop, grain=True)) == 200
    assert pipeline_company.start("Adam", found) == 200


def test_a_delivery_to_a_repointed_destination_waits_for_who_may_use_it(pipeline_company: PipelineCompany) -> None:
    pipeline_company.ok(
        pipeline_company.as_("Bea").change(change="share", resource=pipeline_company.bakery, for_use=True)
    )
    pipeline_company.grant("Tess", "editor", "table:land.grain")
    found = pipeline_company.made("Tess", delivery(pipeline_company.bakery, "land.grain"))
    repoint(pipeline_company, pipeline_company.bakery, "owner.example.com", "Bea")
    assert pipeline_company.start("Tess", found) == 409
    seen = versions(pipeline_company, "Tess", found)
    pipeline_company.ok(
        pipeline_company.as_("Bea").change(change="share", resource=pipeline_company.bakery, for_use=False)
    )
    assert confirm(pipeline_company, "Tess", found, seen).status_code == 403
    pipeline_company.ok(
        pipeline_company.as_("Bea").change(change="share", resource=pipeline_company.bakery, for_use=True)
    )
    pipeline_company.ok(confirm(pipeline_company, "Tess", found, seen))
    assert pipeline_company.start("Tess", found) == 200
    pipeline_company.ok(
        pipeline_company.as_("Bea").change(change="share", resource=pipeline_company.bakery, for_use=False)
    )


def test_a_task_is_confirmed_by_who_may_update_it(pipeline_company: PipelineCompany) -> None:
    found = pipeline_company.made(
        "Adam", source(connection=pipeline_company.shop, grain=True), project=pipeline_company.project
    )
    repoint(pipeline_company, pipeline_company.shop, "task.example.com", "Tess")
    seen = versions(pipeline_company, "Adam", found)
    # Tom edits the project's tasks, but writes to none of its tables; Ben operates it.
    assert [confirm(pipeline_company, who, found, seen).status_code for who in ("Tom", "Ben")] == [403, 403]
    pipeline_company.grant("Tom", "editor", "layer:land")
    pipeline_company.ok(confirm(pipeline_company, "Tom", found, seen))
    assert pipeline_company.shown("Adam", found)["saved_by"] == pipeline_company.member("Tom")


def test_an_endpoint_that_one_may_not_see_is_not_shown(pipeline_company: PipelineCompany) -> None:
    found = pipeline_company.made("Adam", source(connection=pipeline_company.database, grain=True))
    pipeline_company.grant("Ben", "viewer", "layer:land")
    assert pipeline_company.shown("Ben", found)["endpoints"] == []
    pipeline_company.role("Ben", "can_view")
    [shown] = pipeline_company.shown("Ben", found)["endpoints"]
    assert (shown["name"], shown["config"]) == ("Mill database", None)


def test_confirming_a_notebook_needs_that_code_may_read_its_secrets(pipeline_company: PipelineCompany) -> None:
    allow(pipeline_company, pipeline_company.database, on=True)
    found = pipeline_company.made("Adam", notebook((), ("mill.bread",), secrets=[secret_of(pipeline_company.database)]))
    repoint(pipeline_company, pipeline_company.database, "code.example.com")
    allow(pipeline_company, pipeline_company.database, on=False)
    refused = confirm(pipeline_company, "Adam", found, versions(pipeline_company, "Adam", found))
    assert (refused.status_code, "does not allow code" in refused.json()["detail"]) == (403, True)
    allow(pipeline_company, pipeline_company.database, on=True)
    pipeline_company.ok(confirm(pipeline_company, "Adam", found, versions(pipeline_company, "Adam", found)))
    allow(pipeline_company, pipeline_company.database, on=False)
