"""Lists that fit: columns as wide as what they hold, one that takes the rest, and none that wraps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.text import Text

from mainspring.cli.output import ENDLESS, printable

_GAP = 2


@dataclass(frozen=True)
class Column:
    """One column. `spare` says how soon it is left out where there is no room: the larger, the sooner; 0 is never.

    The one that takes the `rest` has `least` before others go: as much as a bar of progress needs.
    """

    title: str
    most: int = 40
    right: bool = False
    rest: bool = False
    least: int = 17
    spare: int = 0


@dataclass(frozen=True)
class Grid:
    """A list, with a title in place of its first column's."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Text]]

    def lines(self, title: str, width: int) -> list[Text]:
        """Return its head and its rows, each *width* wide."""
        widths = self._widths(len(title), width)
        head = [Text(title), *(Text(column.title) for column in self.columns[1:])]
        return [self._line(row, widths, width) for row in (head, *self.rows)]

    def uncut(self) -> Grid:
        """Return the same with columns that cut nothing, given the room."""
        return replace(self, columns=[replace(column, most=ENDLESS) for column in self.columns])

    def wanted(self, title: str) -> int:
        """Return how wide it is with nothing left out."""
        wide = [self._wanted(number, len(title)) for number in range(len(self.columns))]
        rest = next(number for number, column in enumerate(self.columns) if column.rest)
        wide[rest] = max(wide[rest], self.columns[rest].least)
        return sum(wide) + _GAP * (len(wide) - 1)

    def _line(self, row: Sequence[Text], widths: dict[int, int], width: int) -> Text:
        parts = []
        for number, wide in widths.items():
            part = row[number].copy()
            part.truncate(wide, overflow="ellipsis")
            part.align("right" if self.columns[number].right else "left", wide)
            parts.append(part)
        return fitted(Text(" " * _GAP, end="").join(parts), width)

    def _widths(self, title: int, width: int) -> dict[int, int]:
        """Return how wide each column is that is shown, by its number."""
        wide = {number: self._wanted(number, title) for number in range(len(self.columns))}
        rest = next(number for number, column in enumerate(self.columns) if column.rest)
        spare = sorted((number for number in wide if self.columns[number].spare), key=self._spare)
        while (left := width - sum(_GAP + wide[n] for n in wide if n != rest)) < self.columns[rest].least and spare:
            del wide[spare.pop()]
        wide[rest] = max(1, left)
        return wide

    def _spare(self, number: int) -> int:
        return self.columns[number].spare

    def _wanted(self, number: int, title: int) -> int:
        column = self.columns[number]
        widest = max((row[number].cell_len for row in self.rows), default=0)
        return min(column.most, max(title if number == 0 else len(column.title), widest))


def flat(text: object, style: str = "") -> Text:
    """Return *text* on one line, whatever is in it."""
    return Text(printable(" ".join(str(text).split())), style, no_wrap=True, end="")


def fitted(line: Text, width: int) -> Text:
    """Return *line* exactly *width* wide."""
    line.truncate(width, overflow="ellipsis", pad=True)
    return line
