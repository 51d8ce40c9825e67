"""Whoever receives the channel `runs` is told of runs that end badly: by mail and webhook, once for each cause."""

import hmac
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from headgate.kit.clock import now
from headgate.kit.database import Database
from headgate.kit.key_file import KeyFile
from headgate.pipelines.runs.job import LOSSES, RUNS
from headgate.pipelines.runs.models import run_table
from headgate.platform.jobs import queue
from headgate.platform.webhooks.delivery import WebhookSender
from headgate.platform.webhooks.models import webhook_delivery_table
from tests.pipelines.runs.support import RunHand, lose, make, show, start
from tests.platform.mail import HERE, Server, relay
from tests.platform.notifications import EVERYONE, House, house

SECRETS = ("the rows of raw.orders", "raw.orders", "ana@example.org")
SEES = {"Olga", "Adam", "Tess"}
"""Who may see the runs of a pipeline that reads raw.orders and writes to trusted."""


class Receiver:
    """An HTTP server on this machine that takes what is posted, or answers something else."""

    def __init__(self) -> None:
        self.seen: list[tuple[dict[str, str], bytes]] = []
        self.status = 200
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.seen.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(outer.status)
                self.send_header("location", outer.url)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer((HERE, 0), Handler)
        self.url = f"http://{HERE}:{self.server.server_address[1]}/hooks/s3cret"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def told(self) -> list[dict[str, Any]]:
        """What was posted."""
        return [json.loads(body) for _, body in self.seen]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(60)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


@pytest.fixture
def server() -> Iterator[Server]:
    with relay() as found:
        yield found


@pytest.fixture
def notified_company(database: Database, tmp_path: Path, server: Server) -> Iterator[House]:
    """The company: everyone receives everything, by mail too; a webhook may lead to this machine."""
    mail = {"host": HERE, "port": server.port, "security": "none"}
    with house(database, tmp_path, mail=mail, outgoing={"allow": [HERE]}) as found:
        found.subscribe(*EVERYONE)
        found.address(*EVERYONE)
        yield found


def webhooks(notified_company: House) -> WebhookSender:
    settings = notified_company.company.settings
    return WebhookSender(settings, notified_company.database, KeyFile(settings.data_dir / "keys.json"))


def send(notified_company: House) -> None:
    """What the scheduler does."""
    notified_company.teller.tell_pending()
    notified_company.mailer.send_due()
    webhooks(notified_company).send_due()


def set_webhook(notified_company: House, receiver: Receiver, who: str = "Adam") -> str:
    answer = notified_company.company.as_(who).request("PUT", "/api/webhook", json={"url": receiver.url})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["secret"])


def fail(notified_company: House, pipeline: str, code: str = "UNREACHABLE") -> str:
    """A run that fails; its id."""
    run, hand = start(notified_company.company, pipeline), RunHand(notified_company.company)
    (job,) = hand.claim()
    assert hand.finish(job, "failed", error_code=code, error=", ".join(SECRETS)).status_code == 200
    return run


def lost(notified_company: House, pipeline: str) -> str:
    """A run whose workers die, one after the other."""
    run = start(notified_company.company, pipeline)
    for _ in range(LOSSES + 1):
        assert RunHand(notified_company.company).claim()
        lose(notified_company.company)
    return run


def blocked(notified_company: House, pipeline: str) -> str:
    """A run whose pipeline was saved while it waited."""
    run = start(notified_company.company, pipeline)
    notified_company.database.write(
        lambda c: c.execute(update(run_table).where(run_table.c.id == run).values(acts_for_id=None))
    )
    assert RunHand(notified_company.company).claim() == []
    return run


def broken(notified_company: House, pipeline: str) -> str:
    """A run whose definition cannot be read any more."""
    run = start(notified_company.company, pipeline)
    assert notified_company.database.write(lambda c: queue.end(RUNS, c, now(), run, "failed", "FAULT", "a fault"))
    return run


ENDS = {
    "failed": (fail, "failed", "UNREACHABLE", "run.failed", "was unreachable"),
    "lost": (lost, "failed", "WORKER_LOST", "run.failed", "worker or Spark died"),
    "blocked": (blocked, "blocked", "BLOCKED", "run.blocked", "lacks access"),
    "broken": (broken, "failed", "FAULT", "run.failed", "an internal error of Headgate"),
}


