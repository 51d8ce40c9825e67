"""Rows over HTTP: at least once, each batch under a key of its own that is the same whenever it is sent."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.execution.deliveries import http as sending
from headgate.execution.steps import deliver
from headgate.execution.steps.context import RunStopped
from tests.execution.deliveries.support import ROWS, Plan, failure, http, killed
from tests.support.api import SECRET, USER, Api, Reply, Seen, basic, serving
from tests.support.installation import eventually

PATH = "/v1/rows"
BATCHES = [ROWS[:2], ROWS[2:4], ROWS[4:]]


@pytest.fixture
def api() -> Iterator[Api]:
    with serving() as found:
        found.on(PATH, lambda _: Reply({"taken": True}, 201))
        yield found


def plan(api: Api, folder: Path, secrets: dict[str, str] | None = None, **more: Any) -> Plan:
    return Plan(http(api.url, secrets, **more), folder, {"target": PATH, "batch": 2})


def batches(api: Api) -> list[list[dict[str, Any]]]:
    """What arrived, as it arrived."""
    return [json.loads(one.body) for one in api.seen if one.path == PATH]


def keys(api: Api) -> list[str]:
    return [one.headers["idempotency-key"] for one in api.seen if one.path == PATH]


def taken(api: Api) -> list[dict[str, Any]]:
    """What a receiver has that takes each key once; what comes again under a key is the same."""
    known: dict[str, bytes] = {}
    for one in api.seen:
        assert known.setdefault(one.headers["idempotency-key"], one.body) == one.body
    return [row for body in known.values() for row in json.loads(body)]


def test_rows_are_sent_in_batches_each_with_a_key(api: Api, tmp_path: Path) -> None:
    one = plan(api, tmp_path, {"token": SECRET}, auth={"style": "bearer"}, headers={"X-Client-Name": "water"})
    result = one.deliver()
    assert batches(api) == BATCHES
    assert len(set(keys(api))) == 3
    assert all(key.startswith(one.run) for key in keys(api))
    (first, *_) = api.seen
    assert (first.method, first.path, first.headers["content-type"]) == ("POST", PATH, "application/json")
    assert (first.headers["authorization"], first.headers["x-client-name"]) == (f"Bearer {SECRET}", "water")
    assert (result.rows_out, result.detail) == (5, {"snapshot": "7000000000000000001", "batches": 3})
    assert "at least once" in one.log
    assert "Delivered 5 rows in 3 batches" in one.log


def test_another_run_has_other_keys_and_the_same_run_the_same(api: Api, tmp_path: Path) -> None:
    one = plan(api, tmp_path)
    one.deliver()
    plan(api, tmp_path).deliver()
    assert len(set(keys(api))) == 6
    (tmp_path / f"{one.run}.json").unlink()
    one.again().deliver()
    assert keys(api)[6:] == keys(api)[:3]


@pytest.mark.processes
@pytest.mark.parametrize(
    "point", ["delivery: rows exported", *(f"delivery: batch {number} sent" for number in range(3))]
)
def test_a_run_that_is_killed_and_begun_again_sends_each_row_at_least_once(
    api: Api, tmp_path: Path, point: str
) -> None:
    one = plan(api, tmp_path)
    assert killed(one, point) == -9
    assert one.again().deliver().rows_out == 5
    assert taken(api) == ROWS
    assert one.again(fence=3).deliver().rows_out == 5
    assert taken(api) == ROWS


def test_what_was_confirmed_is_not_sent_again(api: Api, tmp_path: Path) -> None:
    api.fails(PATH, Reply(), Reply(), Reply({"message": "no such field: name"}, 422))
    one = plan(api, tmp_path)
    error = failure(one)
    assert (error.code, error.passing) == ("API_REFUSED", False)
    assert "no such field: name" in error.message
    again = one.again()
    again.deliver()
    assert batches(api) == [*BATCHES, BATCHES[2]]
    assert keys(api)[2] == keys(api)[3]
    assert "has already delivered 2 batches" in again.log


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again_under_the_same_key(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(sending, "pause", lambda *_: 0.01)
    api.fails(PATH, Reply({}, status), Reply({}, status))
    one = plan(api, tmp_path)
    one.deliver()
    assert batches(api) == [BATCHES[0], BATCHES[0], *BATCHES]
    assert len(set(keys(api)[:3])) == 1
    assert f"answered batch 0 with status {status}" in one.log


def test_a_receiver_says_how_long_to_wait(api: Api, tmp_path: Path) -> None:
    api.fails(PATH, Reply({}, 429, {"Retry-After": "1"}))
    plan(api, tmp_path).deliver()
    assert api.seen[1].at - api.seen[0].at >= 1
    api.fails(PATH, Reply({}, 503, {"Retry-After": "86400"}))
    error = failure(plan(api, tmp_path))
    assert error.passing
    assert "86,400 seconds" in error.message


def test_a_connection_that_breaks_off_is_tried_again(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "pause", lambda *_: 0.01)
    broken = iter([True, False, True, False, False])

    def handler(seen: Seen) -> Reply:
        if next(broken):
            raise ConnectionError
        return Reply()

    api.on(PATH, handler)
    plan(api, tmp_path).deliver()
    assert taken(api) == ROWS
    assert len(api.seen) == 5


def test_it_gives_up_after_the_tries_that_the_destination_names(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "pause", lambda *_: 0.01)
    api.on(PATH, lambda _: Reply({}, 503))
    error = failure(plan(api, tmp_path, retries=2))
    assert (error.code, error.passing, len(api.seen)) == ("API_DOWN", True, 3)


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (400, "API_REFUSED", "check the target"),
        (401, "API_UNAUTHORIZED", "set the secret again"),
        (403, "API_FORBIDDEN", "lack the permission to send"),
        (404, "API_REFUSED", "check the target"),
        (413, "TOO_LARGE", "smaller `batch`"),
        (422, "API_REFUSED", "the format that it accepts"),
    ],
)
def test_what_will_not_pass_is_told_at_once_with_what_to_do(
    api: Api, tmp_path: Path, status: int, code: str, words: str
) -> None:
    api.on(PATH, lambda seen: Reply({"message": f"you said {seen.headers['authorization']}\x07"}, status))
    error = failure(plan(api, tmp_path, {"token": SECRET}, auth={"style": "bearer"}))
    assert (error.code, error.passing, len(api.seen)) == (code, False, 1)
    assert words in error.message
    assert str(status) in error.message
    assert SECRET not in error.message
    assert error.message.isprintable()


def test_a_redirect_is_not_followed(api: Api, tmp_path: Path) -> None:
    api.on(PATH, lambda _: Reply({}, 307, {"Location": "/elsewhere"}))
    error = failure(plan(api, tmp_path))
    assert (error.code, len(api.seen)) == ("REDIRECTED", 1)


def test_tokens_are_fetched_and_renewed(api: Api, tmp_path: Path) -> None:
    auth = {"style": "oauth2", "token_url": f"{api.url}/token", "client_id": USER}

    def handler(seen: Seen) -> Reply:
        if seen.headers["authorization"] == f"Bearer {api.tokens[-1]}":
            return Reply()
        return Reply({}, 401)

    api.on(PATH, handler)
    api.fails(PATH, Reply({}, 401))
    plan(api, tmp_path, {"client_secret": SECRET}, auth=auth).deliver()
    assert len(api.tokens) == 2
    assert batches(api) == [BATCHES[0], *BATCHES]
    wrong = failure(plan(api, tmp_path, {"client_secret": "wrong"}, auth=auth))
    assert (wrong.code, "invalid_client" in wrong.message) == ("API_UNAUTHORIZED", True)


def test_passwords_and_keys_are_shown(api: Api, tmp_path: Path) -> None:
    plan(api, tmp_path, {"password": SECRET}, auth={"style": "basic", "user": USER}).deliver()
    assert api.seen[0].headers["authorization"] == basic(USER, SECRET)
    api.seen.clear()
    auth = {"style": "api_key", "place": "query", "name": "key"}
    plan(api, tmp_path, {"token": SECRET}, auth=auth).deliver()
    assert api.seen[0].parameters == {"key": SECRET}
    assert failure(plan(api, tmp_path, {}, auth=auth)).code == "MISSING_SECRET"


@pytest.mark.parametrize(
    ("url", "allow", "code", "words"),
    [
        ("http://nowhere.invalid", [], "UNREACHABLE", "nowhere.invalid"),
        ("http://127.0.0.1:1", ["127.0.0.1"], "UNREACHABLE", "accepts no connections"),
        ("http://10.0.0.1", [], "ADDRESS_REFUSED", "private address"),
        ("http://localhost", [], "ADDRESS_REFUSED", "localhost"),
        ("http://169.254.169.254/latest", ["127.0.0.1"], "ADDRESS_REFUSED", "169.254.169.254"),
    ],
)
def test_hosts_that_are_not_called_and_those_that_do_not_answer(
    tmp_path: Path, url: str, allow: list[str], code: str, words: str
) -> None:
    one = Plan(http(url, retries=0), tmp_path, {"target": PATH}, settings={"outgoing": {"allow": allow}})
    error = failure(one)
    assert (error.code, error.passing) == (code, code == "UNREACHABLE")
    assert words in error.message


def test_a_pace_is_kept(api: Api, tmp_path: Path) -> None:
    began = time.monotonic()
    plan(api, tmp_path, per_second=5).deliver()
    assert len(api.seen) >= 3
    assert time.monotonic() - began >= 0.4


def test_a_run_that_is_to_end_sends_no_more(api: Api, tmp_path: Path) -> None:
    api.fails(PATH, Reply({}, 503, {"Retry-After": "60"}))
    step, context = plan(api, tmp_path).context()
    threading.Thread(target=lambda: (eventually(lambda: api.seen), context.stop()), daemon=True).start()
    began = time.monotonic()
    with pytest.raises(RunStopped):
        deliver.run(step, context)
    assert time.monotonic() - began < 50
    assert len(api.seen) == 1


def test_a_table_without_rows_sends_nothing(api: Api, tmp_path: Path) -> None:
    one = plan(api, tmp_path)
    one.rows = []
    one.types = {}
    assert one.deliver().rows_out == 0
    assert api.seen == []
