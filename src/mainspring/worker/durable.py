"""Durable: steps that are not done twice, and sleeps and waits that no worker has to sit out."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, Protocol, TypeVar

import msgspec

from mainspring.errors import InvalidValue, StepResultRefused, Suspension
from mainspring.model.annotations import hints
from mainspring.model.duration import Duration, duration
from mainspring.model.job import Job, check_name
from mainspring.model.payload import convert, encode_result
from mainspring.model.step import SIGNAL, Step, check_step_name, sleep_name
from mainspring.model.text import shortened
from mainspring.store import Store
from mainspring.worker.secrecy import OPEN, Secrecy

T = TypeVar("T")


class Keeper(Protocol):
    """The worker's side: where steps are kept."""

    def with_store(self, work: Callable[[Store], T]) -> T:
        """Call *work* with the store, and let nothing disturb it."""
        ...


Ends = TypeVar("Ends", Suspension, StepResultRefused)


class Running:
    """A step that runs now, and its result, as JSON, once a transaction block has recorded that."""

    __slots__ = ("durable", "name", "recorded")

    def __init__(self, durable: Durable, name: str) -> None:
        self.durable = durable
        self.name = name
        self.recorded: str | None = None


# A variable of the context, and not of the attempt: a handler may run steps side by side, in coroutines or in threads.
_running: ContextVar[Running | None] = ContextVar("mainspring_step", default=None)


class Call:
    """What a step does: a function with its arguments."""

    __slots__ = ("_args", "_function", "_kwargs")

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        if not callable(function):
            raise InvalidValue(f"expected a function for the step to call, got: {shortened(function)}")
        self._function = function
        self._args = args
        self._kwargs = kwargs

    @property
    def awaits(self) -> bool:
        return inspect.iscoroutinefunction(self._function)

    def perform(self) -> Any:
        """Call the function. The frame that does so is known to `interruption`: what it calls is not ours."""
        return self._function(*self._args, **self._kwargs)

    def read(self, result: str) -> Any:
        """Return what a *result* that was kept stands for, as the function's annotation has it if it can be so."""
        value = msgspec.json.decode(result)
        try:
            return convert(value, hints(self._function, "return".__eq__).get("return", Any), "the result")
        except Exception:  # noqa: BLE001 - an annotation is any expression, and may raise anything
            return value


