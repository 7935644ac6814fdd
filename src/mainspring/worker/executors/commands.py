"""Commands: programs of the system, each under a launcher of its own that leaves nothing of it behind."""

from __future__ import annotations

import errno
import functools
import logging
import math
import os
import threading
from collections import deque
from collections.abc import Sequence
from datetime import timedelta

from msgspec.structs import asdict

from mainspring.clock import Clock
from mainspring.errors import CommandRefused, LeaseLost, PauseRequested, TimeExpired, WorkerStopped
from mainspring.model.duration import duration
from mainspring.model.exit_code import how_it_ended
from mainspring.model.failure import Failure
from mainspring.model.fingerprint import fingerprint
from mainspring.model.job import Job
from mainspring.model.outcome import Failed, Lost, Outcome, Succeeded
from mainspring.model.payload import encode_result
from mainspring.model.text import shortened
from mainspring.worker.execute import check_in_time, detailed, ending, untold
from mainspring.worker.executors.command import Command, Order
from mainspring.worker.executors.executor import Host, take_all
from mainspring.worker.executors.output import Output
from mainspring.worker.executors.processes import GRACE
from mainspring.worker.executors.programs import Programs
from mainspring.worker.executors.switchboard import Switchboard
from mainspring.worker.failure import failure_of
from mainspring.worker.held import Held

_HASTE = 1.0
"""Seconds between asking a command to end and killing it, where another worker may begin the job soon."""

_LEAVING = 2.0
_COLLECTING = 0.01
_PAUSE = 1.0

_PASSING = (errno.EAGAIN, errno.ENOMEM, errno.ENOSPC, errno.ETXTBSY)
"""What keeps a program from being started, and may be over the next time."""

_OURS = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "TZ", "USER")
"""What a command gets of the worker's environment: nothing in it can be a secret."""

log = logging.getLogger("mainspring.worker")


