"""`mainspring jobs cancel`, `pause`, `resume` and `replay`: act on jobs, by id or by what they are like."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

import typer
from msgspec.structs import replace

from mainspring.app import DEFAULT_URL, Mainspring
from mainspring.cli.apps import App, app_at
from mainspring.cli.confirm import confirmed
from mainspring.cli.ids import Handle, find
from mainspring.cli.jobs.match import OPTIONS, chosen_by, matching
from mainspring.cli.jobs.told import told, told_of
from mainspring.cli.note import note, teams_of
from mainspring.cli.options import (
    AsJson,
    Error,
    FinishedSince,
    FinishedUntil,
    Key,
    Queue,
    Since,
    State,
    TaskName,
    Team,
    Until,
    Url,
)
from mainspring.cli.output import complain, counting, say, say_json
from mainspring.documents.told import ToldJob
from mainspring.errors import InvalidValue, JobNotFound, ReplayRefused
from mainspring.model.job import UNFINISHED, JobState, Wish
from mainspring.model.lifecycle import REPLAYABLE
from mainspring.model.text import counted
from mainspring.service import said_by
from mainspring.store import Store
from mainspring.store.protocol import JobFilter

Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID", help="Ids of jobs, whole or as a listing shows them."),
]
Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why; it is kept with the job.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before acting on many jobs.")]

_BATCH = 500
_MISSING = 1
_NOT_HELD = tuple(state for state in UNFINISHED if state is not JobState.PAUSED)


@dataclass(frozen=True)
class _Action:
    """What can be done to jobs. `fitting` are the states it can act on, `usual` those that it does unless told.

    `act` does it to many jobs of a database at once, `ask` to one of a server. `happened` says by a job before and
    after whether it was moved, or its worker asked; others act on jobs too.
    """

    verb: str
    done: str
    fitting: tuple[JobState, ...]
    usual: tuple[JobState, ...]
    act: Callable[[Store, Collection[UUID], str | None], object]
    ask: Callable[[Handle, str | None], object]
    happened: Callable[[ToldJob, ToldJob], bool]


def _newly(before: ToldJob, after: ToldJob, state: JobState, wish: Wish) -> bool:
    return (after.state is state or after.wish is wish) and before.state is not state and before.wish is not wish


def _let_go(before: ToldJob, after: ToldJob) -> bool:
    if before.state is JobState.PAUSED:
        return after.state not in (JobState.PAUSED, JobState.CANCELLED)
    return before.wish is Wish.PAUSE and after.wish is None and after.state in UNFINISHED


def _revived(before: ToldJob, after: ToldJob) -> bool:
    # By the fence as well: it may have failed again by now.
    return before.state in REPLAYABLE and (after.state is not before.state or after.fence > before.fence)


_CANCEL = _Action(
    "cancel",
    "cancelled",
    UNFINISHED,
    UNFINISHED,
    lambda store, ids, reason: store.cancel(ids, reason),
    lambda job, reason: job.cancel(reason),
    lambda before, after: _newly(before, after, JobState.CANCELLED, Wish.CANCEL),
)
_PAUSE = _Action(
    "pause",
    "paused",
    _NOT_HELD,
    _NOT_HELD,
    lambda store, ids, reason: store.pause(ids, said_by(None, reason)),
    lambda job, reason: job.pause(reason),
    lambda before, after: _newly(before, after, JobState.PAUSED, Wish.PAUSE),
)
_RESUME = _Action(
    "resume",
    "resumed",
    (JobState.PAUSED, JobState.RUNNING),
    (JobState.PAUSED,),
    lambda store, ids, _: store.resume(ids),
    lambda job, _: job.resume(),
    _let_go,
)
_REPLAY = _Action(
    "replay",
    "replayed",
    REPLAYABLE,
    (JobState.FAILED,),
    lambda store, ids, reason: store.replay(ids, reason),
    lambda job, reason: job.replay(reason),
    _revived,
)


@dataclass(frozen=True)
class _Call:
    """One use of an action: on which jobs, why, and how to speak of it."""

    action: _Action
    ids: list[str]
    match: JobFilter
    reason: str | None
    yes: bool
    as_json: bool


def _command(action: _Action, about: str) -> Callable[..., None]:
    """Return the command that does *action*, with or without a reason; its help says *about*."""

    def command(  # noqa: PLR0913 - one parameter for each option
        ids: Ids = None,
        state: State = None,
        queue: Queue = None,
        task: TaskName = None,
        key: Key = None,
        since: Since = None,
        until: Until = None,
        finished_since: FinishedSince = None,
        finished_until: FinishedUntil = None,
        error: Error = None,
        reason: Reason = None,
        yes: Yes = False,
        team: Team = None,
        url: Url = DEFAULT_URL,
        as_json: AsJson = False,
    ) -> None:
        match = matching(
            state=state,
            queue=queue,
            task=task,
            key=key,
            since=since,
            until=until,
            finished_since=finished_since,
            finished_until=finished_until,
            error=error,
        )
        _run(_Call(action, ids or [], match, reason, yes, as_json), team, url)

    command.__name__, command.__doc__ = action.verb, about
    return command


cancel = _command(_CANCEL, "Cancel jobs: waiting ones at once, running ones by asking their worker.")
pause = _command(_PAUSE, "Hold jobs until they are resumed: waiting ones at once, running ones by asking their worker.")
replay = _command(
    _REPLAY,
    "Run failed, cancelled or expired jobs again, with fresh counters.\n\n"
    "Chosen without --state, only failed ones are.",
)


# Written out, without --reason: the store keeps none for a resume.
def resume(  # noqa: PLR0913 - one parameter for each option
    ids: Ids = None,
    state: State = None,
    queue: Queue = None,
    task: TaskName = None,
    key: Key = None,
    since: Since = None,
    until: Until = None,
    finished_since: FinishedSince = None,
    finished_until: FinishedUntil = None,
    error: Error = None,
    yes: Yes = False,
    team: Team = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Let paused jobs go on at their due time."""
    match = matching(
        state=state,
        queue=queue,
        task=task,
        key=key,
        since=since,
        until=until,
        finished_since=finished_since,
        finished_until=finished_until,
        error=error,
    )
    _run(_Call(_RESUME, ids or [], match, None, yes, as_json), team, url)