@pytest.mark.parametrize("how", ENDS)
def test_a_run_that_ends_badly_is_audited_and_told(
    notified_company: House, server: Server, receiver: Receiver, how: str
) -> None:
    ends, state, code, event, why = ENDS[how]
    secret = set_webhook(notified_company, receiver)
    run = ends(notified_company, make(notified_company.company))
    assert (show(notified_company.company, run)["state"], show(notified_company.company, run)["error_code"]) == (
        state,
        code,
    )
    assert notified_company.company.rows(f"SELECT event, kind FROM audit_events WHERE resource_id = '{run}'") == [
        (event, "run")
    ]
    send(notified_company)
    assert {to for _, [to], _, _ in server.seen} == {f"{name.lower()}@example.com" for name in SEES}
    for message in server.messages:
        assert (
            message["Subject"] == f"A run of the pipeline Versions {'failed' if state == 'failed' else 'was blocked'}"
        )
        text = message.get_content()
        assert why in text
        assert f"({code})" in text
        assert f"/api/runs/{run}" in text
        assert not any(one in text for one in SECRETS)
    [(headers, body)] = receiver.seen
    told = json.loads(body)
    assert (told["event"], told["run"], told["state"], told["code"]) == (event, run, state, code)
    assert told["resource"]["name"] == "Versions"
    assert why in told["reason"]
    assert told["link"].endswith(f"/api/runs/{run}")
    assert not any(one in body.decode() for one in SECRETS)
    at, given = (one.partition("=")[2] for one in headers["headgate-signature"].split(","))
    assert given == hmac.digest(secret.encode(), at.encode() + b"." + body, "sha256").hex()
    assert notified_company.listed("Ben") == []
    assert (len(notified_company.listed("Tess")), notified_company.listed("Tom")) == (1, [])


def test_each_cause_is_told_once_until_the_pipeline_succeeds(
    notified_company: House, server: Server, receiver: Receiver
) -> None:
    set_webhook(notified_company, receiver)
    pipeline = make(notified_company.company)

    def codes() -> list[str]:
        send(notified_company)
        return [one["code"] for one in receiver.told()]

    for _ in range(3):
        fail(notified_company, pipeline)
    assert codes() == ["UNREACHABLE"]
    for code in ("TIMEOUT", "UNREACHABLE", "TIMEOUT"):
        fail(notified_company, pipeline, code)
    assert codes() == ["UNREACHABLE", "TIMEOUT"]
    fail(notified_company, make(notified_company.company, name="Other"), "TIMEOUT")
    assert codes() == ["UNREACHABLE", "TIMEOUT", "TIMEOUT"]
    start(notified_company.company, pipeline)
    hand = RunHand(notified_company.company)
    (job,) = hand.claim()
    hand.do(job)
    assert hand.finish(job).json()["state"] == "succeeded"
    fail(notified_company, pipeline)
    assert codes() == ["UNREACHABLE", "TIMEOUT", "TIMEOUT", "UNREACHABLE"]
    tess = notified_company.company.as_("Tess")
    definition = tess.get(f"/api/pipelines/{pipeline}").json()
    saved = tess.request(
        "PATCH", f"/api/pipelines/{pipeline}", json={"definition": {**definition["definition"], "keys": ["id", "at"]}}
    )
    assert saved.status_code == 200, saved.text
    fail(notified_company, pipeline)
    assert len(codes()) == 5, "somebody changed it, and it did not help"
    assert len(server.seen) == 5 * len(SEES)


def test_a_run_that_is_tried_again_or_cancelled_is_not_told(notified_company: House) -> None:
    pipeline = make(notified_company.company, retries={"times": 1, "delay": "1 second"})
    run = fail(notified_company, pipeline)
    assert show(notified_company.company, run)["state"] == "queued"
    other = start(notified_company.company, make(notified_company.company, name="Other"))
    notified_company.company.as_("Tess").post(f"/api/runs/{other}/cancel", None).raise_for_status()
    assert notified_company.company.rows("SELECT event FROM notices") == []


