"""`mainspring jobs show`: all that is known of one job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from uuid import UUID

import msgspec
from rich.table import Table
from rich.text import Text

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.ids import find
from mainspring.cli.jobs.kin import kin
from mainspring.cli.jobs.logs import log_table
from mainspring.cli.jobs.look import how_far, reason_told, state_of
from mainspring.cli.jobs.told import steps_of, told_whole
from mainspring.cli.options import AsJson, JobId, Team, Url
from mainspring.cli.output import cell, listing, say, say_json, show
from mainspring.cli.times import ago, local, span, until
from mainspring.clock import SystemClock
from mainspring.documents.jobs import attempt_document, line_document, reason_document, step_document
from mainspring.documents.told import ToldJob, as_document
from mainspring.explain import Reason
from mainspring.model.attempt import Attempt
from mainspring.model.failure import Failure
from mainspring.model.job import JobState
from mainspring.model.step import Step
from mainspring.model.team import DEFAULT_TEAM
from mainspring.model.text import cut

_LAST_LINES = 10
_MOST_LINES = 10_000
_LONGEST_VALUE = 2_000
_LAST_ATTEMPTS = 20
_LAST_STEPS = 50
_LONGEST_RESULT = 200
_ENCRYPTED = "encrypted"


def show_job(job_id: JobId, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show one job: its facts, arguments, result, error, attempts, steps and last log lines."""
    with app_at(url, team=team) as app:
        found = find(app, job_id)
        job, attempts, steps = told_whole(found), found.attempts(), steps_of(found)
        # The lines of the last attempt only: those of earlier ones may be many, and `jobs logs` has them.
        lines = found.log_page((job.fence, 0), _MOST_LINES)
        reasons = found.explain()
        related = list(kin(app, job))
    if as_json:
        document = as_document(job)
        document["attempts"] = [attempt_document(attempt) for attempt in attempts]
        document["steps"] = [step_document(step) for step in steps]
        document["waits_because"] = [reason_document(reason) for reason in reasons]
        document["log"] = [line_document(line) for line in lines]
        say_json(document)
        return
    now = SystemClock().now()
    _show_facts(job, [*_facts(job, _worker_names(attempts), now), *related], reasons)
    # One that has succeeded has none, and its attempts may have had one each.
    failures = [job.error, *(attempt.failure for attempt in reversed(attempts))]
    if failure := next(filter(None, failures), None):
        _show_failure(job, failure, attempts)
    if attempts:
        _show_attempts(attempts)
    if steps:
        _show_steps(job, steps, now)
    if lines:
        title = f"Log, the last {_LAST_LINES} of {len(lines)} lines of its last attempt"
        _title(title if len(lines) > _LAST_LINES else "Log of its last attempt")
        show(log_table(lines[-_LAST_LINES:]), indent=2)


def _show_facts(job: ToldJob, known: Sequence[tuple[str, str]], reasons: list[Reason]) -> None:
    facts = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row(Text("Job", "bold"), cell(job.id))
    facts.add_row(Text("State", "bold"), state_of(job))
    for name, value in known:
        facts.add_row(Text(name, "bold"), cell(value))
    for reason in reasons:
        facts.add_row(Text("Waits", "bold"), reason_told(reason))
    show(facts)


def _facts(job: ToldJob, names: Mapping[UUID, str], now: datetime) -> Iterator[tuple[str, str]]:
    yield "Task", job.task
    if job.team != DEFAULT_TEAM:
        yield "Team", job.team
    yield "Arguments", _arguments(job)
    yield "Queue", f"{job.queue}, priority {job.priority}"
    if job.key is not None:
        yield "Key", job.key
    yield "Enqueued", f"{local(job.created_at)} ({ago(job.created_at, now)})"
    if not job.state.final and job.started_at is None:
        yield "Due", f"{local(job.run_at)} ({until(job.run_at, now)})"
        if job.expires_at is not None:
            yield "Expires", f"{local(job.expires_at)} ({until(job.expires_at, now)})"
    if job.started_at is not None:
        yield "Started", f"{local(job.started_at)} ({ago(job.started_at, now)})"
    if job.finished_at is not None:
        yield "Finished", f"{local(job.finished_at)}{_took(job)}"
    yield "Attempt", f"{job.attempt}{f', and {job.losses} lost with their worker' if job.losses else ''}"
    yield from _told(job, names)


