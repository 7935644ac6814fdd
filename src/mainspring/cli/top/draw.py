"""How the screen looks: a snapshot becomes lines, of which each fits and none is too many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import islice, zip_longest

from rich.text import Text

from mainspring.cli.jobs.look import COLOURS
from mainspring.cli.output import ENDLESS
from mainspring.cli.times import ago
from mainspring.cli.top.detail import facts, log_line, of_job
from mainspring.cli.top.grid import Grid, fitted, flat
from mainspring.cli.top.lists import LATER, jobs_grid, panel_grid
from mainspring.cli.top.rates import Rates
from mainspring.cli.top.screen import Panel, Screen, chosen_index, listed, panels, things
from mainspring.cli.top.snapshot import Detail, Snapshot
from mainspring.documents.told import ToldJob
from mainspring.model.job import JobState
from mainspring.model.queue import jobs_in

_WIDE = 120
_LOW = 13
"""Lines under which there is room for one panel only."""

_HEAD, _FOOT = 2, 1
_OLD = timedelta(seconds=3)

_HELP = """
 tab, left, right   the next panel, or the one before
 up, down, j, k     move; page up and down, home and end likewise
 enter              open a queue, a worker or a job
 p                  pause or resume a queue or a job
 c                  cancel a job
 r                  replay a job that failed, expired or was cancelled
 q, esc             back, and from the overview out
 ?                  this help

 What changes something is asked first, and is kept in the audit log.
 What takes the database long to count is counted less often.
