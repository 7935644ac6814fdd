"""`mainspring enqueue`: have a worker run a task."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

import typer

from mainspring.app import Mainspring
from mainspring.cli.apps import App, app_at
from mainspring.cli.ids import Handle
from mainspring.cli.note import entry
from mainspring.cli.options import AppName, AppUrl, AsJson, Team
from mainspring.cli.output import say, say_json
from mainspring.cli.values import arguments, instant, length, priority
from mainspring.errors import InvalidValue
from mainspring.model.job import IfTaken
from mainspring.model.team import DEFAULT_TEAM
from mainspring.model.text import shortened
from mainspring.task_handle import Wishes

Task = Annotated[str, typer.Argument(metavar="TASK", help="The name of the task.")]
Arguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ARG|NAME=VALUE",
        help="Its arguments, each as JSON or else as text. Write -- before one that begins with a dash.",
    ),
]
Kwargs = Annotated[str | None, typer.Option("--kwargs", metavar="JSON", help="Arguments by name, as one JSON object.")]
Queue = Annotated[str | None, typer.Option("--queue", metavar="QUEUE", help="The queue, if not the task's own.")]
PriorityName = Annotated[
    str | None,
    typer.Option("--priority", metavar="PRIORITY", help="0 to 100, or low, normal, high, urgent; larger goes first."),
]
RunAfter = Annotated[
    str | None, typer.Option("--run-after", metavar="LENGTH", help="How long to wait before it is due, as in 10m.")
]
RunAt = Annotated[
    str | None, typer.Option("--run-at", metavar="INSTANT", help="When it is due, as in 2030-12-31T09:00:00Z.")
]
Key = Annotated[
    str | None, typer.Option("--key", metavar="KEY", help="At most one unfinished job has this key; it stands for all.")
]
Expires = Annotated[
    str | None,
    typer.Option("--expires", metavar="LENGTH", help="How long after its due time it may still start, as in 1h."),
]

Fair = Annotated[str | None, typer.Option("--fair", metavar="KEY", help="Whose it is: jobs take turns by this key.")]
Weight = Annotated[int | None, typer.Option("--weight", metavar="N", help="How many of that key have a turn together.")]

IfTakenName = Annotated[
    IfTaken | None,
    typer.Option("--if-taken", help="What to do when an unfinished job has the key: by default, return it."),
]
IdempotencyKey = Annotated[
    str | None,
    typer.Option("--idempotency-key", metavar="KEY", help="Say it again, and get the first job, finished or not."),
]
IdempotencyTtl = Annotated[
    str | None,
    typer.Option("--idempotency-ttl", metavar="LENGTH", help="For how long after that has finished: 24h unless given."),
]


def enqueue(  # noqa: PLR0913 - one parameter for each option
    context: typer.Context,
    task: Task,
    args: Arguments = None,
    kwargs: Kwargs = None,
    queue: Queue = None,
    priority_name: PriorityName = None,
    run_after: RunAfter = None,
    run_at: RunAt = None,
    key: Key = None,
    expires: Expires = None,
    fair: Fair = None,
    weight: Weight = None,
    if_taken: IfTakenName = None,
    idempotency_key: IdempotencyKey = None,
    idempotency_ttl: IdempotencyTtl = None,
    team: Team = None,
    app: AppName = None,
    url: AppUrl = None,
    as_json: AsJson = False,
) -> None:
    """Enqueue a job, and print its id and state.

    With an app the task must exist there and take the arguments. Without one they are sent as they are.
    """
    check_no_options(context, args or [])
    by_position, by_name = arguments(args or [], kwargs)
    given = {
        "queue": queue,
        "priority": None if priority_name is None else priority(priority_name),
        "run_after": None if run_after is None else length(run_after, "--run-after"),
        "run_at": None if run_at is None else instant(run_at, "--run-at"),
        "key": key,
        "expires": None if expires is None else length(expires, "--expires"),
        "fair": fair,
        "weight": weight,
        "if_taken": if_taken,
        "idempotency_key": idempotency_key,
        "idempotency_ttl": None if idempotency_ttl is None else length(idempotency_ttl, "--idempotency-ttl"),
    }
    wishes = cast("Wishes", {name: value for name, value in given.items() if value is not None})
    with app_at(url, app, team, new=True) as sender:
        job = _enqueued(sender, task, by_position, by_name, wishes).refresh()
    if as_json:
        say_json({"id": str(job.id), "state": job.state, "task": job.task, "queue": job.queue})
    else:
        say(f"{job.id} {job.state}")


def _enqueued(sender: App, task: str, args: Sequence[Any], kwargs: Mapping[str, Any], wishes: Wishes) -> Handle:
    """Enqueue a job, and return it. That it was asked for is on record together with it, or neither is kept."""
    if not isinstance(sender, Mainspring):
        return sender.enqueue(task, args, kwargs, **wishes)
    new = sender.prepare(task, args, kwargs, **wishes)
    team = sender.client.scope or DEFAULT_TEAM
    asked = entry("job.enqueue", str(new.id), team, task=new.task, queue=new.queue, key=new.key)
    (job,) = sender.enqueue_prepared([new], [asked])
    return job


def check_no_options(context: typer.Context, args: list[str]) -> None:
    """Refuse an option that came after `--`, which made it an argument of the task: one without its app, perhaps."""
    ours = {name for option in context.command.get_params(context) for name in option.opts}
    for text in args:
        if text.startswith("-") and text.partition("=")[0] in ours:
            raise InvalidValue(
                f"expected options before --, got {shortened(text)} after it, which makes it an argument of the task; "
                f"if that is meant, write it as JSON: {shlex.quote(json.dumps(text))}"
            )
