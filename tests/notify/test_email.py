"""E-mail: what a real server gets, by which way, and what becomes of what it refuses."""

from __future__ import annotations

import ssl
from base64 import b64encode
from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from mainspring import Email
from mainspring.errors import InvalidValue, Undeliverable, Undelivered
from mainspring.notify import Delivery
from mainspring.notify.email import compose, send, sender_of, server_of
from mainspring.worker.failure import traceback_of
from tests.support.certificates import certificate_of
from tests.support.mailbox import Mailbox, indiscreet_server, mail_server

ID = UUID("01890000-0000-7000-8000-000000000001")
NOTICE: dict[str, Any] = {
    "event": "failure",
    "team": "acme",
    "job_id": "j1",
    "task": "greet",
    "queue": "default",
    "state": "failed",
    "attempt": 3,
    "schedule": None,
    "error": {"type": "ValueError", "message": "boom"},
}
BREAKS = ["\r\n", "\n", "\r", "\0", "\u2028"]
OPS = Email("ops@example.org")


def mailed(
    mailbox: Mailbox, channel: Email = OPS, notice: dict[str, Any] = NOTICE, **changes: Any
) -> dict[str, object]:
    """Mail *notice* by way of *mailbox*."""
    given = {"smtp": mailbox.url, "mail_from": "Mainspring <jobs@example.org>"} | changes
    return send(channel, ID, notice, Delivery(**given))


def body_of(mailbox: Mailbox, kind: str) -> str:
    part = mailbox.mails[0].get_body((kind,))
    assert part is not None
    text: str = part.get_content()
    return text.replace("\r\n", "\n")


def test_a_mail_says_what_happened_and_carries_its_id() -> None:
    with mail_server() as mailbox:
        assert mailed(mailbox, Email(["ops@example.org", "dev@example.org"]), base_url="https://jobs.example.org") == {}

    (mail,) = mailbox.mails
    assert mailbox.recipients == [["ops@example.org", "dev@example.org"]]
    assert mail["Subject"] == "[acme] greet failed"
    assert mail["From"] == "Mainspring <jobs@example.org>"
    assert mail["To"] == "ops@example.org, dev@example.org"
    assert mail["Message-ID"] == f"<{ID}@example.org>"
    assert (mail["Mainspring-Id"], mail["Mainspring-Event"]) == (str(ID), "failure")
    assert mail["Auto-Submitted"] == "auto-generated"
    text = body_of(mailbox, "plain")
    assert text.startswith("greet failed\n")
    assert "error message: boom\n" in text
    assert "https://jobs.example.org/jobs/j1" in text


@pytest.mark.parametrize(
    ("facts", "headline"),
    [
        ({"event": "success"}, "greet succeeded"),
        ({"event": "failure", "state": "expired"}, "greet expired"),
        ({"event": "retry"}, "greet failed in attempt 3 and is tried again"),
        ({"event": "late", "schedule": "s"}, "schedule s fired late"),
        ({"event": "late", "schedule": "s", "expected_by": "2026"}, "schedule s has had no success in time"),
        ({"event": "missed", "schedule": "s", "ticks": 1}, "schedule s missed 1 tick"),
        ({"event": "missed", "schedule": "s", "ticks": None}, "schedule s missed many ticks"),
        ({"event": "recovered", "schedule": "s"}, "greet of schedule s has recovered"),
        ({"event": "alert", "headline": "queue mail is too deep"}, "queue mail is too deep"),
    ],
)
def test_each_event_has_its_words(facts: dict[str, Any], headline: str) -> None:
    mail = compose(OPS, ID, NOTICE | facts, sender_of("jobs@example.org"), {})

    assert mail["Subject"] == f"[acme] {headline}"


def test_templates_take_the_place_of_our_words() -> None:
    channel = Email(
        "ops@example.org", subject="{task}: {error_type} {schedule}!", text="see {job_id}\n<{error_message}>"
    )
    with mail_server() as mailbox:
        mailed(mailbox, channel)

    assert mailbox.mails[0]["Subject"] == "greet: ValueError !"
    assert body_of(mailbox, "plain") == "see j1\n<boom>\n"
    assert body_of(mailbox, "html") == "<pre>see j1\n&lt;boom&gt;</pre>\n"


def test_nothing_that_a_job_says_is_markup() -> None:
    evil = "<script>alert('x')</script>\"&"
    with mail_server() as mailbox:
        mailed(mailbox, notice=NOTICE | {"task": evil, "error": {"type": evil, "message": evil}, "reason": evil})

    html = body_of(mailbox, "html")
    assert "<script" not in html
    assert html.count("&lt;script&gt;") == 5


