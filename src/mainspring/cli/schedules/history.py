"""`mainspring schedules history`: what became of a schedule's ticks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Annotated

import typer
from rich.table import Table

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.ids import short
from mainspring.cli.options import AsJson, Team, Url
from mainspring.cli.output import cell, listing, say, say_json, show, width
from mainspring.cli.schedules.look import WIDE, instant, short_instant, verdict_of, zone_of
from mainspring.cli.schedules.options import AllSchedules, ScheduleId
from mainspring.cli.times import span
from mainspring.documents.schedules import tick_document
from mainspring.errors import InvalidValue, ScheduleNotFound, did_you_mean
from mainspring.model.schedule import Schedule, spread
from mainspring.model.text import shortened
from mainspring.model.tick import TickRecord, Verdict

Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, metavar="N", help="How many ticks to list.")]
VerdictName = Annotated[
    str | None,
    typer.Option(
        "--verdict",
        metavar="VERDICT",
        help=f"Only ticks of which this became: {', '.join(Verdict)}.",
        autocompletion=lambda: [str(verdict) for verdict in Verdict],
    ),
]

_PAGE = 1_000
_MOST = 100_000
"""Rows to look through for ticks with a verdict, of which a schedule of every second has more in two days."""


def history(
    schedule_id: ScheduleId,
    limit: Limit = 50,
    verdict: VerdictName = None,
    team: Team = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List what became of a schedule's ticks, the latest first. That outlives the schedule."""
    wanted = None if verdict is None else _verdict(verdict)
    with app_at(url, team=team) as app:
        rows = islice(_rows(app.schedules, schedule_id), _MOST)
        ticks = list(islice((row for row in rows if wanted in (None, row.verdict)), limit))
        schedule = None
        with suppress(ScheduleNotFound):  # it was removed
            schedule = app.schedules.get(schedule_id)
    if as_json:
        say_json({"schedule": schedule_id, "ticks": [tick_document(tick) for tick in ticks]})
    elif ticks:
        show(tick_table(ticks, schedule))
    else:
        say("No tick has come yet." if wanted is None else f"No tick of {schedule_id} is recorded as {wanted}.")


def tick_table(ticks: Sequence[TickRecord], schedule: Schedule | None) -> Table:
    """Return *ticks* as a table, by the clocks of their *schedule* if that still exists."""
    where = UTC if schedule is None else zone_of(schedule.definition.trigger)
    later = timedelta(0) if schedule is None else spread(schedule.id, schedule.definition.jitter)
    shown = instant if width() >= WIDE else short_instant
    table = listing("Tick", "Verdict", "Late by", "Node", "Job, or why there is none")
    for column in table.columns[:3]:
        column.no_wrap = True
    for column in table.columns[3:]:
        column.overflow = "fold"
    for tick in ticks:
        table.add_row(
            cell(shown(tick.at, where)),
            verdict_of(tick.verdict),
            cell(_late_by(tick, later)),
            cell(tick.node),
            cell(_outcome(tick, lambda moment: shown(moment, where))),
        )
    return table


def _rows(schedules: AllSchedules, schedule_id: str) -> Iterator[TickRecord]:
    """Yield all rows of a schedule's history, the latest first."""
    page = schedules.history(schedule_id, limit=_PAGE)
    while page:
        yield from page
        page = schedules.history(schedule_id, before=page[-1].at, limit=_PAGE) if len(page) == _PAGE else []


def _late_by(tick: TickRecord, later: timedelta) -> str:
    if tick.verdict not in (Verdict.FIRED, Verdict.LATE):
        return ""  # a person said when, or nothing was made
    return span(tick.decided_at - tick.at - later)


def _outcome(tick: TickRecord, shown: Callable[[datetime], str]) -> str:
    if tick.job_id is not None:
        return short(tick.job_id)
    if tick.until is None:
        return tick.reason or ""
    count = "more than 1,000" if tick.count is None else f"{tick.count:,}"
    return f"{count} ticks until {shown(tick.until)}: {tick.reason}"


def _verdict(text: str) -> Verdict:
    word = text.lower()
    if word not in tuple(Verdict):
        raise InvalidValue(
            f"expected --verdict to be one of {', '.join(Verdict)}, got: {shortened(text)}{did_you_mean(word, Verdict)}"
        )
    return Verdict(word)