def _told(job: ToldJob, names: Mapping[UUID, str]) -> Iterator[tuple[str, str]]:
    """Yield what others have said about the job, where they have."""
    if job.session is not None:
        yield "Worker", names.get(job.session, str(job.session))
    if job.wish is not None:
        yield "Asked to", job.wish
    if job.reason is not None:
        yield "Reason", job.reason
    if job.progress is not None:
        reached = job.progress
        total = f" of {reached.total:g}, {how_far(reached)}" if reached.total else ""
        yield "Progress", f"{reached.done:g}{total}{f' ({reached.note})' if reached.note else ''}"
    if job.result is not None:
        yield "Result", cut(_json(job.result), _LONGEST_VALUE)
    elif job.args is None and job.state is JobState.SUCCEEDED:
        yield "Result", _ENCRYPTED


def _arguments(job: ToldJob) -> str:
    if job.args is None or job.kwargs is None:
        return _ENCRYPTED
    by_position = [_json(value) for value in job.args]
    by_name = [f"{name}={_json(value)}" for name, value in job.kwargs.items()]
    return cut(", ".join(by_position + by_name), _LONGEST_VALUE) or "none"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _took(job: ToldJob) -> str:
    return f" (took {span(job.finished_at - job.started_at)})" if job.finished_at and job.started_at else ""


def _show_failure(job: ToldJob, failure: Failure, attempts: list[Attempt]) -> None:
    """Show why the job failed; or, if it has not, why an attempt once did, so that nobody takes it for a failed job."""
    failed = job.state is JobState.FAILED
    which = [f"Last failure: attempt {attempt.number}, {attempt.outcome}" for attempt in attempts if attempt.error]
    _title("Error" if failed or not which else which[-1])
    text = failure.traceback or f"{failure.type}: {failure.message}"
    show(cell(text.rstrip(), "red" if failed else ""), indent=2)


def _show_attempts(attempts: list[Attempt]) -> None:
    last = attempts[-_LAST_ATTEMPTS:]
    _title("Attempts" if last == attempts else f"Attempts, the last {len(last)} of {len(attempts)}")
    table = listing("No.", "Outcome", "Started", "Took", "Worker", "Error and details")
    for column in table.columns[:4]:
        column.no_wrap = True
    table.columns[4].overflow = "fold"
    for attempt in last:
        table.add_row(
            cell(attempt.number),
            cell(attempt.outcome or "running"),
            cell(local(attempt.started_at)),
            cell("" if attempt.duration is None else span(attempt.duration)),
            cell(attempt.worker or attempt.session),
            cell(cut("; ".join(_came_to(attempt)), _LONGEST_RESULT)),
        )
    show(table, indent=2)


def _came_to(attempt: Attempt) -> Iterator[str]:
    """Yield what an attempt has to say for itself: why it failed, and what it found worth noting."""
    if attempt.failure is not None:
        yield f"{attempt.failure.type}: {attempt.failure.message}"
    for name, value in attempt.facts.items():
        yield f"{name.replace('_', ' ')} {value if isinstance(value, str) else _json(value)}"


def _show_steps(job: ToldJob, steps: list[Step], now: datetime) -> None:
    last = steps[-_LAST_STEPS:]
    _title("Steps" if last == steps else f"Steps, the last {len(last)} of {len(steps)}")
    table = listing("Step", "At", "Result")
    for step in last:
        waits = f"waits until {local(step.until)} ({until(step.until, now)})" if step.pending and step.until else ""
        table.add_row(cell(step.name), cell(local(step.at)), cell(waits or _result(job, step)))
    show(table, indent=2)


def _result(job: ToldJob, step: Step) -> str:
    if step.result is None:
        return _ENCRYPTED if job.args is None and step.until is None else ""
    return cut(step.result, _LONGEST_RESULT)


def _title(text: str) -> None:
    say("")
    say(text, "bold")


def _worker_names(attempts: Sequence[Attempt]) -> dict[UUID, str]:
    return {attempt.session: attempt.worker for attempt in attempts if attempt.worker is not None}
