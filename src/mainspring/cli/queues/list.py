"""`mainspring queues`: what waits where, and what is paused."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from mainspring.cli.apps import app_at
from mainspring.cli.output import cell, listing, say, say_json, show, without_passwords
from mainspring.cli.pauses import by_whom, how_long
from mainspring.cli.times import span
from mainspring.documents.queues import queue_document
from mainspring.model.job import JobState
from mainspring.model.queue import Queue

_SHOWN = {
    "Ready": (JobState.READY,),
    "Running": (JobState.RUNNING,),
    "Later": (JobState.SCHEDULED, JobState.RETRYING),  # together: a column for each would not fit 80 columns
    "Blocked": (JobState.BLOCKED,),
    "Paused": (JobState.PAUSED,),
}


def list_queues(team: str | None, url: str, as_json: bool) -> None:
    """List the queues of the database at *url*, those of a *team* if one is named."""
    with app_at(url, team=team) as app:
        found = app.queues.list()
    if as_json:
        say_json({"queues": [queue_document(queue) for queue in found]})
    elif found:
        _show(found)
    else:
        say(f"No queue in {without_passwords(url)} has jobs, workers, ageing or a pause.")


def _show(queues: Sequence[Queue]) -> None:
    table = listing()
    table.add_column("Queue", overflow="fold")
    for title in _SHOWN:
        table.add_column(title, no_wrap=True, justify="right")
    table.add_column("Oldest", no_wrap=True, justify="right")
    table.add_column("Workers", no_wrap=True, justify="right")
    table.add_column("State", no_wrap=True)
    for queue in queues:
        table.add_row(
            cell(queue.name),
            *(cell(sum(queue.jobs.get(state, 0) for state in states)) for states in _SHOWN.values()),
            cell("" if queue.oldest_ready is None else span(queue.oldest_ready)),
            cell(len(queue.workers)),
            cell("paused", "yellow") if queue.paused else _warning(queue),
        )
    show(table)
    for queue in queues:
        if queue.pause is not None:
            say(f"{queue.name} is paused {how_long(queue.pause)}, {by_whom(queue.pause)}", "dim")
        if queue.team is not None:
            say(f"{queue.name} is of team {queue.team}", "dim")
        if queue.ageing is not None:
            say(f"{queue.name} has ageing on: a point of priority is worth {span(queue.ageing)} of waiting", "dim")


def _warning(queue: Queue) -> Text:
    return cell("") if queue.workers or JobState.READY not in queue.jobs else cell("unserved", "bold red")
