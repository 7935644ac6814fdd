"""`mainspring retention set` and `remove`."""

from __future__ import annotations

from typing import Annotated

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.note import note
from mainspring.cli.options import AsJson, Url
from mainspring.cli.output import complain, say, say_json
from mainspring.cli.values import job_state, length
from mainspring.documents.retention import covers_document, rule_document
from mainspring.model.job import JobState
from mainspring.model.retention import Covers, RetentionRule

_FINAL = [str(state) for state in JobState if state.final]
_MISSING = 1

TeamName = Annotated[str | None, typer.Option("--team", metavar="NAME", help="Only jobs of this team.")]
QueueName = Annotated[str | None, typer.Option("--queue", metavar="QUEUE", help="Only jobs of this queue.")]
StateName = Annotated[
    str | None,
    typer.Option(
        "--state",
        metavar="STATE",
        help=f"Only jobs that ended so: {', '.join(_FINAL)}.",
        autocompletion=lambda: _FINAL,
    ),
]
Age = Annotated[
    str | None,
    typer.Option("--age", metavar="LENGTH", help="How long to keep them, by whole days if it is one or more."),
]
Count = Annotated[
    int | None, typer.Option("--count", min=1, metavar="N", help="How many to keep: those that ended last.")
]


def set_rule(  # noqa: PLR0913 - one parameter for each option
    team: TeamName = None,
    queue: QueueName = None,
    state: StateName = None,
    age: Age = None,
    count: Count = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Say how long, or how many, finished jobs are kept of a team, a queue or a state; without these, of all others."""
    covers, lasting = Covers(team, queue, _state(state)), None if age is None else length(age, "--age")
    RetentionRule(covers, lasting, count).check()
    with app_at(url, team=team) as app:
        note(app, "retention.set", [str(covers)], age=age, count=count)
        rule = app.retention.set(queue=queue, state=covers.state, age=lasting, count=count)
    if as_json:
        say_json(rule_document(rule))
    else:
        say(f"{rule}")


def remove_rule(
    team: TeamName = None,
    queue: QueueName = None,
    state: StateName = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Take a rule back. Its jobs go by the next that fits, or by what workers are told with --retention."""
    covers = Covers(team, queue, _state(state))
    covers.check()
    with app_at(url, team=team) as app:
        removed = any(rule.covers == covers for rule in app.retention.list())
        if removed:
            note(app, "retention.remove", [str(covers)])
            app.retention.remove(queue=queue, state=covers.state)
    if as_json:
        say_json({**covers_document(covers), "removed": removed})
    elif removed:
        say(f"{covers}: rule removed")
    if not removed:
        complain(f"there is no rule for just that: {covers}; `mainspring retention list` shows them all")
        raise typer.Exit(_MISSING)


def _state(text: str | None) -> JobState | None:
    return None if text is None else job_state(text)