def test_a_pipeline_that_is_turned_off_is_told_and_its_triggers_show_it(
    notified_company: House, receiver: Receiver
) -> None:
    set_webhook(notified_company, receiver)
    pipeline, tess = make(notified_company.company), notified_company.company.as_("Tess")
    assert tess.request("PATCH", f"/api/pipelines/{pipeline}", json={"deactivate_after": 2}).status_code == 200
    made = tess.post(
        f"/api/pipelines/{pipeline}/triggers", {"name": "Nightly", "when": {"kind": "cron", "cron": "@daily"}}
    )
    assert made.status_code == 200, made.text
    assert made.json()["pipeline_active"] is True
    fail(notified_company, pipeline)
    lost(notified_company, pipeline)
    send(notified_company)
    assert [one["event"] for one in receiver.told()] == ["run.failed", "run.failed", "pipeline.deactivated"]
    assert receiver.told()[-1]["reason"] == "the run failed 2 times in a row"
    [found] = tess.get(f"/api/pipelines/{pipeline}/triggers").json()["items"]
    assert (found["pipeline_active"], found["next"], found["enabled"]) == (False, [], True)
    assert found["pipeline_inactive_because"] == "The run failed 2 times in a row"
    events = notified_company.company.rows(
        f"SELECT event FROM audit_events WHERE resource_id = '{pipeline}' AND event LIKE '%deact%'"
    )
    assert events == [("pipeline.deactivated",)]


def test_who_may_not_see_the_run_when_it_is_sent_is_not_told(
    notified_company: House, server: Server, receiver: Receiver
) -> None:
    set_webhook(notified_company, receiver)
    fail(notified_company, make(notified_company.company))
    notified_company.teller.tell_pending()
    assert (
        notified_company.company.as_("Olga").change(change="set_role", member="Adam", role="business").status_code
        == 200
    )
    send(notified_company)
    assert "adam@example.com" not in {to for _, [to], _, _ in server.seen}
    assert receiver.seen == []
    shown = notified_company.company.as_("Olga").get("/api/webhook").json()
    assert (shown["active"], shown["set_by"], shown["host"]) == (False, "Adam", HERE)
    fail(notified_company, make(notified_company.company, name="Other"))
    send(notified_company)
    assert receiver.seen == []


def test_a_delivery_that_is_not_taken_is_sent_again_later(notified_company: House, receiver: Receiver) -> None:
    set_webhook(notified_company, receiver)
    fail(notified_company, make(notified_company.company))
    for receiver.status in (500, 302):
        send(notified_company)
        shown = notified_company.company.as_("Olga").get("/api/webhook").json()
        assert shown["last_error"] == f"the receiver answered with status {receiver.status}"
        earlier = update(webhook_delivery_table).values(due_at=now() - timedelta(seconds=1))
        notified_company.database.write(lambda c, earlier=earlier: c.execute(earlier).rowcount)
    receiver.status = 204
    send(notified_company)
    send(notified_company)
    assert len(receiver.seen) == 3
    assert len({headers["idempotency-key"] for headers, _ in receiver.seen}) == 1
    shown = notified_company.company.as_("Olga").get("/api/webhook").json()
    assert (shown["last_error"], shown["last_sent_at"] is not None) == (None, True)


def test_only_admins_set_a_webhook_and_its_address_is_kept_secret(notified_company: House, receiver: Receiver) -> None:
    for who in ("Tess", "Ben"):
        for method in ("GET", "PUT", "DELETE"):
            body = {"json": {"url": receiver.url}} if method == "PUT" else {}
            assert notified_company.company.as_(who).request(method, "/api/webhook", **body).status_code == 403
    adam = notified_company.company.as_("Adam")
    for wrong in ("ftp://x", "http://169.254.169.254/latest", "http://10.0.0.1/", "x\0y", f"http://a:b@{HERE}/"):
        assert adam.request("PUT", "/api/webhook", json={"url": wrong}).status_code == 422, wrong
    assert adam.request("DELETE", "/api/webhook").status_code == 404
    set_webhook(notified_company, receiver)
    assert "s3cret" not in adam.get("/api/webhook").text
    stored = str(
        notified_company.company.rows("SELECT * FROM webhooks")
        + notified_company.company.rows("SELECT * FROM audit_events")
    )
    assert "s3cret" not in stored
    assert "whsec_" not in stored
    fail(notified_company, make(notified_company.company))
    notified_company.teller.tell_pending()
    assert adam.request("DELETE", "/api/webhook").json()["host"] is None
    send(notified_company)
    assert receiver.seen == []
    told = [
        row[0]
        for row in notified_company.company.rows(
            "SELECT event FROM audit_events WHERE event LIKE 'webhook%' ORDER BY id"
        )
    ]
    assert told == ["webhook.set", "webhook.removed"]