class CommandExecutor:
    """Up to *slots* commands at once, all attended by one thread.

    The time of one that is paused stands still, as it does itself, and it gives its slot away.
    """

    def __init__(self, slots: int, host: Host, clock: Clock, programs: Programs) -> None:
        self._slots = slots
        self._host = host
        self._clock = clock
        self._programs = programs
        self._queue: deque[Held] = deque()
        self._unfinished: set[Held] = set()
        self._commands: list[Command] = []
        self._frozen = 0
        self._start_after = 0.0
        self._closing = False
        self._making = threading.Lock()
        self._made: Switchboard | None = None

    @property
    def room(self) -> int:
        return self._slots - len(self._unfinished) + self._frozen

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def put(self, taken: Sequence[Held]) -> None:
        self._unfinished.update(taken)
        self._queue.extend(taken)
        self._switchboard.wake()

    def take_back(self) -> list[Held]:
        taken = take_all(self._queue)
        self._unfinished.difference_update(taken)
        return taken

    def abandon(self, held: Held) -> None:
        """Do nothing: the end of a command is in our hands, and is always reported."""

    def close(self) -> None:
        if self._made is not None:
            self._made.tell(self._end_all)
            self._made.join(_LEAVING + 1)

    @property
    def _switchboard(self) -> Switchboard:
        with self._making:
            if self._made is None:
                self._made = Switchboard("commands", self._turn)
                self._made.start()
            return self._made

    # From here on, all is done by the switchboard's thread.

    def _turn(self) -> float:
        """Do what is due, and return the seconds until more is."""
        now = self._clock.steady()
        for command in list(self._commands):
            if command.expire_at <= now:
                self._expire(command)
            if command.kill_at <= now:
                self._kill(command)
        for command in [one for one in self._commands if one.over and one.collect()]:
            self._commands.remove(command)
            self._finish(command)
        self._start_waiting()
        for command in self._commands:
            if not command.over:
                self._switchboard.attend(command.line, to_speak=command.has_more_to_say)
        if self._closing and not self._commands:
            self._switchboard.end()
        return self._until_due()

    def _until_due(self) -> float:
        if any(command.over for command in self._commands):
            return _COLLECTING
        due = [min(command.expire_at, command.kill_at) for command in self._commands]
        start_at = self._start_after if self._queue and not self._may_start else math.inf
        return max(0.0, min([start_at, *due]) - self._clock.steady())

    @property
    def _may_start(self) -> bool:
        return self._clock.steady() >= self._start_after

    def _start_waiting(self) -> None:
        while self._queue and len(self._commands) - self._frozen < self._slots and self._may_start:
            try:
                held = self._queue.popleft()
            except IndexError:
                return  # taken back
            self._begin(held)

    def _begin(self, held: Held) -> None:
        try:
            held.check()
            check_in_time(held.job, held.start_by)
            order = order_of(held, self._programs)
        except BaseException as error:  # noqa: BLE001 - whatever is wrong with a job is its outcome
            self._end(held, _not_begun(held, error))
            return
        try:
            self._launch(held, order)
        except BaseException as error:  # noqa: BLE001 - a job that nobody reports would stay ours for ever
            self._forget(held)
            self._end(held, untold(held.task, error, held.secrecy))

    def _launch(self, held: Held, order: Order) -> None:
        output = Output(self._host.context(held).log.keep, held.secrecy.redact)
        try:
            command = Command(held, order, output, self._clock)
        except OSError as error:
            self._start_after = self._clock.steady() + _PAUSE
            self._queue.appendleft(held)
            log.warning("can't start a command: %s; trying again in %g s", error, _PAUSE)
            return
        held.began = self._clock.steady()
        self._commands.append(command)
        self._connect(command)
        held.interrupt = lambda stop: self._switchboard.tell(lambda: self._interrupt(command, stop))
        if held.stop is not None:  # it came when there was nobody yet to tell
            self._interrupt(command, held.stop)

    def _forget(self, held: Held) -> None:
        """Have the command of *held* killed, if it has one, and wait for that."""
        for command in [one for one in self._commands if one.held is held]:
            self._commands.remove(command)
            self._disconnect(command)
            command.dispose()

    def _connect(self, command: Command) -> None:
        self._switchboard.connect(command.line, lambda: self._hear(command), command.speak)
        for number in command.listening:
            hear = functools.partial(self._listen, command, number)
            self._switchboard.connect(number, hear, _say_nothing)

    def _hear(self, command: Command) -> None:
        command.hear()
        if command.over:
            self._disconnect(command)

    def _disconnect(self, command: Command) -> None:
        self._switchboard.disconnect(command.line)
        for number in command.listening:
            self._switchboard.disconnect(number)

    def _listen(self, command: Command, number: int) -> None:
        if not command.over and not command.listen(number):
            self._switchboard.disconnect(number)

    def _interrupt(self, command: Command, stop: BaseException | None) -> None:
        if command not in self._commands or command.over:
            return
        if isinstance(stop, PauseRequested):
            self._pause(command)
            return
        self._thaw(command)
        if stop is not None:
            command.end(stop, _HASTE if isinstance(stop, LeaseLost | WorkerStopped) else GRACE)

    def _expire(self, command: Command) -> None:
        command.expire_at = math.inf
        limit = timedelta(seconds=command.order.timeout).total_seconds()
        command.held.end(TimeExpired(f"the command took longer than its timeout of {limit:g} s"))

    def _kill(self, command: Command) -> None:
        if not command.killed:
            command.kill()
            return
        log.error("the system keeps a command of job %s that was killed; going on without it", command.held.job.id)
        if not command.over:
            self._disconnect(command)
        self._commands.remove(command)
        command.let_go()
        self._finish(command)

    def _pause(self, command: Command) -> None:
        if command.stop is None and not command.frozen:
            command.freeze()
            command.held.frozen = True
            self._frozen += 1
            self._host.hungry(self)

    def _thaw(self, command: Command) -> None:
        if command.frozen:
            command.thaw()
            self._frozen -= 1
            command.held.frozen = False

    def _finish(self, command: Command) -> None:
        self._thaw(command)
        held = command.held
        held.took = command.seconds
        try:
            outcome = outcome_of(command)
        except BaseException as error:  # noqa: BLE001 - a job that nobody reports would stay ours for ever
            outcome = untold(held.task, error, held.secrecy)
        self._end(held, outcome)

    def _end(self, held: Held, outcome: Outcome | None) -> None:
        held.interrupt = None
        self._unfinished.discard(held)
        self._host.ended(held, None if isinstance(held.stop, LeaseLost) else outcome)
        self._host.hungry(self)

    def _end_all(self) -> None:
        self._closing = True
        for command in self._commands:
            command.hang_up()


