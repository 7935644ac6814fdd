"""`mainspring schedules lint`: what is wrong or odd about schedules, and when they all fire at once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

import typer
from rich.table import Table
from rich.text import Text

from mainspring.app import Mainspring
from mainspring.cli.apps import app_at
from mainspring.cli.options import AppName, AppUrl, AsJson, Team
from mainspring.cli.output import cell, listing, mark, say, say_json, show
from mainspring.cli.schedules.heatmap import HeatMap
from mainspring.cli.schedules.look import instant
from mainspring.clock import SystemClock
from mainspring.heat import Heat, expected, heat
from mainspring.lint import Code, Finding, lint
from mainspring.model.text import counted

_TROUBLE = 1
_SHOWN = 10
"""Findings of one kind; of thousands of schedules many have the same."""

_BUSIEST = 5


def lint_schedules(team: Team = None, app: AppName = None, url: AppUrl = None, as_json: AsJson = False) -> None:
    """Look for schedules with something wrong or odd about them, and show when they fire all at once.

    Tasks that no live worker knows are found too, and with an app those that it does not know.

    Exit code: 1 when a schedule never fires, is overdue, or enqueues a task that is not known.
    """
    with app_at(url, app, team) as found:
        schedules = found.schedules.list()
        here = found.tasks if app and isinstance(found, Mainspring) else None
        known = None if here is None else {*(task.name for task in here), *here.builtin}
        alive = [session for session in found.workers() if session.alive]
    now, live = SystemClock().now(), {task for session in alive for task in session.tasks} if alive else None
    findings, load = lint(schedules, known, live, now), heat(schedules, now)
    if as_json:
        say_json(_as_document(findings, load))
    else:
        _show_findings(findings, len(schedules))
        _show_heat(load)
    if any(finding.code.trouble for finding in findings):
        raise typer.Exit(_TROUBLE)


def _show_findings(findings: Sequence[Finding], schedules: int) -> None:
    if not findings:
        show(Text.assemble(mark(good=True), f" Nothing is odd about {counted(schedules, 'schedule')}."))
        return
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    for code in Code:
        alike = [finding for finding in findings if finding.code is code]
        sign = mark(good=False) if code.trouble else Text("!", "yellow")
        for finding in alike[:_SHOWN]:
            name = f"{finding.schedule} " if finding.schedule else ""
            table.add_row(sign, Text.assemble(cell(name, "bold"), cell(finding.sentence)))
        if len(alike) > _SHOWN:
            table.add_row("", Text(f"and {len(alike) - _SHOWN:,} more like that; --json has them all", "dim"))
    show(table)


def _show_heat(load: Heat) -> None:
    busiest = load.busiest(_BUSIEST)
    if busiest:
        say("")
        show(HeatMap(load))
        say("")
        table = listing("Busiest minutes", "Ticks", "Schedules")
        for column in table.columns[1:]:
            column.justify = "right"
        for minute in busiest:
            table.add_row(cell(instant(minute.at, UTC)), cell(expected(minute.ticks)), cell(expected(minute.schedules)))
        show(table)
    if load.left_out:
        say(
            f"Not counted: {counted(load.left_out, 'schedule')}, because there are too many different triggers.",
            "yellow",
        )


def _as_document(findings: Sequence[Finding], load: Heat) -> dict[str, object]:
    return {
        "findings": [
            {"schedule": one.schedule, "code": one.code, "trouble": one.code.trouble, "sentence": one.sentence}
            for one in findings
        ],
        "busiest": [
            {"at": one.at.isoformat(), "ticks": one.ticks, "schedules": one.schedules} for one in load.busiest(_BUSIEST)
        ],
        "not_counted": load.left_out,
    }
