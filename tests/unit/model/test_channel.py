"""Channels: what may be told where, and what is refused before anything is stored."""

from __future__ import annotations

import pytest

from mainspring import Email, Webhook
from mainspring.errors import InvalidValue
from mainspring.model.channel import Channel, Event, decode_channels, encode_channels, one_line, redefined

BREAKS = ["\r\n", "\n", "\r", "\0", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"]


@pytest.mark.parametrize("on", ["failure", ["failure"], ("failure",), Event.FAILURE, ["failure", "failure"]])
def test_events_are_said_in_any_way(on: str | list[str]) -> None:
    assert Webhook("https://example.org", on=on).on == (Event.FAILURE,)


def test_failures_and_recoveries_are_told_unless_something_else_is_said() -> None:
    assert Webhook("https://example.org").on == Email("ops@example.org").on == ("failure", "recovered")


@pytest.mark.parametrize(("on", "hint"), [(["failed"], "did you mean 'failure'"), ([], "got none"), ("", "got: ''")])
def test_what_is_no_event_is_refused(on: str, hint: str) -> None:
    with pytest.raises(InvalidValue, match=hint):
        Webhook("https://example.org", on=on)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "ftp://example.org",
        "file:///etc/passwd",
        "https://",
        "https:///path",
        "https://user:pass@example.org",
        "https://example.org:25/",
        "https://user@example.org",
        "https://example.org/a b",
        "https://example.org:99999/",
        "https://[::1",
        "https://example.org/" + "x" * 2_000,
        *(f"https://example.org/a{char}b" for char in BREAKS),
        7,
    ],
)
def test_what_is_no_address_of_a_receiver_is_refused(url: str) -> None:
    with pytest.raises(InvalidValue, match="expected the url of a webhook"):
        Webhook(url)


def test_a_password_in_an_address_is_not_repeated() -> None:
    with pytest.raises(InvalidValue) as refused:
        Webhook("https://user:canary@example.org")

    assert "canary" not in str(refused.value)


@pytest.mark.parametrize("secret", ["", "x" * 1_001, ["a", "b", "c"], ["a", ""], [7], "a\0b", "secret://no name"])
def test_what_is_no_secret_is_refused_and_not_repeated(secret: str) -> None:
    with pytest.raises(InvalidValue, match="secret"):
        Webhook("https://example.org", secret=secret)


def test_neither_secret_nor_path_is_shown() -> None:
    hook = Webhook("https://hooks.example.org/services/canary", secret=["canary", "secret://canary"])

    assert "canary" not in repr(hook)
    assert repr(hook) == "Webhook('https://hooks.example.org', on=('failure', 'recovered'), secret=...)"
    assert hook.place == "https://hooks.example.org"


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ops",
        "@example.org",
        "ops@",
        "ops@example..org",
        "ops@-example.org",
        "a b@example.org",
        "Ops <ops@example.org>",
        "a@example.org,b@example.org",
        "a@example.org;b@example.org",
        "öps@example.org",
        "ops@exämple.org",
        "o@" + "x" * 260,
        *(f"ops@example.org{char}Bcc: evil@example.org" for char in BREAKS),
        *(f"ops{char}@example.org" for char in BREAKS),
        7,
    ],
)
def test_what_is_no_address_of_one_person_is_refused(address: str) -> None:
    with pytest.raises(InvalidValue, match="expected the address of a mail"):
        Email([address])


@pytest.mark.parametrize("to", [[], ["ops@example.org"] * 51])
def test_a_mail_has_some_recipients_and_not_too_many(to: list[str]) -> None:
    with pytest.raises(InvalidValue, match="expected 1 to 50 addresses"):
        Email(to)


@pytest.mark.parametrize("char", BREAKS)
def test_a_subject_is_one_line(char: str) -> None:
    with pytest.raises(InvalidValue, match="subject"):
        Email("ops@example.org", subject=f"{{task}}{char}Bcc: evil@example.org")


@pytest.mark.parametrize("text", ["{nothing}", "{task.__class__}", "{task!r}", "{task:>9}", "{0}", "{", "{task[0]}"])
@pytest.mark.parametrize("name", ["subject", "text"])
def test_a_template_names_known_facts_and_nothing_else(name: str, text: str) -> None:
    with pytest.raises(InvalidValue, match=f"expected {name} to"):
        Email("ops@example.org", **{name: text})


def test_channels_come_back_as_they_were() -> None:
    channels: list[Channel] = [
        Webhook("https://example.org/hook", on=Event.SUCCESS, secret=["new", "secret://old"]),
        Webhook("https://example.org"),
        Email(["a@example.org", "b@example.org"], on=["late", "missed"], subject="{task}", text="{error_message}\n"),
    ]

    assert decode_channels(encode_channels(channels)) == tuple(channels)
    assert encode_channels([]) is encode_channels(None) is None
    assert encode_channels(channels[0]) == encode_channels(channels[:1])


@pytest.mark.parametrize("notify", ["https://example.org", 7, ["https://example.org"], [Webhook("https://a.b")] * 21])
def test_what_is_no_list_of_channels_is_refused(notify: list[Channel]) -> None:
    with pytest.raises(InvalidValue, match="notify"):
        encode_channels(notify)


@pytest.mark.parametrize("text", ["", "nonsense", "{}", '["x"]', '[{"kind":"webhook"}]', '[{"kind":"email","to":7}]'])
def test_what_can_not_be_read_names_nobody(text: str) -> None:
    assert decode_channels(text) == ()


def test_a_secret_that_is_given_anew_takes_the_place_of_the_old_one() -> None:
    before, after = (Webhook("https://example.org", secret=secret) for secret in ("old", "new"))

    assert redefined(before, after) == after
    assert redefined(before, Email("ops@example.org")) == Email("ops@example.org")
    assert redefined(None, before) == before


@pytest.mark.parametrize("char", BREAKS)
def test_whatever_ends_a_line_does_not_in_a_header(char: str) -> None:
    assert one_line(f" a{char}{char}b ") == "a b"


@pytest.mark.parametrize("template", ["{task.__class__}", "{task[0]}", "{task!r}", "{", "{task:>9}"])
@pytest.mark.parametrize("name", ["subject", "text"])
def test_what_a_template_may_name_is_told(name: str, template: str) -> None:
    known = f"expected {name} to name facts of the notification, each as in {{task}}, got: .*; known are event, team, "
    with pytest.raises(InvalidValue, match=known):
        Email("ops@example.org", **{name: template})
