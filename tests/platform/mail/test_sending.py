"""Mail is sent at least once, tried again for as long as it makes sense, and no mail holds up another."""

import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text, update

from headgate.kit.clock import now
from headgate.organization.sessions.service import use_link
from headgate.platform.directory.models import member_table
from headgate.platform.mail.models import mail_table
from headgate.platform.mail.sender import Mailer
from headgate.platform.secrets import rotation
from tests.outgoing import Authority
from tests.platform.mail import HERE, Outbox, Server, free_port, hangs_up, join, relay

pytestmark = pytest.mark.both_databases


def test_a_mail_is_sent_once_and_what_it_said_is_forgotten(outbox: Outbox, server: Server) -> None:
    one = outbox.put(subject="Grüße", body="Ein Wort.\n\n.\n  https://example.com/link#hgl_abc=d\nÜber alles.\n")
    mailer = outbox.mailer(port=server.port, sender="Headgate <gate@example.com>")
    mailer.send_due()
    mailer.send_due()
    [(sender, recipients, message, raw)] = server.seen
    assert (sender, recipients) == ("gate@example.com", ["ana@example.com"])
    assert message["Subject"] == "Grüße"
    assert message["From"] == "Headgate <gate@example.com>"
    assert message["To"] == "ana@example.com"
    assert message["Message-ID"] == f"<{one}@example.com>"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Date"].datetime == outbox.clock().replace(microsecond=0)
    assert message.get_content().splitlines() == [
        "Ein Wort.",
        "",
        ".",
        "  https://example.com/link#hgl_abc=d",
        "Über alles.",
    ]
    assert raw.isascii()
    row = outbox.row(one)
    assert (row.sent_at, row.due_at, row.body, row.error) == (outbox.clock(), None, None, None)


def test_bodies_are_sealed_and_go_with_a_rotation_of_keys(outbox: Outbox, server: Server) -> None:
    one = outbox.put(body="A secret link")
    before = outbox.row(one).body
    assert "secret" not in before
    rotation.rotate(outbox.database, outbox.keys)
    assert outbox.row(one).body != before
    outbox.mailer(port=server.port).send_due()
    assert server.messages[0].get_content().strip() == "A secret link"


def test_without_a_relay_nothing_is_sent_and_mail_waits_until_it_expires(outbox: Outbox) -> None:
    one = outbox.put()
    mailer = outbox.mailer(host=None)
    mailer.send_due()
    mailer.nudge()
    assert (outbox.row(one).attempts, outbox.row(one).body is None) == (0, False)
    outbox.clock.pass_(days=2)
    mailer.nudge()
    row = outbox.row(one)
    assert (row.due_at, row.body, row.sent_at) == (None, None, None)
    assert "timed out" in row.error


def test_what_the_relay_cannot_take_now_is_tried_after_1_2_4_minutes_until_it_is_too_late(outbox: Outbox) -> None:
    one = outbox.put()
    waits = []
    with relay(rcpt=lambda _: "451 4.3.0 come back later") as server:
        mailer = outbox.mailer(port=server.port)
        for attempt in range(1, 20):
            mailer.send_due()
            row = outbox.row(one)
            assert row.attempts == attempt
            assert row.error == "451 4.3.0 come back later"
            if row.due_at is None:
                break
            waits.append((row.due_at - outbox.clock()).total_seconds() / 60)
            outbox.clock.at = row.due_at.replace(microsecond=0)
            mailer.send_due()
            assert outbox.row(one).attempts == attempt
            outbox.clock.at = row.due_at
        mailer.send_due()
    assert waits == [2.0**n for n in range(len(waits))]
    assert len(waits) == 11
    assert (outbox.row(one).body, outbox.row(one).sent_at, server.seen) == (None, None, [])


def test_a_mail_that_failed_goes_out_when_the_relay_is_back(outbox: Outbox) -> None:
    one, port = outbox.put(), free_port()
    mailer = outbox.mailer(port=port)
    mailer.send_due()
    assert "refused" in outbox.row(one).error.lower()
    with relay() as server:
        mailer = outbox.mailer(port=server.port)
        mailer.send_due()
        assert server.seen == []
        outbox.clock.pass_(minutes=1)
        mailer.send_due()
        assert len(server.seen) == 1
    assert (outbox.row(one).sent_at, outbox.row(one).error) == (outbox.clock(), None)


@pytest.mark.parametrize("answer", ["550 5.1.1 nobody here", "553 no", "571 go away"])
@pytest.mark.parametrize("place", ["rcpt", "data"])
def test_a_refusal_for_good_gives_up_at_once(outbox: Outbox, answer: str, place: str) -> None:
    one = outbox.put()
    say: Any = (lambda _: answer) if place == "rcpt" else (lambda: answer)
    with relay(**{place: say}) as server:
        outbox.mailer(port=server.port).send_due()
    row = outbox.row(one)
    assert (row.due_at, row.body, row.error, row.attempts) == (None, None, answer, 1)


