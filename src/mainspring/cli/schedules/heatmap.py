"""A heat map: how busy each hour of the week is."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from mainspring.heat import Heat, bounds

_SHADES = ("··", "░░", "▒▒", "▓▓", "██")
_LETTERS = (" .", " -", " +", " *", " #")
_COLOURS = ("dim", "green", "yellow", "dark_orange", "bold red")
_HOURS = 24


class HeatMap:
    """One row for each day of the week, one cell for each hour, shaded by its busiest minute; in UTC.

    The week begins now, so the hours of today that have passed are those of the same day next week.
    """

    def __init__(self, heat: Heat) -> None:
        self._peaks = heat.peaks()
        self._days = heat.days()
        self._bounds = bounds([peak for peak in self._peaks.values() if peak])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shades = _LETTERS if options.ascii_only else _SHADES
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
        table.add_column("", no_wrap=True)
        for hour in range(_HOURS):
            table.add_column(f"{hour:02}", no_wrap=True)
        for day in self._days:
            table.add_row(day, *(self._cell(self._peaks[day, hour], shades) for hour in range(_HOURS)))
        yield table
        yield Text("").join(self._legend(shades))

    def _cell(self, peak: float, shades: tuple[str, ...]) -> Text:
        if not peak:
            return Text("  ")
        level = bisect_left(self._bounds, peak)
        return Text(shades[level], _COLOURS[level])

    def _legend(self, shades: tuple[str, ...]) -> Iterator[Text]:
        yield Text("Ticks in a minute (UTC), up to", "dim")
        for level, bound in enumerate(self._bounds):
            yield Text("  ")
            yield Text(shades[level], _COLOURS[level])
            yield Text(f" {bound:,}", "dim")