"""
_HINTS = "tab panel  enter open  p pause  c cancel  r replay  ? help  q "


def draw(screen: Screen, snapshot: Snapshot, size: tuple[int, int], about: str) -> Text:
    """Return the screen, exactly as wide and high as *size* says; *about* tells what it shows."""
    width, height = size
    room = max(0, height - _HEAD - _FOOT)
    body = islice(_body(screen, snapshot, width, room), room)
    head = [_title(snapshot), _totals(snapshot).append_text(flat(about, "dim"))]
    lines = [fitted(line, width) for line in (*head, *body)]
    lines += [fitted(Text(), width)] * (height - _FOOT - len(lines))
    lines += [fitted(_foot(screen), width)]
    return Text("\n", no_wrap=True, overflow="crop", end="").join(lines[-height:])


def plain(snapshot: Snapshot, width: int) -> Iterator[Text]:
    """Yield all panels one below the other, for where there is no screen to draw on."""
    yield _totals(snapshot)
    for panel in panels(snapshot):
        grid, count = panel_grid(panel, snapshot), len(things(panel, snapshot))
        wide = width
        if width == ENDLESS:
            grid = grid.uncut()
            wide = grid.wanted(f"{panel} {count}")
        yield Text()
        yield from _window(grid, panel, None, (wide, count + 2))


def _body(screen: Screen, snapshot: Snapshot, width: int, height: int) -> Iterable[Text]:
    if screen.helping:
        return [Text(line) for line in _HELP.split("\n")]
    if screen.place is None:
        return _overview(screen, snapshot, width, height)
    if screen.place.kind == "job":
        return _job(screen, snapshot, width, height)
    known = list(facts(screen.place, snapshot))
    jobs = [thing for thing in listed(screen, snapshot) if isinstance(thing, ToldJob)]
    index = chosen_index(screen, screen.list_name, jobs)
    return [*known, *_window(jobs_grid(jobs, snapshot), "Jobs", index, (width, height - len(known)))]


def _overview(screen: Screen, snapshot: Snapshot, width: int, height: int) -> Iterable[Text]:
    if height < _LOW:
        return [_tabs(screen, snapshot), *_panel(screen, screen.panel, snapshot, (width, height - 1))]
    if width < _WIDE:
        return _stack(screen, panels(snapshot), snapshot, (width, height))
    half = width // 2 - 1
    *first, running, failures = panels(snapshot)
    left = _stack(screen, first, snapshot, (half, height))
    right = _stack(screen, (running, failures), snapshot, (width - half - 2, height))
    beside = zip_longest(left, right, fillvalue=Text(" " * half))
    return [Text.assemble(one, "  ", other, end="") for one, other in beside]


def _tabs(screen: Screen, snapshot: Snapshot) -> Text:
    tabs = Text()
    for panel in panels(snapshot):
        tabs.append(f" {panel} ", "reverse bold" if panel is screen.panel else "dim").append(" ")
    return tabs


def _stack(screen: Screen, shown: Sequence[Panel], snapshot: Snapshot, size: tuple[int, int]) -> list[Text]:
    """Return those *shown* one below the other, each as high as there is room and need for."""
    width, height = size
    wants = [1 + max(1, len(things(panel, snapshot))) for panel in shown]
    between = [Text(" " * width)] if height >= sum(wants) + len(shown) - 1 else []
    lines: list[Text] = []
    for panel, high in zip(shown, allot(height, wants), strict=True):
        lines += [*_panel(screen, panel, snapshot, (width, high)), *between]
    return lines


def allot(height: int, wants: Sequence[int]) -> list[int]:
    """Share *height* among those who want so much: nobody gets more, and who wants least is served first."""
    shares = [0] * len(wants)
    for _ in range(min(height, sum(wants))):
        _, poorest = min((share, number) for number, share in enumerate(shares) if share < wants[number])
        shares[poorest] += 1
    return shares


def _panel(screen: Screen, panel: Panel, snapshot: Snapshot, size: tuple[int, int]) -> list[Text]:
    focused = screen.place is None and screen.panel is panel
    index = chosen_index(screen, panel, things(panel, snapshot))
    return _window(panel_grid(panel, snapshot), panel, index if focused else None, size, around=index)


def _window(grid: Grid, title: str, chosen: int | None, size: tuple[int, int], around: int = 0) -> list[Text]:
    """Return as much of *grid* as fits, *around* a row of it; what is *chosen*, if the user moves here, stands out."""
    width, height = size
    count, room = len(grid.rows), max(0, height - 1)
    start = max(0, min((around if chosen is None else chosen) - room // 2, count - room))
    head, *rows = grid.lines(
        f"{title} {start + 1}-{start + room}/{count}" if room < count else f"{title} {count}", width
    )
    head.stylize("bold" if chosen is None else "bold reverse")
    if chosen is not None and rows:
        rows[chosen].stylize("reverse")
    return [head, *(rows[start : start + room] or [fitted(Text("none", "dim"), width)])][: max(0, height)]


def _job(screen: Screen, snapshot: Snapshot, width: int, height: int) -> Iterator[Text]:
    if snapshot.place != screen.place:
        yield Text("Looking for it …", "dim")
    elif snapshot.detail is None:
        yield Text("It is not there any more: finished jobs are pruned after a while.", "yellow")
    else:
        known = [*of_job(snapshot.detail, snapshot.at), Text()]
        yield from known
        yield from _log(screen, snapshot.detail, width, height - len(known))


def _log(screen: Screen, detail: Detail, width: int, height: int) -> Iterator[Text]:
    count, room = len(detail.lines), max(0, height - 1)
    end = max(min(room, count), count - screen.scroll)
    start = max(0, end - room)
    title = f"Log {start + 1}-{end}/{count}" if room < count else f"Log {count}"
    yield fitted(Text(title, "bold reverse"), width)
    nothing = "It has said nothing." if detail.job.state.final else "nothing so far"
    yield from [log_line(line) for line in detail.lines[start:end]] or [Text(nothing, "dim")]


def _title(snapshot: Snapshot) -> Text:
    time = snapshot.at.astimezone().strftime("%H:%M:%S")
    line, rates = Text.assemble(("mainspring top", "bold"), f"  {time}  "), snapshot.rates
    return line if rates is None else line.append_text(_told(rates))


def _told(rates: Rates) -> Text:
    line = Text()
    for name, rate in rates._asdict().items():
        line.append(f"{_per(rate)} ", "bold red" if name == "failed" and rate else "bold").append(f"{name}  ")
    return line


def _totals(snapshot: Snapshot) -> Text:
    line = Text()
    for state in (JobState.READY, JobState.RUNNING, JobState.BLOCKED):
        line.append(f"{jobs_in(snapshot.queues, state)} ", "bold").append(f"{state}  ", COLOURS[state])
    line.append(f"{jobs_in(snapshot.queues, *LATER)} ", "bold").append("later  ", COLOURS[JobState.SCHEDULED])
    if snapshot.counted_at is not None and snapshot.at - snapshot.counted_at > _OLD:
        line.append(f"counted {ago(snapshot.counted_at, snapshot.at)}  ", "yellow")
    return line


def _per(rate: float) -> str:
    if rate >= 1:
        return f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s"
    return f"{rate * 60:.0f}/m"


def _foot(screen: Screen) -> Text:
    if screen.asked is not None:
        question = str(screen.asked)
        return flat(f"{question[0].upper()}{question[1:]}? y/n", "bold yellow")
    if screen.said:
        return flat(screen.said, "yellow")
    return Text(_HINTS + ("back" if screen.path else "quit"), "dim")