def test_a_refusal_of_our_own_sign_in_is_not_for_good(outbox: Outbox) -> None:
    one = outbox.put()
    with relay(rcpt=lambda _: "530 5.7.0 authentication required") as server:
        outbox.mailer(port=server.port).send_due()
    assert outbox.row(one).due_at is not None


def test_one_bad_mail_does_not_stop_the_others(outbox: Outbox) -> None:
    bad = [
        outbox.put("gone@example.com"),
        outbox.put("no address at all"),
        outbox.put(body=None, purpose="unheard of"),
        outbox.put("half@example.com"),
    ]
    sealed = outbox.put()
    change = update(mail_table).where(mail_table.c.id == sealed).values(body="v1.nonsense")
    outbox.database.write(lambda c: c.execute(change).rowcount)
    good = outbox.put("ben@example.com")
    answers = {"gone@example.com": "550 gone", "half@example.com": "450 later"}
    with relay(rcpt=lambda to: answers.get(to, "250 OK")) as server:
        outbox.mailer(port=server.port).send_due()
        assert [to for _, to, _, _ in server.seen] == [["ben@example.com"]]
    assert outbox.row(good).sent_at
    assert [outbox.row(one).due_at for one in bad[:3]] == [None, None, None]
    assert all(outbox.row(one).error for one in (*bad, sealed))
    assert outbox.row(bad[3]).due_at
    assert outbox.row(sealed).due_at


