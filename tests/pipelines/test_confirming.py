"""Confirming a repointed connection or destination: what saving needs, of what was shown, by who then answers for it."""

from typing import Any

from tests.pipelines.test_code_secrets import allow, secret_of
from tests.pipelines.works import Works, delivery, notebook, source
from tests.spaces.connections.support import PLACE

CONSUME = "can_consume_data"


def repoint(works: Works, endpoint: str, host: str, member: str = "Olga") -> None:
    kind = "connections" if endpoint.startswith("con_") else "destinations"
    changed = {"place": {**PLACE, "host": host}}
    works.ok(works.as_(member).request("PATCH", f"/api/{kind}/{endpoint}", json=changed))


def versions(works: Works, member: str, pipeline: str) -> dict[str, int]:
    """What a member is shown, as they would confirm it."""
    return {one["id"]: one["version"] for one in works.shown(member, pipeline)["endpoints"]}


def confirm(works: Works, member: str, pipeline: str, seen: dict[str, int]) -> Any:
    return works.as_(member).post(f"/api/pipelines/{pipeline}/confirm", {"versions": seen})


def test_confirming_needs_what_saving_needs(works: Works) -> None:
    found = works.made("Adam", source(connection=works.database, grain=True))
    repoint(works, works.database, "needs.example.com")
    seen = versions(works, "Adam", found)
    works.grant("Ben", "viewer", "layer:land")
    works.role("Ben", CONSUME)
    assert confirm(works, "Ben", found, seen).status_code == 403
    works.grant("Ben", "editor", "layer:land")
    works.take("Ben", CONSUME)
    # Ben may start it: it runs as Adam, who may use the connection.
    assert "trigger" in works.may("Ben", found)
    assert confirm(works, "Ben", found, seen).status_code == 403
    works.role("Ben", CONSUME)
    assert confirm(works, "Ben", found, seen).status_code == 200


def test_the_confirmer_is_the_last_saver_from_then_on(works: Works) -> None:
    found = works.made("Adam", source(connection=works.database, grain=True))
    works.grant("Ben", "editor", "layer:land")
    works.role("Ben", CONSUME)
    repoint(works, works.database, "saver.example.com")
    works.ok(confirm(works, "Ben", found, versions(works, "Ben", found)))
    shown = works.shown("Adam", found)
    assert (shown["acts_for"], shown["saved_by"]) == (works.member("Ben"), works.member("Ben"))
    assert works.start("Adam", found) == 200
    works.take("Ben", CONSUME)
    assert works.start("Adam", found) == 403
    # Adam takes it over by a save of his own.
    assert works.patch("Adam", found, definition=source(connection=works.database, grain=True)) == 200
    assert works.start("Adam", found) == 200


def test_what_was_repointed_after_it_was_shown_is_not_confirmed(works: Works) -> None:
    found = works.made("Adam", source(connection=works.database, grain=True))
    repoint(works, works.database, "first.example.com")
    shown = works.shown("Adam", found)["endpoints"]
    assert [(one["config"]["host"], one["version"] - one["confirmed"]) for one in shown] == [("first.example.com", 1)]
    seen = versions(works, "Adam", found)
    repoint(works, works.database, "second.example.com")
    for wrong in (seen, {}, {works.bakery: 1}):
        answer = confirm(works, "Adam", found, wrong)
        assert answer.status_code == 409, wrong
        assert "Mill database" in answer.json()["detail"]
    assert works.start("Adam", found) == 409
    works.ok(confirm(works, "Adam", found, versions(works, "Adam", found)))
    again = confirm(works, "Adam", found, versions(works, "Adam", found))
    assert (again.status_code, "nothing to confirm" in again.json()["detail"]) == (409, True)


def test_saving_confirms_no_place_that_was_repointed(works: Works) -> None:
    found = works.made("Adam", source(connection=works.database, grain=True))
    repoint(works, works.database, "unseen.example.com")
    seen = versions(works, "Adam", found)
    more = source(connection=works.database, grain=True, flour=True)
    assert works.patch("Adam", found, definition=more) == 200
    assert works.start("Adam", found) == 409
    works.ok(confirm(works, "Adam", found, seen))
    assert works.start("Adam", found) == 200
    # What a save names for the first time is chosen as it is now.
    repoint(works, works.shop, "other.example.com", "Tess")
    assert works.patch("Adam", found, definition=source(connection=works.shop, grain=True)) == 200
    assert works.start("Adam", found) == 200


def test_a_delivery_to_a_repointed_destination_waits_for_who_may_use_it(works: Works) -> None:
    works.ok(works.as_("Bea").change(change="share", resource=works.bakery, for_use=True))
    works.grant("Tess", "editor", "table:land.grain")
    found = works.made("Tess", delivery(works.bakery, "land.grain"))
    repoint(works, works.bakery, "owner.example.com", "Bea")
    assert works.start("Tess", found) == 409
    seen = versions(works, "Tess", found)
    works.ok(works.as_("Bea").change(change="share", resource=works.bakery, for_use=False))
    assert confirm(works, "Tess", found, seen).status_code == 403
    works.ok(works.as_("Bea").change(change="share", resource=works.bakery, for_use=True))
    works.ok(confirm(works, "Tess", found, seen))
    assert works.start("Tess", found) == 200
    works.ok(works.as_("Bea").change(change="share", resource=works.bakery, for_use=False))


def test_a_task_is_confirmed_by_who_may_update_it(works: Works) -> None:
    found = works.made("Adam", source(connection=works.shop, grain=True), project=works.project)
    repoint(works, works.shop, "task.example.com", "Tess")
    seen = versions(works, "Adam", found)
    # Tom edits the project's tasks, but writes to none of its tables; Ben operates it.
    assert [confirm(works, who, found, seen).status_code for who in ("Tom", "Ben")] == [403, 403]
    works.grant("Tom", "editor", "layer:land")
    works.ok(confirm(works, "Tom", found, seen))
    assert works.shown("Adam", found)["saved_by"] == works.member("Tom")


def test_an_endpoint_that_one_may_not_see_is_not_shown(works: Works) -> None:
    found = works.made("Adam", source(connection=works.database, grain=True))
    works.grant("Ben", "viewer", "layer:land")
    assert works.shown("Ben", found)["endpoints"] == []
    works.role("Ben", "can_view")
    [shown] = works.shown("Ben", found)["endpoints"]
    assert (shown["name"], shown["config"]) == ("Mill database", None)


def test_confirming_a_notebook_needs_that_code_may_read_its_secrets(works: Works) -> None:
    allow(works, works.database, on=True)
    found = works.made("Adam", notebook((), ("mill.bread",), secrets=[secret_of(works.database)]))
    repoint(works, works.database, "code.example.com")
    allow(works, works.database, on=False)
    refused = confirm(works, "Adam", found, versions(works, "Adam", found))
    assert (refused.status_code, "does not allow code" in refused.json()["detail"]) == (403, True)
    allow(works, works.database, on=True)
    works.ok(confirm(works, "Adam", found, versions(works, "Adam", found)))
    allow(works, works.database, on=False)