class Durable:
    """The steps, sleeps and waits of one attempt. Safe from any thread of its handler.

    Those of earlier attempts are read when they are first asked for. The first attempt has none to read.
    """

    def __init__(self, job: Job, keeper: Keeper, check: Callable[[], None], secrecy: Secrecy = OPEN) -> None:
        """*check* raises if the attempt should end: each step begins with that."""
        self._job = job
        self._keeper = keeper
        self._check = check
        self._secrecy = secrecy
        self._used: set[str] = set()
        self.left_undone: Suspension | StepResultRefused | None = None
        self._naming = threading.Lock()
        self._before: dict[str, Step] | None = None if job.fence > 1 else {}
        self._reading = threading.Lock()  # another one, for a loop must not wait for who reads

    def running(self) -> Running | None:
        """Return the step of this attempt in which the caller is, if he is in one."""
        found = _running.get()
        return found if found is not None and found.durable is self else None

    def step(self, name: str, call: Call) -> Any:
        """Return the result of the step, having run it if it is not known."""
        self._begin_step(name)
        result = self._result_before(name)
        if result is None:
            with self._within(name) as running:
                returned = call.perform()
                if inspect.isawaitable(returned):
                    raise _unawaited(name, returned)
            result = self._keep(running, returned)
        return call.read(result)

    async def astep(self, name: str, call: Call) -> Any:
        """Do as `step` does. What would hold up the loop, the database or a plain function, is left to a thread."""
        self._begin_step(name)
        known = self._before is not None
        result = self._result_before(name) if known else await asyncio.to_thread(self._result_before, name)
        if result is None:
            with self._within(name) as running:
                returned = call.perform() if call.awaits else await asyncio.to_thread(call.perform)
                if inspect.isawaitable(returned):
                    returned = await returned
            result = await asyncio.to_thread(self._keep, running, returned)
        return call.read(result)

    def sleep(self, length: Duration, name: str | None) -> Callable[[], None]:
        """Return what goes on when the sleep is over, and else ends the attempt until then."""
        wanted = duration(length, "the length of a sleep")
        if name is not None:
            check_step_name(name, "the name of a sleep")
        self._check_alone("a sleep")
        kept = self._reserve(sleep_name(wanted, name), numbered=name is None)
        job = self._job

        def work() -> None:
            before = self._step_before(kept)
            if before is not None and before.passed:
                return
            left = self._keeper.with_store(lambda store: store.begin_sleep(job.id, job.fence, kept, wanted))
            if left > timedelta(0):
                raise self._ended(Suspension(left))

        return work

    def wait_signal(self, signal: str, timeout: Duration | None) -> Callable[[], Any]:
        """Return what returns the value of the signal, and else ends the attempt until that comes."""
        check_name(signal, "the name of a signal")
        limit = None if timeout is None else duration(timeout, "timeout")
        self._check_alone("a wait for a signal")
        kept = self._reserve(f"{SIGNAL}{signal}", numbered=True)
        job = self._job

        def work() -> Any:
            before = self._step_before(kept)
            found: str | timedelta | None = None if before is None else before.result
            if found is None:
                found = self._keeper.with_store(lambda store: store.take_signal(job.id, job.fence, kept, signal, limit))
            if isinstance(found, timedelta):
                raise self._ended(Suspension(found, signal))
            return msgspec.json.decode(self._secrecy.opened_signal(signal, found))

        return work

    def _begin_step(self, name: str) -> None:
        check_step_name(name)
        self._check_alone("a step")
        self._reserve(name)

    def _ended(self, why: Ends) -> Ends:
        """Return *why*, having noted that the attempt should end for it, whatever its handler makes of that."""
        self.left_undone = why
        return why

    def _check_alone(self, what: str) -> None:
        if self.left_undone is not None:
            raise self.left_undone.with_traceback(None)
        self._check()
        outer = self.running()
        if outer is not None:
            raise InvalidValue(f"expected {what} to stand beside other steps, got one inside step {outer.name!r}")

    def _reserve(self, name: str, *, numbered: bool = False) -> str:
        """Return the name by which a step is kept: *name*, with a number behind it where that is to tell it apart."""
        with self._naming:
            number, kept = 1, name
            while numbered and kept in self._used:
                number += 1
                kept = f"{name} {number}"
            if kept in self._used:
                raise InvalidValue(
                    f"a step named {name!r} was run already in this attempt; give each its own name, "
                    f"such as f'{name} {{i}}'"
                )
            self._used.add(kept)
        return kept

    def _step_before(self, name: str) -> Step | None:
        """Return the step as earlier attempts have left it."""
        with self._reading:
            if self._before is None:
                steps = self._keeper.with_store(lambda store: store.steps(self._job.id))
                self._before = {step.name: step for step in steps}
            return self._before.get(name)

    def _result_before(self, name: str) -> str | None:
        before = self._step_before(name)
        if before is None or before.result is None:
            return None
        return self._secrecy.opened_step(name, before.result)

    @contextmanager
    def _within(self, name: str) -> Iterator[Running]:
        """Let the caller be in a step. One that fails may be run again by its handler, under the same name."""
        running = Running(self, name)
        outside = _running.set(running)
        try:
            yield running
        except BaseException:
            if running.recorded is None:
                self._used.discard(name)
            raise
        finally:
            _running.reset(outside)

    def _keep(self, running: Running, returned: object) -> str:
        """Record what a step returned, unless a transaction block has recorded a result with what it wrote."""
        if running.recorded is not None:
            return running.recorded
        try:
            result = self._secrecy.shown(encode_result(returned))
        except Exception as error:  # a result may hold objects of the handler's own, and run their code
            raise self._ended(StepResultRefused(running.name, error)) from error
        job, name = self._job, running.name
        kept = self._secrecy.closed_step(name, result)
        self._keeper.with_store(lambda store: store.record_step(job.id, job.fence, name, kept))
        return result


def _unawaited(name: str, returned: Any) -> InvalidValue:
    if inspect.iscoroutine(returned):
        returned.close()  # or else Python complains of it
    return InvalidValue(
        f"expected a plain function for step {name!r}, because its handler is one, got a coroutine function; "
        "make the handler `async def`, and await the step"
    )
