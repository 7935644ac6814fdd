"""What a command says: told line by line as long as there is room, counted, and its end kept."""

from __future__ import annotations

import logging
from collections.abc import Callable

from mainspring.model.text import storable

MOST = 32_768
"""Bytes of what a command writes that become its result. Each may take six in JSON, and a result has its limit."""

_LONGEST_LINE = 2_000  # bytes, of which each may take four characters, and lines are cut at 10,000
_MOST_RECENT = 2_000
_LAST_LINES = 20


class Stream:
    """One of the two that a command writes to, cut into lines."""

    def __init__(self, level: int) -> None:
        self.level = level
        self._rest = b""

    def lines(self, data: bytes) -> list[str]:
        """Return the lines that *data* completes; a long one, which may have no end, comes in pieces."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            whole, self._rest = [*whole, self._rest], b""
        return [piece for line in whole for piece in _pieces(line.removesuffix(b"\r"))]

    def last(self) -> list[str]:
        """Return what came after the last end of a line."""
        rest, self._rest = self._rest, b""
        return _pieces(rest) if rest else []


class Output:
    """What one command has said. However much that is, little of it is held."""

    def __init__(self, keep: Callable[[int, str], bool]) -> None:
        """*keep* takes a line with its level, and returns whether it would take another."""
        self.out, self.err = Stream(logging.INFO), Stream(logging.WARNING)
        self.count = 0
        self._keep = keep
        self._has_room = True
        self._end = bytearray()
        self._written = 0
        self._recent = bytearray()

    def feed(self, stream: Stream, data: bytes) -> None:
        self.count += len(data)
        _append(self._recent, data, _MOST_RECENT)
        if stream is self.out:
            self._written += len(data)
            _append(self._end, data, MOST)
        if self._has_room:
            self._tell(stream.level, stream.lines(data))

    def close(self) -> None:
        for stream in (self.out, self.err):
            if self._has_room:
                self._tell(stream.level, stream.last())

    @property
    def end(self) -> str:
        """The end of what it has written to its standard output, or all of it."""
        return _text(bytes(self._end))

    @property
    def truncated(self) -> bool:
        return self._written > MOST

    @property
    def last_lines(self) -> str:
        """The last few lines that it has written to either stream."""
        return "\n".join(_text(bytes(self._recent)).strip().splitlines()[-_LAST_LINES:])

    def _tell(self, level: int, lines: list[str]) -> None:
        for line in lines:
            self._has_room = self._keep(level, line)
            if not self._has_room:
                return


def _append(end: bytearray, data: bytes, most: int) -> None:
    end += data[-most:]
    del end[:-most]


def _pieces(line: bytes) -> list[str]:
    return [_text(line[start : start + _LONGEST_LINE]) for start in range(0, max(1, len(line)), _LONGEST_LINE)]


def _text(data: bytes) -> str:
    return storable(data.decode(errors="backslashreplace"))
