"""Signatures: a receiver knows what is ours, by either of two secrets, and for a while only."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from mainspring.notify import signature as module
from mainspring.notify import verify
from mainspring.notify.signature import sign

BODY = b'{"event":"failure"}'
NOW = 1_700_000_000
ID = "01890000-0000-7000-8000-000000000001"


@pytest.fixture(autouse=True)
def _standing_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock:
        def now(self) -> datetime:
            return datetime.fromtimestamp(NOW, UTC)

    monkeypatch.setattr(module, "_clock", Clock())


def headers(*secrets: str, notice_id: str = ID, timestamp: int = NOW, body: bytes = BODY) -> dict[str, str]:
    return {
        "Mainspring-Id": notice_id,
        "Mainspring-Timestamp": str(timestamp),
        "Mainspring-Signature": sign(secrets, notice_id, timestamp, body),
    }


def test_the_signature_is_what_the_documents_say() -> None:
    signed = b"01890000-0000-7000-8000-000000000001.1700000000." + BODY
    expected = hmac.new(b"s3cret", signed, hashlib.sha256).hexdigest()

    assert sign(["s3cret"], ID, NOW, BODY) == f"v1={expected}"
    assert verify("s3cret", headers("s3cret"), BODY)


@pytest.mark.parametrize(
    ("signed", "known"), [(["new", "old"], "old"), (["new", "old"], "new"), (["new"], ["old", "new"]), (["a"], ("a",))]
)
def test_one_secret_of_two_will_do_on_either_side(signed: list[str], known: str | Sequence[str]) -> None:
    assert verify(known, headers(*signed), BODY)


def test_names_of_headers_may_be_written_in_any_way() -> None:
    assert verify("s", {name.upper(): value for name, value in headers("s").items()}, BODY)
    assert verify("s", {name.lower(): value for name, value in headers("s").items()}, BODY)


@pytest.mark.parametrize(
    "changed",
    [
        {"Mainspring-Signature": ""},
        {"Mainspring-Signature": "v1="},
        {"Mainspring-Signature": "v2=" + "0" * 64},
        {"Mainspring-Signature": "v1=" + "0" * 64},
        {"Mainspring-Signature": "v1=ü"},
        {"Mainspring-Id": ""},
        {"Mainspring-Id": "01890000-0000-7000-8000-000000000002"},
        {"Mainspring-Id": f"{ID} "},
        {"Mainspring-Timestamp": ""},
        {"Mainspring-Timestamp": str(NOW + 1)},
        {"Mainspring-Timestamp": f" {NOW}"},
        {"Mainspring-Timestamp": "٣"},
        {"Mainspring-Timestamp": "9" * 5_000},
    ],
)
def test_what_was_changed_is_not_ours(changed: dict[str, str]) -> None:
    assert not verify("s", headers("s") | changed, BODY)


def test_what_is_signed_can_not_be_taken_apart_in_another_place() -> None:
    body = f'{{"message":"x.{NOW}.y"}}'.encode()
    before, _, after = body.partition(f".{NOW}.".encode())
    shifted = headers("s", body=body) | {"Mainspring-Id": f"{ID}.{NOW}.{before.decode()}"}

    assert not verify("s", shifted, after)
    assert not verify("s", headers("s", notice_id=""), BODY)


def test_another_body_or_secret_or_none_is_not_ours() -> None:
    assert not verify("s", headers("s"), BODY + b" ")
    assert not verify("t", headers("s"), BODY)
    assert not verify("", headers(""), BODY)
    assert not verify([], headers("s"), BODY)
    assert not verify("s", {}, BODY)


@pytest.mark.parametrize(("ago", "fresh"), [(0, True), (300, True), (301, False), (-300, True), (-301, False)])
def test_what_is_too_old_or_from_the_future_is_refused(ago: int, fresh: bool) -> None:
    assert verify("s", headers("s", timestamp=NOW - ago), BODY) is fresh


def test_how_old_it_may_be_is_the_receivers_choice() -> None:
    assert verify("s", headers("s", timestamp=NOW - 3_000), BODY, tolerance="1h")
    assert not verify("s", headers("s", timestamp=NOW - 3), BODY, tolerance=2)


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What was compared, and whether it was the same."""
    found: list[bool] = []

    def compare(one: bytes, other: bytes) -> bool:
        found.append(one == other)
        return found[-1]

    monkeypatch.setattr(hmac, "compare_digest", compare)
    return found


def test_every_signature_is_compared_whatever_was_found_before(compared: list[bool]) -> None:
    assert verify(["a", "b"], headers("a", "b"), BODY)
    assert compared == [True, False, False, True]


def test_of_many_signatures_not_all_are_looked_at(compared: list[bool]) -> None:
    assert not verify("s", headers("s") | {"Mainspring-Signature": "v1=0," * 100_000}, BODY)
    assert len(compared) <= 8
