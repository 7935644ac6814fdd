"""Execute: call a handler, and say what its attempt came to."""

from __future__ import annotations

from typing import Any

from mainspring.errors import CancelRequested, InvalidPayload, LeaseLost, PauseRequested, TimeExpired, WorkerStopped
from mainspring.model.outcome import Cancelled, Failed, Outcome, Paused, Returned, Snooze, Snoozed, Succeeded, TimedOut
from mainspring.model.payload import encode_result
from mainspring.model.task import Task
from mainspring.worker.context import Context
from mainspring.worker.failure import failure_of


def call(task: Task, payload: str, context: Context | None) -> Any:
    """Call the handler of *task* with the arguments in *payload*, and the context if it takes one."""
    args, kwargs = task.decode(payload)
    if task.context is None:
        return task.handler(*args, **kwargs)
    if task.context_by_name:
        return task.handler(*args, **kwargs, **{task.context: context})
    return task.handler(context, *args, **kwargs)


def success(task: Task, result: object) -> Outcome:
    """Return the outcome of a handler that returned *result*."""
    try:
        return Succeeded(encode_result(result))
    except InvalidPayload as error:
        # The work is done; to do it again would not make the result any easier to keep.
        return Failed(failure_of(error, task.name), retryable=False)


def ending(task: Task, error: BaseException, stop: BaseException | None) -> Outcome | None:
    """Return the outcome of a handler that raised *error*, having been asked to *stop* or not.

    None means that nothing can be recorded, because the job is no longer ours.
    """
    if isinstance(stop, LeaseLost) or isinstance(error, LeaseLost):
        return None
    match error:
        case Snooze():
            return Snoozed(error.delay)
        case CancelRequested():
            return Cancelled()
        case PauseRequested():
            return Paused() if isinstance(stop, PauseRequested) else Returned()  # resumed before it had stopped
        case WorkerStopped():
            return Returned()
        case TimeExpired():
            error.args = stop.args if isinstance(stop, TimeExpired) else error.args
            return TimedOut(failure_of(error, task.name), retryable=True)
    return Failed(failure_of(error, task.name), retryable=task.retry.covers(error))
