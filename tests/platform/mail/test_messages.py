"""Nothing that a person typed adds a header or a recipient to a mail."""

import pytest

from headgate.platform.mail import messages
from tests.platform.mail import Outbox, Server


@pytest.mark.parametrize(
    ("subject", "to"),
    [
        ("Hello\r\nBcc: victim@example.com\r\n\r\nowned", "ana@example.com"),
        ("Hello\nBcc: victim@example.com", "ana@example.com"),
        ("Hello\x85Bcc: victim@example.com", "ana@example.com"),
        ("Hello\u2028Bcc: victim@example.com\u2029\x0b\x0c\x1c\x1d\x1e", "ana@example.com"),
        ("=?utf-8?q?Hello=0D=0ABcc:_victim@example.com?=", "ana@example.com"),
        ("x" * 190 + "ü", "ana@example.com"),
    ],
)
def test_no_subject_adds_a_header_or_a_recipient(outbox: Outbox, server: Server, subject: str, to: str) -> None:
    outbox.put(to, subject=subject)
    outbox.mailer(port=server.port).send_due()
    [(_, recipients, message, raw)] = server.seen
    assert recipients == [to]
    headers = raw.partition(b"\r\n\r\n")[0].decode()
    assert sorted(message.keys()) == sorted(
        [
            "From",
            "To",
            "Subject",
            "Date",
            "Message-ID",
            "Auto-Submitted",
            "Content-Type",
            "Content-Transfer-Encoding",
            "MIME-Version",
        ]
    )
    assert all(line.startswith((" ", *message.keys())) for line in headers.split("\r\n"))
    assert message.get_content().strip() == "Hello"


@pytest.mark.parametrize(
    "to",
    [
        "ana@example.com\r\nRCPT TO:<victim@example.com>",
        "ana@example.com\nBcc: victim@example.com",
        "ana@example.com, victim@example.com",
        "<ana@example.com> victim@example.com",
        "ana@example.com> SIZE=1",
        '"victim@example.com,"@example.com',
        "ana@exam\u2028ple.com",
        "=?utf-8?q?x=0D=0ABcc=3A_victim=40example.com?=@example.com",
        "",
    ],
)
def test_what_is_no_address_is_never_handed_to_the_relay(outbox: Outbox, server: Server, to: str) -> None:
    one = outbox.put(to)
    outbox.mailer(port=server.port).send_due()
    assert server.seen == []
    assert "mail address" in outbox.row(one).error
    assert outbox.row(one).due_at is None


@pytest.mark.parametrize(
    ("to", "envelope"),
    [
        ("ana@bücher.example", "ana@xn--bcher-kva.example"),
        ("änne@example.com", "änne@example.com"),
    ],
)
def test_unusual_addresses_are_spelt_as_relays_read_them(
    outbox: Outbox, server: Server, to: str, envelope: str
) -> None:
    outbox.put(to)
    outbox.mailer(port=server.port).send_due()
    [(_, recipients, _, raw)] = server.seen
    assert recipients == [envelope]
    assert f"\r\nTo: {envelope}\r\n" in raw.decode()


@pytest.mark.parametrize("fault", ["=?utf-8?q?x=0D=0ABcc=3A_victim=40example.com?=", "=?utf-8?q?x=0Ay?="])
def test_a_message_whose_headers_come_out_otherwise_is_not_sent(
    outbox: Outbox, server: Server, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(messages, "one_line", lambda text: text)
    outbox.put(subject=fault)
    outbox.mailer(port=server.port).send_due()
    for message, raw in ((message, raw) for _, _, message, raw in server.seen):
        assert "Bcc" not in message
        assert b"\ny" not in raw


def test_a_sender_that_is_no_address_is_the_operators_to_mend(outbox: Outbox, server: Server) -> None:
    one = outbox.put()
    outbox.mailer(port=server.port, sender="nobody").send_due()
    assert outbox.row(one).due_at
    outbox.clock.pass_(minutes=1)
    outbox.mailer(port=server.port).send_due()
    assert len(server.seen) == 1
