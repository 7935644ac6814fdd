"""Redaction: the values of secrets give way to stars, in whatever form they are written."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus
from weakref import WeakValueDictionary

import msgspec

SHORTEST = 6
"""Characters that a value must have to be told from other text."""

STARS = "***"
_CUT = "…"
_SHORTEST_REST = 4
_LONGEST_REST = 200
_FEW = 50
"""Forms that are looked for one by one."""

_STRIDE = 3
_SAMPLE = SHORTEST - _STRIDE + 1
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
        self._forms = sorted({form for part in parts if len(part) >= SHORTEST for form in _forms(part)})
        self.longest = max(map(len, self._forms), default=0)
        """Bytes of the longest form, in which all is ASCII. Who cuts a text must know so much more of it."""
        self._known = _samples(self._forms) if len(self._forms) > _FEW else None
        self._heads = {form[:_SHORTEST_REST] for form in self._forms}

    def __call__(self, text: str) -> str:
        """Return *text* without any of the values."""
        if not self._forms:
            return text
        spans = self._spans(text)
        if spans:
            text = _starred(text, spans)
        return self._without_rests(text) if _CUT in text else text

    def settled(self, text: str) -> tuple[str, str]:
        """Return as much of *text*, without any of the values, as can't change by what follows; and the rest as it is.

        What is cut first, and looked at second, would keep the halves of values.
        """
        end = max(0, len(text) - max(0, self.longest - 1))
        end = next((stop for start, stop in self._spans(text) if start < end < stop), end)
        return self(text[:end]), text[end:]

    def after(self, text: str, start: int) -> str:
        """Return *text* from *start* on, without any of the values and what is left of one that begins before."""
        start = next((end for begin, end in self._spans(text) if begin < start < end), start)
        return self(text[start:])

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Return where values begin and end, those that overlap as one."""
        spans: list[tuple[int, int]] = []
        for start, end in sorted(span for form in self._held_by(text) for span in _places(form, text)):
            if spans and start < spans[-1][1]:
                begun, other = spans.pop()
                spans.append((begun, max(end, other)))
            else:
                spans.append((start, end))
        return spans

    def _held_by(self, text: str) -> Iterable[str]:
        """Return the forms that *text* holds."""
        if self._known is None:
            return [form for form in self._forms if form in text]
        known = self._known
        met = [known[sample] for at in range(0, len(text), _STRIDE) if (sample := text[at : at + _SAMPLE]) in known]
        return {form for forms in met for form in forms if form in text} if met else ()

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
        for start in range(max(0, len(piece) - _LONGEST_REST), len(piece) - _SHORTEST_REST + 1):
            if piece[start : start + _SHORTEST_REST] in self._heads and self._begins(piece[start:]):
                return piece[:start] + STARS
        return piece

    def _begins(self, rest: str) -> bool:
        """Return whether some form begins with *rest*."""
        at = bisect_left(self._forms, rest)
        return at < len(self._forms) and self._forms[at].startswith(rest)


_redactors: WeakValueDictionary[tuple[str, ...], Redactor] = WeakValueDictionary()


def redactor(values: Iterable[str]) -> Redactor:
    """Return what redacts *values*, shared by all who need it at the same time, and forgotten with the last of them."""
    key = tuple(dict.fromkeys(values))
    found = _redactors.get(key)
    if found is None:
        found = _redactors[key] = Redactor(key)
    return found


def _samples(forms: Iterable[str]) -> dict[str, list[str]]:
    """Return some characters of each form, one of which is met by whoever looks at every third place of a text.

    A key of many lines has hundreds of forms, and to look for each of them in every line would cost more than the line.
    """
    known: dict[str, list[str]] = {}
    for form in forms:
        for offset in range(_STRIDE):
            known.setdefault(form[offset : offset + _SAMPLE], []).append(form)
    return known


def _places(form: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield where *form* stands in *text*, where it begins within itself too."""
    at = text.find(form)
    while at >= 0:
        yield at, at + len(form)
        at = text.find(form, at + 1)


def _starred(text: str, spans: list[tuple[int, int]]) -> str:
    begins, ends = zip(*spans, strict=True)
    return STARS.join(text[end:begin] for end, begin in zip((0, *ends), (*begins, len(text)), strict=True))


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