def order_of(held: Held, programs: Programs) -> Order:
    """Return what the job of *held* wants to be run, having checked that it may."""
    job = held.job
    args, kwargs = held.task.decode(held.payload)
    bound = held.task.bind(args, kwargs)
    bound.apply_defaults()
    given = bound.arguments
    env, limits, timeout = given["env"] or {}, given["limits"], given["timeout"]
    program, *arguments = given["argv"]
    path = programs.find(program)
    return Order(
        path=path,
        # By its real name where it is called by its path: many a program does something else under another.
        argv=[path if os.sep in program else program, *arguments],
        env={**_environment(job, programs.path), **env},
        cwd=given["cwd"],
        stdin=given["stdin"],
        ok=given["ok"],
        limits={} if limits is None else {name: value for name, value in asdict(limits).items() if value is not None},
        timeout=math.inf if timeout is None else duration(timeout, "timeout").total_seconds(),
    )


def outcome_of(command: Command) -> Outcome | None:
    """Return what the attempt came to whose command has ended."""
    held, fate, order = command.held, command.fate, command.order
    details = _details(command)
    if held.details is not None:
        held.details |= details
    if command.stop is not None:
        return ending(held.task, command.stop, held.stop, details, held.secrecy)
    if fate.refused is not None:
        refused = CommandRefused(f"{shortened(order.argv[0])} could not be started: {fate.refused}")
        return Failed(failure_of(refused, held.task.name, held.secrecy.redact), retryable=fate.errno in _PASSING)
    if fate.code is None:
        return Lost(f"its launcher ended before it could say what became of it, after {command.seconds:.1f} s")
    if fate.code in order.ok:
        result = {"exit_code": fate.code, "output": command.output.end, "truncated": command.output.truncated}
        return Succeeded(held.secrecy.result(encode_result(result)), details=held.secrecy.details(details))
    return detailed(Failed(_failure(command, fate.code)), details, held.secrecy)


def _failure(command: Command, code: int) -> Failure:
    program = command.order.argv[0]
    how = f"{shortened(program)} {how_it_ended(code)}"
    said = command.output.last_lines
    return Failure(
        type="CommandFailed",
        message=command.held.secrecy.redact(f"{how}; its last lines:\n{said}" if said else how),
        fingerprint=fingerprint(command.held.task.name, "CommandFailed", "", f"{program} {code}"),
    )


def _details(command: Command) -> dict[str, object]:
    fate = command.fate
    details: dict[str, object] = {"seconds": round(command.seconds, 3), "output_bytes": command.output.count}
    if fate.code is not None:
        details |= {"exit_code": fate.code} if fate.code >= 0 else {"signal": how_it_ended(fate.code).split()[-1]}
    if "cpu" in fate.used:
        details["cpu_seconds"] = fate.used["cpu"]
    if "rss" in fate.used:
        details["max_rss"] = fate.used["rss"]
    return details


def _not_begun(held: Held, error: BaseException) -> Outcome | None:
    """Return the outcome of an attempt that ended before its command had begun, because of *error*."""
    if isinstance(error, Exception):
        return Failed(failure_of(error, held.task.name, held.secrecy.redact), retryable=False)
    return ending(held.task, error, held.stop, secrecy=held.secrecy)


def _environment(job: Job, path: str) -> dict[str, str]:
    ours = {name: os.environ[name] for name in _OURS if name in os.environ}
    return {**ours, "PATH": path, "MAINSPRING_JOB_ID": str(job.id), "MAINSPRING_ATTEMPT": str(job.attempt)}


def _say_nothing() -> None: ...
