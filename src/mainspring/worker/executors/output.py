"""What a command says: told line by line as long as there is room, counted, and its end kept.

Secrets are looked for before anything is cut: a half of one is not known again.
"""

from __future__ import annotations

import codecs
import logging
from collections.abc import Callable

from mainspring.model.redact import Redactor
from mainspring.model.text import storable

MOST = 32_768
"""Bytes of what a command writes that become its result. Each may take six in JSON, and a result has its limit."""

_LONGEST_LINE = 2_000  # characters, of which each may take four as an escape, and lines are cut at 10,000
_MOST_RECENT = 2_000
_LAST_LINES = 20
_LONGEST_CHARACTER = 4


class Stream:
    """One of the two that a command writes to, cut into lines."""

    def __init__(self, level: int, redact: Redactor) -> None:
        self.level = level
        self._redact = redact
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._rest = ""
        self._most = _LONGEST_LINE + 2 * redact.longest

    def lines(self, data: bytes) -> list[str]:
        """Return the lines that *data* completes; a long one, which may have no end, comes in pieces."""
        *whole, self._rest = (self._rest + self._decoder.decode(data)).split("\n")
        told = [self._redact(line.removesuffix("\r")) for line in whole]
        if len(self._rest) > self._most:
            begun, self._rest = self._redact.settled(self._rest)
            told.append(begun)
        return [piece for line in told for piece in _pieces(line)]

    def last(self) -> list[str]:
        """Return what came after the last end of a line."""
        rest, self._rest = self._rest + self._decoder.decode(b"", final=True), ""
        return _pieces(self._redact(rest)) if rest else []


class Output:
    """What one command has said. However much that is, little of it is held."""

    def __init__(self, keep: Callable[[int, str], bool], redact: Redactor) -> None:
        """*keep* takes a line with its level, and returns whether it would take another."""
        self.out, self.err = Stream(logging.INFO, redact), Stream(logging.WARNING, redact)
        self.count = 0
        self._keep = keep
        self._has_room = True
        self._end = End(MOST, redact)
        self._recent = End(_MOST_RECENT, redact)

    def feed(self, stream: Stream, data: bytes) -> None:
        self.count += len(data)
        self._recent.feed(data)
        if stream is self.out:
            self._end.feed(data)
        if self._has_room:
            self._tell(stream.level, stream.lines(data))

    def close(self) -> None:
        for stream in (self.out, self.err):
            if self._has_room:
                self._tell(stream.level, stream.last())

    @property
    def end(self) -> str:
        """The end of what it has written to its standard output, or all of it."""
        return self._end.text()

    @property
    def truncated(self) -> bool:
        return self._end.count > MOST

    @property
    def last_lines(self) -> str:
        """The last few lines that it has written to either stream."""
        return "\n".join(self._recent.text().strip().splitlines()[-_LAST_LINES:])

    def _tell(self, level: int, lines: list[str]) -> None:
        for line in lines:
            self._has_room = self._keep(level, line)
            if not self._has_room:
                return


class End:
    """The last *most* bytes of what was written, without the values of secrets."""

    def __init__(self, most: int, redact: Redactor) -> None:
        self.count = 0
        self._most = most
        self._redact = redact
        self._data = bytearray()

    def feed(self, data: bytes) -> None:
        self.count += len(data)
        held = self._most + self._redact.longest + _LONGEST_CHARACTER
        self._data += data[-held:]
        del self._data[:-held]

    def text(self) -> str:
        lost = self.count > len(self._data)
        begin = len(_raw(self._data[: self._redact.longest])) if lost else 0
        kept = self._redact.after(_raw(self._data), begin).encode(errors="surrogateescape")
        cut = kept[-self._most :]
        return _text(_from_character(cut) if lost or len(cut) < len(kept) else cut)


def _raw(data: bytes | bytearray) -> str:
    """Return *data* as text from which it can be got back, whatever it is."""
    return data.decode(errors="surrogateescape")


def _from_character(data: bytes) -> bytes:
    """Return *data* from where a character begins, unless what comes before is no part of one."""
    begin = next((at for at, byte in enumerate(data[:_LONGEST_CHARACTER]) if byte & 0xC0 != 0x80), 0)
    return data[begin:]


def _pieces(line: str) -> list[str]:
    return [storable(line[start : start + _LONGEST_LINE]) for start in range(0, max(1, len(line)), _LONGEST_LINE)]


def _text(data: bytes) -> str:
    return storable(data.decode(errors="backslashreplace"))
