"""`mainspring tasks`: which are paused, `pause` and `resume`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Annotated

import typer

from mainspring.app import DEFAULT_URL, Mainspring
from mainspring.cli.database import existing
from mainspring.cli.options import AsJson, Url
from mainspring.cli.output import cell, listing, say, say_json, show
from mainspring.cli.pauses import By, Reason, how_long, pause_document, resume_each, tell_paused
from mainspring.model.job import check_name
from mainspring.model.queue import Pausable
from mainspring.queues import PausedTasks

TaskNames = Annotated[list[str], typer.Argument(metavar="TASK", help="Names of tasks.")]


def pause(
    names: TaskNames, reason: Reason = None, by: By = None, url: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """Let no worker claim jobs of tasks until they are resumed. What runs goes on."""
    for name in names:
        check_name(name, "task")  # all of them first, so that nothing is half done
    with _paused_tasks_at(url) as tasks:
        paused = [tasks.pause(name, reason=reason, by=by) for name in dict.fromkeys(names)]
    tell_paused(paused, as_json)


def resume(names: TaskNames, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Let workers claim jobs of tasks again."""
    with _paused_tasks_at(url) as tasks:
        resume_each(Pausable.TASK, names, tasks.resume, lambda: [one.name for one in tasks.list()], as_json)


def list_paused(url: str, as_json: bool) -> None:
    """List the tasks that are paused in the database at *url*."""
    with _paused_tasks_at(url) as tasks:
        found = tasks.list()
    if as_json:
        say_json({"paused": [pause_document(pause) for pause in found]})
        return
    if not found:
        say("No task is paused.")
        return
    table = listing("Task", "Paused", "By", "Reason")
    for one in found:
        table.add_row(cell(one.name), cell(how_long(one)), cell(one.by), cell(one.reason or ""))
    show(table)


@contextmanager
def _paused_tasks_at(url: str) -> Iterator[PausedTasks]:
    with existing(url), closing(Mainspring(url)) as app:
        yield app.paused_tasks