def test_a_crash_between_sending_and_noting_it_sends_twice_with_one_message_id(
    outbox: Outbox, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = outbox.put()
    mailer = outbox.mailer(port=server.port)
    with monkeypatch.context() as patch:
        patch.setattr(Mailer, "_note_done", lambda *_, **__: (_ for _ in ()).throw(SystemExit))
        with pytest.raises(SystemExit):
            mailer.send_due()
    assert outbox.row(one).sent_at is None
    mailer.send_due()
    assert len(server.seen) == 1
    outbox.clock.pass_(minutes=5)
    outbox.mailer(port=server.port).send_due()
    assert [message["Message-ID"] for message in server.messages] == [f"<{one}@localhost>"] * 2
    assert outbox.row(one).sent_at


def test_an_answer_that_was_lost_is_no_answer(outbox: Outbox) -> None:
    one, other = outbox.put(), outbox.put("ben@example.com")
    with relay(breaks_off=True) as server:
        outbox.mailer(port=server.port).send_due()
        assert len(server.seen) == 2
    for mail in (one, other):
        assert outbox.row(mail).sent_at is None
        assert outbox.row(mail).due_at
    outbox.clock.pass_(minutes=1)
    with relay() as again:
        outbox.mailer(port=again.port).send_due()
        assert {m["Message-ID"] for m in again.messages} == {m["Message-ID"] for m in server.messages}


def test_while_the_relay_is_out_of_reach_only_one_mail_is_tried_and_then_it_rests(outbox: Outbox) -> None:
    mails = [outbox.put() for _ in range(3)]
    with hangs_up() as port:
        mailer = outbox.mailer(port=port)
        mailer.send_due()
        assert sorted(outbox.row(one).attempts for one in mails) == [0, 0, 1]
        assert not mailer.is_due()
        outbox.clock.pass_(seconds=11)
        assert mailer.is_due()


def test_two_senders_share_the_work(outbox: Outbox, server: Server) -> None:
    for n in range(30):
        outbox.put(f"m{n}@example.com")
    mailers = [outbox.mailer(port=server.port) for _ in range(3)]
    threads = [threading.Thread(target=mailer.send_due) for mailer in mailers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(to for _, [to], _, _ in server.seen) == sorted(f"m{n}@example.com" for n in range(30))


def test_by_starttls_with_a_password(outbox: Outbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = _trusted(tmp_path, monkeypatch)
    outbox.put()
    own = {"security": "starttls", "username": "headgate", "password": "opensesame", "host": "localhost"}
    with relay(tls=authority.server("localhost", HERE)) as server:
        outbox.mailer(port=server.port, **own).send_due()
        assert len(server.seen) == 1
        assert server.logins == [(b"headgate", b"opensesame")]
        second = outbox.put()
        outbox.mailer(port=server.port, **(own | {"password": "wrong"})).send_due()
        assert len(server.seen) == 1
    assert "535" in outbox.row(second).error


def test_by_tls_from_the_start(outbox: Outbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = _trusted(tmp_path, monkeypatch)
    outbox.put()
    with relay(tls=authority.server("localhost", HERE), wraps=True) as server:
        outbox.mailer(port=server.port, security="tls", host="localhost").send_due()
        assert len(server.seen) == 1


def _trusted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """An authority that this process trusts, as an operator makes it trust their own."""
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415

    authority = Authority(folder)
    file = folder / "authority.pem"
    file.write_bytes(authority.certificate.public_bytes(Encoding.PEM))
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    return authority


def test_no_password_goes_to_a_relay_that_is_not_the_one_or_offers_no_tls(outbox: Outbox, tmp_path: Path) -> None:
    one = outbox.put()
    own = {"security": "starttls", "username": "headgate", "password": "opensesame", "host": "localhost"}
    with relay(tls=Authority(tmp_path).server("localhost")) as server:
        outbox.mailer(port=server.port, **own).send_due()
        assert (server.seen, server.logins) == ([], [])
    assert "certificate" in outbox.row(one).error.lower()
    outbox.clock.pass_(minutes=1)
    with relay() as plain:
        outbox.mailer(port=plain.port, **own).send_due()
        assert (plain.seen, plain.logins) == ([], [])
    assert "STARTTLS" in outbox.row(one).error


def test_a_sign_in_link_goes_to_the_account_and_works_once(outbox: Outbox, server: Server) -> None:
    member = join(outbox.database, "Ana", "Ana@Example.com")
    one = outbox.put("ａna@example.COM", None, "sign_in")
    outbox.mailer(port=server.port).send_due()
    [(_, recipients, message, _)] = server.seen
    assert recipients == ["Ana@Example.com"]
    secret = message.get_content().partition("/link#")[2].split()[0]
    assert outbox.database.write(lambda c: use_link(c, secret, "sign_in", outbox.clock())).member == member
    row = outbox.row(one)
    assert (row.body, row.sent_at) == (None, outbox.clock())


def test_an_unknown_account_gets_nothing_and_nothing_is_said(outbox: Outbox, server: Server) -> None:
    join(outbox.database, "Ana", "ana@example.com")
    mails = [outbox.put(address, None, "sign_in") for address in ("ben@example.com", "ana@example.com\r\nBcc: x@y", "")]
    outbox.mailer(port=server.port).send_due()
    assert server.seen == []
    for one in mails:
        row = outbox.row(one)
        assert (row.due_at, row.sent_at, row.error, row.attempts) == (None, None, None, 1)
    with outbox.database.read() as connection:
        assert connection.execute(text("SELECT COUNT(*) FROM links")).scalar_one() == 0


def test_a_sign_in_link_that_was_sent_in_vain_is_the_same_again_and_not_sent_when_it_is_over(outbox: Outbox) -> None:
    join(outbox.database, "Ana", "ana@example.com")
    one = outbox.put("ana@example.com", None, "sign_in")
    with relay(breaks_off=True) as server:
        outbox.mailer(port=server.port).send_due()
        outbox.clock.pass_(minutes=1)
        outbox.mailer(port=server.port).send_due()
        first, second = (message.get_content() for message in server.messages)
        assert first == second
        secret = first.partition("/link#")[2].split()[0]
        assert outbox.database.write(lambda c: use_link(c, secret, "sign_in", outbox.clock()))
    assert outbox.row(one).due_at
    outbox.clock.pass_(minutes=30)
    with relay() as late:
        mailer = outbox.mailer(port=late.port)
        mailer.send_due()
        mailer.give_up_expired()
        assert late.seen == []
    assert outbox.row(one).due_at is None


def test_a_removed_member_gets_no_mail_that_was_written_before(outbox: Outbox, server: Server) -> None:
    member = join(outbox.database, "Ana", "ana@example.com")
    one = outbox.put(member=member)
    change = update(member_table).where(member_table.c.id == member).values(removed_at=now())
    outbox.database.write(lambda c: c.execute(change).rowcount)
    outbox.mailer(port=server.port).send_due()
    assert server.seen == []
    assert (outbox.row(one).due_at, outbox.row(one).body, outbox.row(one).error) == (
        None,
        None,
        "the member was removed",
    )


def test_what_was_withdrawn_while_it_failed_stays_withdrawn(outbox: Outbox) -> None:
    one = outbox.put()

    def withdraw(_: str) -> str:
        change = update(mail_table).values(due_at=None, body=None, error="withdrawn")
        outbox.database.write(lambda c: c.execute(change).rowcount)
        return "450 later"

    with relay(rcpt=withdraw) as server:
        outbox.mailer(port=server.port).send_due()
    assert (outbox.row(one).due_at, outbox.row(one).error) == (None, "withdrawn")


def test_a_round_runs_beside_its_owner_and_ends_with_it(outbox: Outbox) -> None:
    outbox.put()
    reached, go = threading.Event(), threading.Event()

    def slow(_: str) -> str:
        reached.set()
        go.wait(60)
        return "250 OK"

    with relay(rcpt=slow) as server, closing(outbox.mailer(port=server.port, timeout_seconds=60)) as mailer:
        mailer.nudge()
        first = mailer._thread
        assert reached.wait(60)
        outbox.put("ben@example.com")
        mailer.nudge()
        assert mailer._thread is first
        go.set()
        assert first is not None
        first.join(60)
        assert len(server.seen) == 2
