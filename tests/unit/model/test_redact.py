"""Redaction: no form of a secret's value that is likely to be written anywhere is left."""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.model.redact import STARS, Redactor
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
