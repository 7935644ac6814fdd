"""What was enqueued, and assertions about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack

import msgspec

from mainspring.app import Mainspring
from mainspring.errors import InvalidPayload, check_known
from mainspring.keys import open_payload
from mainspring.model.duration import Duration, duration
from mainspring.model.job import Job, priority_of
from mainspring.model.payload import decode_call
from mainspring.model.task import Task
from mainspring.model.text import shortened
from mainspring.store.protocol import JobFilter
from mainspring.task_handle import TaskHandle

_PAGE = 1_000
_SHOWN = 20


@dataclass(frozen=True)
class EnqueuedCall:
    """A job as the call that it stands for, with its arguments as the handler gets them; `job` has everything else."""

    task: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    job: Job

    def __str__(self) -> str:
        return _shown(self.task, self.args, self.kwargs)


class Wanted(TypedDict, total=False):
    """What an enqueued job is expected to be like. `args` and `kwargs` are one call: giving either says all of it."""

    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    queue: str
    priority: int | str
    key: str
    run_at: datetime
    run_after: Duration
    count: int


def enqueued(app: Mainspring, task: TaskHandle[..., Any] | str | None = None) -> list[EnqueuedCall]:
    """Return all jobs, or those of *task*, as the calls that they stand for, oldest first, finished or not."""
    name = task if task is None or isinstance(task, str) else task.name
    jobs: list[Job] = []
    while page := app.client.page(JobFilter(task=name), jobs[-1].id if jobs else None, _PAGE):
        jobs += page
    return [_call(app, job) for job in reversed(jobs)]


def assert_enqueued(app: Mainspring, task: TaskHandle[..., Any] | str, **wanted: Unpack[Wanted]) -> list[EnqueuedCall]:
    """Fail unless a job of *task* was enqueued that is as *wanted*, or `count` of them; return those that are.

    It matters not whether an argument was passed by position or by name, or left to its default. A value that equals
    anything, such as `unittest.mock.ANY`, will do. Jobs that have finished count as well.
    """
    __tracebackhide__ = True
    expectation = _Expectation(app, task if isinstance(task, str) else task.name, wanted)
    calls = enqueued(app)
    found = [call for call in calls if not expectation.differences(call)]
    count = wanted.get("count")
    if len(found) != count if count is not None else not found:
        raise AssertionError(expectation.report(calls, len(found)))
    return found


class _Expectation:
    """What a test expects of one kind of job, and how a call differs from it."""

    def __init__(self, app: Mainspring, task: str, wanted: Wanted) -> None:
        check_known(wanted, Wanted, "nothing about a job")
        self._task = task
        self._wanted = wanted
        self._known = app.tasks.get(task) if len(app.tasks) else None
        self._wishes: dict[str, object] = {
            name: value for name, value in wanted.items() if name not in ("args", "kwargs", "count")
        }
        if "run_after" in wanted:
            self._wishes["run_after"] = duration(wanted["run_after"], "run_after")
        if "priority" in wanted:
            self._wishes["priority"] = priority_of(wanted["priority"])
        self._arguments: Mapping[str, Any] | None = None
        if "args" in wanted or "kwargs" in wanted:
            self._arguments = _arguments(self._known, wanted.get("args") or (), wanted.get("kwargs") or {})

    def differences(self, call: EnqueuedCall) -> list[str]:
        """Return what is not as wanted, each in a few words."""
        if call.task != self._task:
            return ["it is another task"]
        return [*self._other_arguments(call), *self._other_wishes(call.job)]

    def report(self, calls: list[EnqueuedCall], found: int) -> str:
        """Return the sentence for an expectation that *found* of the *calls* met, and what there was instead."""
        count = self._wanted.get("count")
        times = "" if count is None else f" {count} times" if count != 1 else " once"
        came = "it was not" if not found else "it was enqueued once" if found == 1 else f"it was enqueued {found} times"
        told = f"expected {self._described()} to be enqueued{times}, but {came if calls else 'nothing was'}"
        lines = [self._line(call) for call in sorted(calls, key=self._distance)]
        if len(lines) > _SHOWN:
            lines[_SHOWN:] = [f"… and {len(lines) - _SHOWN} more"]
        return "\n    ".join([f"{told}; enqueued were:", *lines]) if lines else told

    def _described(self) -> str:
        wanted = self._wanted
        call = f"a job of {self._task!r}"
        if self._arguments is not None:
            call = _shown(self._task, wanted.get("args") or (), wanted.get("kwargs") or {})
        wishes = [f"{name}={_repr(value)}" for name, value in self._wishes.items()]
        return f"{call} with {', '.join(wishes)}" if wishes else call

    def _distance(self, call: EnqueuedCall) -> tuple[bool, int]:
        return call.task != self._task, len(self.differences(call))

    def _line(self, call: EnqueuedCall) -> str:
        if call.task != self._task:
            return str(call)
        return f"{call}: {'; '.join(self.differences(call)) or 'as expected'}"

    def _other_arguments(self, call: EnqueuedCall) -> list[str]:
        if self._arguments is None:
            return []
        try:
            actual = _arguments(self._known, call.args, call.kwargs)
        except InvalidPayload as error:
            return [str(error)]
        wanted = self._arguments
        others = [name for name in actual if name in wanted and not _same(wanted[name], actual[name])]
        return [
            *(f"{name} is {_repr(actual[name])}, not {_repr(wanted[name])}" for name in others),
            *(f"{name} was not expected" for name in actual if name not in wanted),
            *(f"{name} is missing" for name in wanted if name not in actual),
        ]

    def _other_wishes(self, job: Job) -> list[str]:
        pairs = [(name, _wish(job, name), want) for name, want in self._wishes.items()]
        return [f"{name} is {_repr(got)}, not {_repr(want)}" for name, got, want in pairs if want != got]


def _wish(job: Job, name: str) -> object:
    return job.run_at - job.created_at if name == "run_after" else getattr(job, name)


def _call(app: Mainspring, job: Job) -> EnqueuedCall:
    payload = open_payload(app.client.keys, job)
    plain = decode_call(payload)
    args, kwargs = tuple(plain.args), plain.kwargs
    if job.task in app.tasks:
        with suppress(InvalidPayload):  # what its handler can't take is shown as it came
            args, kwargs = app.tasks.get(job.task).decode(payload)
    return EnqueuedCall(job.task, tuple(args), kwargs, job)


def _arguments(task: Task | None, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a call by name, defaults among them, or by number where the task is not known."""
    if task is None:
        return {f"argument {number}": value for number, value in enumerate(args, 1)} | dict(kwargs)
    bound = task.bind(args, kwargs)
    bound.apply_defaults()
    return bound.arguments


def _same(want: Any, got: Any) -> bool:
    """Return whether the two are equal, as Python sees it or as JSON does, which has no tuples."""
    return bool(want == got) or _plain(want) == _plain(got)


def _plain(value: Any) -> Any:
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return value


def _shown(task: str, args: Iterable[Any], kwargs: Mapping[str, Any]) -> str:
    given = [_repr(value) for value in args] + [f"{name}={_repr(value)}" for name, value in kwargs.items()]
    return f"{task}({', '.join(given)})"


def _repr(value: object) -> str:
    return str(value) if isinstance(value, timedelta | datetime) else shortened(value)
