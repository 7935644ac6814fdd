"""Execute: call a handler, and say what its attempt came to."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from mainspring.clock import SystemClock
from mainspring.errors import (
    CancelRequested,
    LeaseLost,
    PauseRequested,
    StepResultRefused,
    Stop,
    Suspension,
    TimeExpired,
    WorkerStopped,
)
from mainspring.model.failure import Failure
from mainspring.model.graph import Graph
from mainspring.model.job import Job
from mainspring.model.outcome import (
    Cancelled,
    Expanded,
    Failed,
    Outcome,
    Paused,
    RetryAfter,
    Returned,
    Snooze,
    Snoozed,
    Succeeded,
    Suspended,
    TimedOut,
)
from mainspring.model.payload import encode_result
from mainspring.model.retry import leaves
from mainspring.model.task import Task
from mainspring.model.workflow import encode_plan
from mainspring.worker.context import Context
from mainspring.worker.failure import Redact, failure_of
from mainspring.worker.held import Held, current
from mainspring.worker.secrecy import OPEN, Secrecy

_make_current = current.set


def check_in_time(job: Job, start_by: float | None) -> None:
    """Raise if *job*, which is about to start, should have done so before *start_by* on the steady clock.

    It goes back to its queue: whether it has expired is for the database's clock to say.
    """
    if start_by is not None and SystemClock().steady() >= start_by:
        raise WorkerStopped(f"job {job.id} could not start before it expired")


def call(task: Task, payload: str, context: Context | None, held: Held | None = None) -> Any:
    """Call the handler of *task* with the arguments in *payload*, and the context if it takes one.

    With *held*, that is the current attempt from here on: set here, because to enter its context twice costs more.
    """
    if held is not None:
        _make_current(held)
    args, kwargs = task.decode(payload)
    if task.context is None:
        return task.handler(*args, **kwargs)
    if task.context_by_name:
        return task.handler(*args, **kwargs, **{task.context: context})
    return task.handler(context, *args, **kwargs)


def success(task: Task, result: object, context: Context | None = None, secrecy: Secrecy = OPEN) -> Outcome:
    """Return the outcome of a handler that returned *result*, having perhaps added jobs by its *context*."""
    details = None if context is None else context.details
    try:
        if context is not None and context.left_undone is not None:
            return detailed(_despite(task, context.left_undone, secrecy), details, secrecy)
        if isinstance(result, Graph):
            secrecy.check_jobs([*result.jobs, *(undo.job for undo in result.plan.undo)])
            return Expanded(tuple(result.jobs), encode_plan(result.plan))
        kept = secrecy.result(encode_result(result))
        return Succeeded(kept) if context is None else Succeeded(kept, context.added, secrecy.details(context.details))
    except Exception as error:  # noqa: BLE001 - a result may hold objects of the handler's own, and run their code
        # The work is done; to do it again would not make the result any easier to keep.
        return detailed(Failed(failure_of(error, task.name, secrecy.redact), retryable=False), details, secrecy)


def _despite(task: Task, why: Suspension | StepResultRefused, secrecy: Secrecy) -> Outcome:
    """Return the outcome of a handler that has caught what should have ended its attempt: as if it had not."""
    if isinstance(why, Suspension):
        return Suspended(why.delay, why.signal)
    return Failed(failure_of(why, task.name, secrecy.redact), retryable=False)


def ending(
    task: Task,
    error: BaseException,
    stop: BaseException | None,
    details: Mapping[str, object] | None = None,
    secrecy: Secrecy = OPEN,
) -> Outcome | None:
    """Return the outcome of a handler that raised *error*, having been asked to *stop* or not.

    None means that nothing can be recorded, because the job is no longer ours.
    """
    error = _stop_within(error)
    if isinstance(stop, LeaseLost) or isinstance(error, LeaseLost):
        return None
    return detailed(_ending(task, error, stop, secrecy.redact), details, secrecy)


def detailed(outcome: Outcome, details: Mapping[str, object] | None, secrecy: Secrecy = OPEN) -> Outcome:
    """Return *outcome* with what the attempt has said of itself, where that is kept."""
    if not details or not isinstance(outcome, Failed | TimedOut | Cancelled):
        return outcome
    return replace(outcome, details=secrecy.details(details))


def _ending(task: Task, error: BaseException, stop: BaseException | None, redact: Redact) -> Outcome:
    match error:
        case Snooze():
            return Snoozed(error.delay)
        case Suspension():
            return Suspended(error.delay, error.signal)
        case RetryAfter():
            return Failed(failure_of(error, task.name, redact), retryable=True, after=error.delay)
        case CancelRequested():
            return Cancelled()
        case PauseRequested():
            return Paused() if isinstance(stop, PauseRequested) else Returned()  # resumed before it had stopped
        case WorkerStopped():
            return Returned()
        case TimeExpired():
            error.args = error.args or expiry(task).args  # only its class can be sent into a thread
            return TimedOut(failure_of(error, task.name, redact), retryable=True)
        case CancelledError():
            error.args = error.args or ("it was raised in the handler: nobody had asked the worker to cancel it",)
            return Failed(failure_of(error, task.name, redact), retryable=_covers_own_cancel(task, error))
    return Failed(failure_of(error, task.name, redact), retryable=task.retry.covers(error) and not _is_done(error))


def untold(task: Task, error: BaseException, secrecy: Secrecy = OPEN) -> Outcome:
    """Return the outcome of an attempt when even to say what it came to has raised *error*. Raises nothing itself."""
    try:
        failure = failure_of(error, task.name, secrecy.redact)
    except BaseException:  # noqa: BLE001 - see above
        failure = Failure(type=type(error).__name__, message="what the attempt came to can't be told")
    return Failed(failure, retryable=False)


def expiry(task: Task) -> TimeExpired:
    """Return what ends an attempt that has used up the time that *task* gives it."""
    limit = "its timeout" if task.timeout is None else f"its timeout of {task.timeout.total_seconds():g} s"
    return TimeExpired(f"the attempt took longer than {limit}")


def _stop_within(error: BaseException) -> BaseException:
    """Return the stop that was raised in a task group, where asyncio wraps it up; anything else as it is."""
    return next((leaf for leaf in leaves(error) if isinstance(leaf, Stop)), error)


def _is_done(error: BaseException) -> bool:
    """Return whether the work of a step is done of which nothing can be kept: another try would do it again."""
    return any(isinstance(leaf, StepResultRefused) for leaf in leaves(error))


def _covers_own_cancel(task: Task, error: CancelledError) -> bool:
    """Return whether a cancel that came from within is tried again, as any Exception is, though it is none by type."""
    retry = task.retry
    return retry.covers(error) or (Exception in retry.on and not isinstance(error, retry.never))