@pytest.mark.parametrize("char", BREAKS)
def test_nothing_that_a_job_says_becomes_a_header(char: str) -> None:
    evil = f"x{char}Bcc: evil@example.org{char}{char}forged"
    channel = Email("ops@example.org", subject="{task} {error_message} {team}")
    with mail_server() as mailbox:
        mailed(mailbox, channel, NOTICE | {"task": evil, "team": evil, "error": {"type": evil, "message": evil}})

    (mail,) = mailbox.mails
    assert mailbox.recipients == [["ops@example.org"]]
    assert mail["Bcc"] is None
    assert mail["Subject"] == " ".join(["x Bcc: evil@example.org forged"] * 3)
    expected = {"From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "Mainspring-Id", "Mainspring-Event"}
    assert set(mail.keys()) - {"X-Peer", "X-MailFrom", "X-RcptTo"} == {*expected, "MIME-Version", "Content-Type"}


@pytest.mark.parametrize("char", BREAKS)
def test_a_sender_that_would_be_more_than_one_header_is_refused(char: str) -> None:
    with pytest.raises(InvalidValue, match="MAINSPRING_MAIL_FROM"):
        sender_of(f"Jobs{char}Bcc: evil@example.org <jobs@example.org>")


@pytest.mark.parametrize("mail_from", ["", "jobs", "Jobs <jobs>", "a@example.org, b@example.org"])
def test_what_is_no_sender_is_refused(mail_from: str) -> None:
    with pytest.raises(InvalidValue, match="MAINSPRING_MAIL_FROM to be an address in ASCII, with a name before it or "):
        sender_of(mail_from)


def test_a_long_line_and_any_sign_arrive_as_they_are() -> None:
    message = "ü∅" * 2_000 + "\n.\nQUIT\n"
    with mail_server() as mailbox:
        mailed(mailbox, Email("ops@example.org", text="{error_message}"), NOTICE | {"error": {"message": message}})

    assert body_of(mailbox, "plain").rstrip("\n") == message.rstrip("\n")


@pytest.mark.parametrize(
    ("url", "scheme", "port"),
    [
        ("smtp+starttls://mail.example.org", "smtp+starttls", 587),
        ("smtps://mail.example.org", "smtps", 465),
        ("smtp://localhost", "smtp", 25),
        ("smtp://127.0.0.1:2525", "smtp", 2525),
        ("smtp://[::1]:2525", "smtp", 2525),
        ("smtp+plain://mail.example.org:26", "smtp+plain", 26),
    ],
)
def test_a_server_is_named_by_how_it_is_spoken_with(url: str, scheme: str, port: int) -> None:
    server = server_of(url)

    assert (server.scheme, server.port) == (scheme, port)


def test_a_password_may_have_any_signs_and_is_not_shown() -> None:
    server = server_of("smtps://us%40er:p%2F%3Aw@mail.example.org")

    assert (server.user, server.password) == ("us@er", "p/:w")
    assert "p/:w" not in repr(server)
    assert "canary" not in repr(Delivery(smtp="smtps://user:canary@mail.example.org"))


@pytest.mark.parametrize(
    "url",
    ["", "mail.example.org", "https://mail.example.org", "smtps://", "smtps://host:port", "smtp://mail.example.org"],
)
def test_what_is_no_server_or_could_be_overheard_is_refused(url: str) -> None:
    with pytest.raises(InvalidValue, match="expected MAINSPRING_SMTP to be like"):
        server_of(url)


@pytest.mark.parametrize("missing", [{"smtp": None}, {"mail_from": None}, {"smtp": "smtp://far.example.org"}])
def test_what_the_operator_has_not_set_up_waits_for_him(missing: dict[str, Any]) -> None:
    with mail_server() as mailbox, pytest.raises(Undelivered, match="MAINSPRING_SMTP") as raised:
        mailed(mailbox, **missing)

    assert not isinstance(raised.value, Undeliverable)


@pytest.mark.parametrize(("answer", "kind"), [("550 no such user", Undeliverable), ("451 try later", Undelivered)])
def test_whom_the_server_refuses_for_good_is_not_tried_again(answer: str, kind: type[Exception]) -> None:
    with mail_server(lambda _: answer) as mailbox, pytest.raises(Undelivered, match=answer) as raised:
        mailed(mailbox)

    assert type(raised.value) is kind
    assert mailbox.mails == []


def test_some_that_are_refused_for_good_do_not_keep_it_from_the_others() -> None:
    channel = Email(["gone@example.org", "ops@example.org"])
    with mail_server(lambda address: "550 no" if address.startswith("gone") else None) as mailbox:
        kept = mailed(mailbox, channel)

    assert kept == {"refused": {"gone@example.org": "550 no"}}
    assert mailbox.recipients == [["ops@example.org"]]


def test_a_server_that_is_away_may_come_back() -> None:
    with mail_server() as mailbox:
        pass

    with pytest.raises(Undelivered, match="can't be used") as raised:
        mailed(mailbox)
    assert not isinstance(raised.value, Undeliverable)


def over_tls(mailbox: Mailbox, trusted: Path | None, user: str = "") -> dict[str, object]:
    url = f"smtp+starttls://{user}localhost:{mailbox.port}"
    delivery = Delivery(smtp=url, mail_from="jobs@example.org")
    return send(OPS, ID, NOTICE, delivery, lambda: ssl.create_default_context(cafile=trusted))


def test_mail_goes_over_tls_after_a_log_in(tmp_path: Path) -> None:
    trusted, server = certificate_of("localhost", tmp_path)
    with mail_server(tls=server, login=("us@er", "p:w")) as mailbox:
        over_tls(mailbox, trusted, "us%40er:p%3Aw@")

    assert len(mailbox.mails) == 1


def test_a_server_whose_certificate_is_not_trusted_gets_neither_mail_nor_password(tmp_path: Path) -> None:
    _, server = certificate_of("localhost", tmp_path)
    with mail_server(tls=server, login=("user", "canary")) as mailbox, pytest.raises(Undelivered, match="certificate"):
        over_tls(mailbox, None, "user:canary@")

    assert mailbox.mails == []


def test_a_server_with_the_certificate_of_another_is_refused(tmp_path: Path) -> None:
    trusted, server = certificate_of("other.example.org", tmp_path)
    with mail_server(tls=server) as mailbox, pytest.raises(Undelivered, match="certificate"):
        over_tls(mailbox, trusted)

    assert mailbox.mails == []


def test_a_server_without_tls_gets_no_mail_where_that_was_asked_for() -> None:
    with mail_server() as mailbox, pytest.raises(Undelivered, match="can't be used"):
        over_tls(mailbox, None)

    assert mailbox.mails == []


def test_a_wrong_password_is_not_repeated_and_may_be_mended(tmp_path: Path) -> None:
    trusted, server = certificate_of("localhost", tmp_path)
    with mail_server(tls=server, login=("user", "right")) as mailbox, pytest.raises(Undelivered) as raised:
        over_tls(mailbox, trusted, "user:canary@")

    assert not isinstance(raised.value, Undeliverable)
    assert "canary" not in str(raised.value)


@pytest.mark.parametrize("password", ["canary-bird", "abc"])
@pytest.mark.parametrize("refuses", ["AUTH", "MAIL", "RCPT", "DATA"])
def test_a_server_that_repeats_the_log_in_later_is_not_quoted(refuses: str, password: str) -> None:
    with indiscreet_server(refuses) as place:
        delivery = Delivery(smtp=f"smtp://jobs-user:{password}@{place}", mail_from="jobs@example.org")
        with pytest.raises(Undelivered) as raised:
            send(OPS, ID, NOTICE, delivery)

    kept = traceback_of(raised.value)
    encoded = b64encode(f"\0jobs-user\0{password}".encode()).decode()
    forbidden = [encoded, "jobs-user", *([password] if len(password) > 5 else [])]
    assert not [word for word in forbidden if word in kept]


def test_a_password_that_can_not_be_sent_is_not_told() -> None:
    with indiscreet_server("none") as place, pytest.raises(Undelivered, match="ASCII") as raised:
        send(OPS, ID, NOTICE, Delivery(smtp=f"smtp://jobs:can%C3%A4ry@{place}", mail_from="jobs@example.org"))

    assert "ä" not in traceback_of(raised.value)


def test_a_mail_can_be_read_as_one(tmp_path: Path) -> None:
    mail = compose(OPS, ID, NOTICE, sender_of("jobs@example.org"), {})

    again = message_from_bytes(bytes(mail), policy=default)

    assert again["Message-ID"] == mail["Message-ID"]
    assert again.defects == []
