"""`mainspring tasks`: which are paused, `pause` and `resume`."""

from __future__ import annotations

from typing import Annotated

import typer

from mainspring.app import Mainspring
from mainspring.cli.apps import app_at
from mainspring.cli.note import note
from mainspring.cli.options import AppName, AppUrl, AsJson
from mainspring.cli.output import cell, listing, say, say_json, show
from mainspring.cli.pauses import By, Reason, how_long, resume_each, tell_paused, who
from mainspring.documents.queues import pause_document
from mainspring.model.job import check_name
from mainspring.model.queue import Pausable

TaskNames = Annotated[list[str], typer.Argument(metavar="TASK", help="Names of tasks.")]


def pause(
    names: TaskNames,
    reason: Reason = None,
    by: By = None,
    app: AppName = None,
    url: AppUrl = None,
    as_json: AsJson = False,
) -> None:
    """Let no worker claim jobs of tasks until they are resumed. What runs goes on.

    With an app the tasks must exist there. Without one they may have any name.
    """
    with app_at(url, app) as found:
        for name in names:
            # All of them first, so that nothing is half done. A server looks among its own tasks.
            check_name(found.tasks.to_send(name).name if isinstance(found, Mainspring) else name, "task")
        note(found, "task.pause", dict.fromkeys(names), reason=reason, by=by)
        paused = [found.paused_tasks.pause(name, reason=reason, **who(found, by)) for name in dict.fromkeys(names)]
    tell_paused(paused, as_json)


def resume(names: TaskNames, app: AppName = None, url: AppUrl = None, as_json: AsJson = False) -> None:
    """Let workers claim jobs of tasks again."""
    with app_at(url, app) as found:
        tasks = found.paused_tasks
        note(found, "task.resume", dict.fromkeys(names))
        resume_each(Pausable.TASK, names, tasks.resume, lambda: [one.name for one in tasks.list()], as_json)


def list_paused(app: str | None, url: str | None, as_json: bool) -> None:
    """List the tasks that are paused in the database of the app, or at *url*."""
    with app_at(url, app) as opened:
        found = opened.paused_tasks.list()
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
