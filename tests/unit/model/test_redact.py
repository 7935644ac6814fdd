"""Redaction: no form of a secret's value that is likely to be written anywhere is left."""

from __future__ import annotations

import gc
import json
import re
import weakref
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.model.redact import STARS, Redactor, redactor
from mainspring.model.text import shortened

SECRET = 'Tr0ub4dor&3 "/ü\\'
REDACT = Redactor([SECRET])
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=6)


@pytest.mark.parametrize(
    "written",
    [
        SECRET,
        repr(SECRET),
        repr(SECRET.encode()),
        json.dumps(SECRET),
        json.dumps(SECRET, ensure_ascii=False),
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        re.sub("%..", lambda code: code[0].lower(), quote_plus(SECRET)),
        urlencode({"token": SECRET}),
        b64encode(SECRET.encode()).decode(),
        urlsafe_b64encode(SECRET.encode()).decode(),
    ],
)
def test_no_form_of_a_value_is_left(written: str) -> None:
    told = REDACT(f"it was {written}, they say")

    assert STARS in told
    assert told.startswith("it was ")
    assert told.endswith(", they say")
    assert "r0ub4" not in told


@given(VALUES, st.binary(max_size=5), st.binary(max_size=5))
def test_a_value_in_the_midst_of_base64_is_found(value: str, before: bytes, after: bytes) -> None:
    if len(value.encode()) < 8:
        return
    data = before + value.encode() + after
    redact = Redactor([value])

    for whole in (b64encode(data).decode(), urlsafe_b64encode(data).decode()):
        assert STARS in redact(whole)


@given(VALUES)
def test_documents_stay_documents(value: str) -> None:
    document = json.dumps({"a": [value, f"x{value}y", 1, None], value: True})

    told = json.loads(Redactor([value]).document(document))

    assert value not in [*told, *told["a"]]


def test_a_number_that_is_the_value_is_found() -> None:
    told = Redactor(["4711081512"]).document('{"pin":4711081512,"n":12,"deep":[[4711081512.5]]}')

    assert json.loads(told) == {"pin": STARS, "n": 12, "deep": [[STARS]]}


def test_a_value_that_looks_like_json_leaves_the_rest_of_a_document_as_it_is() -> None:
    redact = Redactor(['","b":"'])

    assert json.loads(redact.document('{"a":"1","b":"2"}')) == {"a": "1", "b": "2"}


def test_each_line_of_a_value_is_found_by_itself() -> None:
    redact = Redactor(["-----BEGIN KEY-----\nc2VjcmV0c2VjcmV0\nbW9yZXNlY3JldA==\n"])

    assert redact("line 2 is c2VjcmV0c2VjcmV0") == "line 2 is ***"


def test_the_beginning_of_a_value_that_an_error_has_cut_short_is_found() -> None:
    value = "sk_live_" + "0123456789" * 10

    told = Redactor([value])(f"expected int, got: {shortened({'token': value})}")

    assert told == "expected int, got: {'token': '***…"


def test_the_longer_of_two_values_is_found_whole() -> None:
    assert Redactor(["secret", "secret-and-more"])("a secret-and-more b secret c") == "a *** b *** c"


def test_a_value_that_is_too_short_is_left() -> None:
    assert Redactor(["abcde"])("abcdef") == "abcdef"


LINES = [f"{number:03}-{'abcdefghij'[number % 10] * 7}-{number * 7919}" for number in range(200)]


@given(st.lists(st.sampled_from(LINES) | st.text(max_size=12), max_size=12))
def test_each_of_many_lines_is_found_wherever_it_stands(pieces: list[str]) -> None:
    told = Redactor(["\n".join(LINES)])("".join(pieces))

    assert not [line for line in LINES if line in told]
    assert told == "".join(STARS if piece in LINES else piece for piece in pieces)


def test_values_that_overlap_leave_nothing_of_either() -> None:
    assert Redactor(["abcabcabc"])("xabcabcabcabcx") == "x***x"
    assert Redactor(["secret-one", "one-secret"])("a secret-one-secret") == "a ***"


@given(st.lists(st.sampled_from([SECRET, quote(SECRET), "xy", "Tr0", "\n"]), max_size=9), st.data())
def test_what_is_settled_holds_no_half_of_a_value_whatever_follows(pieces: list[str], data: st.DataObject) -> None:
    whole = "".join(pieces)
    cut = data.draw(st.integers(0, len(whole)))

    settled, rest = REDACT.settled(whole[:cut])
    told, left = REDACT.settled(rest + whole[cut:])

    assert settled + told + REDACT(left) == REDACT(whole)


def test_what_is_cut_off_at_its_beginning_holds_no_half_of_a_value() -> None:
    redact = Redactor(["0123456789"])

    assert redact.after("ab0123456789cd", 5) == "cd"
    assert redact.after("ab0123456789cd", 2) == "***cd"
    assert redact.after("ab0123456789cd", 12) == "cd"


def test_those_who_need_the_same_share_it_and_the_last_one_takes_it_along() -> None:
    first = redactor(["hunter2-topsecret"])
    assert redactor(["hunter2-topsecret"]) is first
    gone = weakref.ref(first)
    del first
    gc.collect()
    assert gone() is None
