"""Redaction: the values of secrets give way to stars, in whatever form they are written."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

import msgspec

SHORTEST = 6
"""Characters that a value must have to be told from other text."""

STARS = "***"
_CUT = "…"
_SHORTEST_REST = 4
_LONGEST_REST = 200
_PERCENT = re.compile(r"%[0-9A-F]{2}")
_encoder = msgspec.json.Encoder()


class Redactor:
    """Replaces the *values* of secrets by stars.

    It finds them as they are, escaped in JSON or by `repr`, quoted for a URL, and in base64, also as part of something
    longer. Of a value of several lines it finds each line, because a log has them apart.
    """

    def __init__(self, values: Iterable[str]) -> None:
        self.values = tuple(dict.fromkeys(values))
        parts = {part for value in self.values for part in (value, *value.splitlines())}
        found = {form for part in parts if len(part) >= SHORTEST for form in _forms(part)}
        self._forms = sorted(found, key=len, reverse=True)  # for one may be part of another

    def __call__(self, text: str) -> str:
        """Return *text* without any of the values."""
        if not self._forms:
            return text
        for form in self._forms:
            if form in text:
                text = text.replace(form, STARS)
        return self._without_rests(text) if _CUT in text else text

    def document(self, text: str) -> str:
        """Return a JSON document without any of the values."""
        if self(text) == text:
            return text
        return _encoder.encode(self._within(msgspec.json.decode(text))).decode()

    def _within(self, value: Any) -> Any:
        if isinstance(value, str):
            return self(value)
        if isinstance(value, list):
            return [self._within(inner) for inner in value]
        if isinstance(value, dict):
            return {self(name): self._within(inner) for name, inner in value.items()}
        written = json.dumps(value)
        return value if self(written) == written else STARS

    def _without_rests(self, text: str) -> str:
        """Return *text* without the beginnings of values that were cut short, as messages of errors are."""
        pieces = text.split(_CUT)
        return _CUT.join([*map(self._without_rest, pieces[:-1]), pieces[-1]])

    def _without_rest(self, piece: str) -> str:
        for form in self._forms:
            for length in range(min(len(form), len(piece), _LONGEST_REST), _SHORTEST_REST - 1, -1):
                if piece.endswith(form[:length]):
                    return piece[:-length] + STARS
        return piece


def _forms(value: str) -> Iterator[str]:
    data = value.encode(errors="surrogatepass")
    yield value
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield repr(value)[1:-1]
    yield repr(data)[2:-1]
    for quoted in (quote(data), quote(data, safe=""), quote_plus(data)):
        yield quoted
        yield _PERCENT.sub(lambda code: code[0].lower(), quoted)
    for encoded in _in_base64(data):
        yield encoded
        yield encoded.translate(str.maketrans("+/", "-_"))


def _in_base64(data: bytes) -> Iterator[str]:
    """Yield what *data* becomes in base64 wherever it stands in something longer: three bytes become four signs."""
    for before in range(3):
        encoded = b64encode(bytes(before) + data).decode()
        # Each sign tells of six bits. Those that also tell of what comes before or after are not the same everywhere.
        begin, end = -(-8 * before // 6), 8 * (before + len(data)) // 6
        if end - begin >= SHORTEST:
            yield encoded[begin:end]
