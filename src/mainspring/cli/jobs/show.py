"""`mainspring jobs show`: all that is known of one job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from uuid import UUID

import msgspec
from rich.table import Table
from rich.text import Text

from mainspring.app import DEFAULT_URL
from mainspring.cli.database import client_at
from mainspring.cli.ids import find
from mainspring.cli.jobs.kin import kin
from mainspring.cli.jobs.logs import log_table
from mainspring.cli.jobs.look import how_far, state_of, told
from mainspring.cli.options import AsJson, JobId, Team, Url
from mainspring.cli.output import cell, listing, say, say_json, show
from mainspring.cli.times import ago, local, span, until
from mainspring.clock import SystemClock
from mainspring.documents.jobs import (
    attempt_document,
    job_document,
    line_document,
    opened,
    reason_document,
    step_document,
)
from mainspring.explain import Reason, explain
from mainspring.keys import Keyring, open_payload, open_result, open_step
from mainspring.model.attempt import Attempt
from mainspring.model.failure import Failure
from mainspring.model.job import Job, JobState
from mainspring.model.payload import decode_call
from mainspring.model.step import Step
from mainspring.model.text import cut
from mainspring.store.open import keyring

_LAST_LINES = 10
_MOST_LINES = 10_000
_LONGEST_VALUE = 2_000
_LAST_ATTEMPTS = 20
_LAST_STEPS = 50
_LONGEST_RESULT = 200
_ENCRYPTED = "encrypted"


def show_job(job_id: JobId, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Show one job: its facts, arguments, result, error, attempts, steps and last log lines."""
    with client_at(url, team) as client:
        store = client.store
        job = find(client, job_id)
        attempts = store.attempts(job.id)
        # The lines of the last attempt only: those of earlier ones may be many, and `jobs logs` has them.
        lines = store.logs(job.id, after=(job.fence, 0), limit=_MOST_LINES)
        steps = store.steps(job.id)
        reasons = explain(store, job, store.now(), None if team is None else client.sees)
        names = _worker_names(attempts)
        related = list(kin(store, job))
    keys = keyring(url)
    if as_json:
        document = job_document(job, keys)
        document["attempts"] = [attempt_document(attempt) for attempt in attempts]
        document["steps"] = [step_document(job, step, keys) for step in steps]
        document["waits_because"] = [reason_document(reason) for reason in reasons]
        document["log"] = [line_document(line) for line in lines]
        say_json(document)
        return
    now = SystemClock().now()
    _show_facts(job, [*_facts(job, keys, names, now), *related], reasons)
    # One that has succeeded has none, and its attempts may have had one each.
    failures = [job.failure, *(attempt.failure for attempt in reversed(attempts))]
    if failure := next(filter(None, failures), None):
        _show_failure(job, failure, attempts)
    if attempts:
        _show_attempts(attempts)
    if steps:
        _show_steps(job, keys, steps, now)
    if lines:
        title = f"Log, the last {_LAST_LINES} of {len(lines)} lines of its last attempt"
        _title(title if len(lines) > _LAST_LINES else "Log of its last attempt")
        show(log_table(lines[-_LAST_LINES:]), indent=2)


def _show_facts(job: Job, known: Sequence[tuple[str, str]], reasons: list[Reason]) -> None:
    facts = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row(Text("Job", "bold"), cell(job.id))
    facts.add_row(Text("State", "bold"), state_of(job))
    for name, value in known:
        facts.add_row(Text(name, "bold"), cell(value))
    for reason in reasons:
        facts.add_row(Text("Waits", "bold"), told(reason))
    show(facts)


def _facts(job: Job, keys: Keyring, names: Mapping[UUID, str], now: datetime) -> Iterator[tuple[str, str]]:
    yield "Task", job.task
    if job.team is not None:
        yield "Team", job.team
    yield "Arguments", _arguments(job, keys)
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
    yield from _told(job, keys, names)


def _told(job: Job, keys: Keyring, names: Mapping[UUID, str]) -> Iterator[tuple[str, str]]:
    """Yield what others have said about the job, where they have."""
    if job.session is not None:
        yield "Worker", names.get(job.session, str(job.session))
    if job.wish is not None:
        yield "Asked to", job.wish
    if job.reason is not None:
        yield "Reason", job.reason
    if job.reached is not None:
        reached = job.reached
        total = f" of {reached.total:g}, {how_far(reached)}" if reached.total else ""
        yield "Progress", f"{reached.done:g}{total}{f' ({reached.note})' if reached.note else ''}"
    if job.result is not None:
        yield "Result", cut(opened(lambda: open_result(keys, job)) or _ENCRYPTED, _LONGEST_VALUE)


def _arguments(job: Job, keys: Keyring) -> str:
    payload = opened(lambda: open_payload(keys, job))
    if payload is None:
        return _ENCRYPTED
    call = decode_call(payload)
    by_position = [_json(value) for value in call.args]
    by_name = [f"{name}={_json(value)}" for name, value in call.kwargs.items()]
    return cut(", ".join(by_position + by_name), _LONGEST_VALUE) or "none"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _took(job: Job) -> str:
    return f" (took {span(job.finished_at - job.started_at)})" if job.finished_at and job.started_at else ""


def _show_failure(job: Job, failure: Failure, attempts: list[Attempt]) -> None:
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


def _show_steps(job: Job, keys: Keyring, steps: list[Step], now: datetime) -> None:
    last = steps[-_LAST_STEPS:]
    _title("Steps" if last == steps else f"Steps, the last {len(last)} of {len(steps)}")
    table = listing("Step", "At", "Result")
    for step in last:
        waits = f"waits until {local(step.until)} ({until(step.until, now)})" if step.pending and step.until else ""
        table.add_row(cell(step.name), cell(local(step.at)), cell(waits or _result(job, keys, step)))
    show(table, indent=2)


def _result(job: Job, keys: Keyring, step: Step) -> str:
    if step.result is None:
        return ""
    return cut(opened(lambda: open_step(keys, job, step).result) or _ENCRYPTED, _LONGEST_RESULT)


def _title(text: str) -> None:
    say("")
    say(text, "bold")


def _worker_names(attempts: Sequence[Attempt]) -> dict[UUID, str]:
    return {attempt.session: attempt.worker for attempt in attempts if attempt.worker is not None}