def _run(call: _Call, team: str | None, url: str) -> None:
    chosen = call.match != JobFilter()
    if chosen == bool(call.ids):
        raise InvalidValue(
            f"expected the jobs to {call.action.verb} either by id or by {OPTIONS}, "
            f"got {'both' if chosen else 'neither'}"
        )
    if call.match.state is not None and call.match.state not in call.action.fitting:
        raise InvalidValue(
            f"a job that is {call.match.state} can't be {call.action.done}; "
            f"expected --state to be one of {', '.join(call.action.fitting)}"
        )
    with app_at(url, team=team) as app:
        if chosen:
            _act_on_many(app, call)
        else:
            _act_on_named(app, call)


def _act_on_named(app: App, call: _Call) -> None:
    jobs, missing = _found(app, call.ids)
    if jobs:
        note(app, f"job.{call.action.verb}", teams_of(jobs), reason=call.reason)
    after = _acted(app, call, [job.id for job in jobs])
    if call.as_json:
        say_json({"jobs": [_change(job, after.get(job.id, job)) for job in jobs], "missing": missing})
    else:
        for job in jobs:
            say(f"{job.id} {_what_became(call.action, job, after.get(job.id, job))}")
    for text in missing:
        complain(str(JobNotFound(text)))
    if missing:
        raise typer.Exit(_MISSING)


def _found(app: App, ids: list[str]) -> tuple[list[ToldJob], list[str]]:
    """Return the jobs with these *ids*, each once, and the ids that no job has."""
    jobs: dict[UUID, ToldJob] = {}
    missing: list[str] = []
    for text in ids:
        try:
            job = told(find(app, text))
        except JobNotFound:
            missing.append(text)
        else:
            jobs[job.id] = job
    return list(jobs.values()), missing


def _what_became(action: _Action, before: ToldJob, after: ToldJob) -> str:
    if before.state not in action.fitting:
        return f"{after.state}, so it can't be {action.done}"
    if after.state is JobState.RUNNING and after.wish is not None:
        already = "" if action.happened(before, after) else " already"
        return f"running; its worker was asked to {after.wish} it{already}"
    if action is _REPLAY and not _revived(before, after):
        return f"{after.state}, because an unfinished job has the same key"
    return str(after.state)


def _change(before: ToldJob, after: ToldJob) -> dict[str, object]:
    return {"id": str(before.id), "before": before.state, "state": after.state}


def _act_on_many(app: App, call: _Call) -> None:
    ids = list(_matching(app, call))
    if not ids:
        _report(call, 0, 0)
        return
    if not call.yes and not confirmed(f"{call.action.verb} {counted(len(ids), 'job')}", call.as_json):
        say("Nothing was changed.")
        return
    chosen = {name: str(value) for name, value in chosen_by(call.match).items()}
    note(app, f"job.{call.action.verb}", [None], reason=call.reason, found=len(ids), **chosen)
    changed = 0
    with counting(f"{call.action.verb.capitalize()} jobs", len(ids), quiet=call.as_json) as advance:
        for start in range(0, len(ids), _BATCH):
            batch = ids[start : start + _BATCH]
            before = told_of(app, batch)  # not as they were found: much may happen while a person makes up his mind
            after = _acted(app, call, batch)
            changed += sum(call.action.happened(before[job], after[job]) for job in before.keys() & after.keys())
            advance(len(batch))
    _report(call, changed, len(ids))


def _acted(app: App, call: _Call, ids: Collection[UUID]) -> dict[UUID, ToldJob]:
    """Act on the jobs with these *ids*, and return them as they are then."""
    if not ids:
        return {}
    if isinstance(app, Mainspring):
        call.action.act(app.client.store, ids, call.reason)
    else:
        for job_id in ids:
            with suppress(JobNotFound, ReplayRefused):  # as a database leaves alone what is gone, or can't live again
                call.action.ask(app.job(job_id), call.reason)
    return told_of(app, ids)


def _matching(app: App, call: _Call) -> Iterator[UUID]:
    states = call.action.usual if call.match.state is None else (call.match.state,)
    for state in states:
        match, before = chosen_by(replace(call.match, state=state)), None
        while page := app.jobs(**match, before=before, limit=_BATCH):
            yield from (job.id for job in page)
            before = page[-1].id


def _report(call: _Call, changed: int, found: int) -> None:
    if call.as_json:
        say_json({"found": found, call.action.done: changed})
    elif not found:
        say("No job is like that.")
    else:
        rest = "1 stayed as it was" if found - changed == 1 else f"{found - changed:,} stayed as they were"
        say(f"{call.action.done.capitalize()} {counted(changed, 'job')}{f'; {rest}' if found > changed else ''}.")
