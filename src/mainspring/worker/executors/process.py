"""A child process, as the worker that started it sees it."""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from weakref import WeakSet

import msgspec

from mainspring.clock import Clock
from mainspring.errors import LeaseLost
from mainspring.worker.executors.messages import Begin, Frames, FromChild, Setup, Stop, frame, from_child
from mainspring.worker.held import Held

_PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from mainspring.worker.executors.child import main
main()
"""
_SENDING = 5.0
_CHUNK = 65_536
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


class Process:
    """One child, which makes one attempt at a time. Only one thread uses it.

    It is on a leash, a pipe on which nothing is ever said: when the worker's end is closed, the child is killed.
    """

    def __init__(self, setup: Setup, clock: Clock) -> None:
        first = frame(setup)
        self._clock = clock
        self._frames = Frames()
        # A new process counts what its parent had used as its own, until it has used more itself.
        self._inherited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with ExitStack() as theirs, ExitStack() as ours:
            self.line, line = socket.socketpair()
            ours.callback(self.line.close)
            theirs.callback(line.close)
            leash, self._leash = os.pipe()
            ours.callback(os.close, self._leash)
            theirs.callback(os.close, leash)
            self._popen = _start(line.fileno(), leash)
            ours.pop_all()
        self.line.settimeout(_SENDING)
        self._code: int | None = None
        self._peak = 0
        self._began = clock.steady()
        self.held: Held | None = None
        self.begun = False
        self.stop: BaseException | None = None
        self.frozen = False
        self.leaving = False  # takes no other attempt
        self.over = False  # has said its last word
        self.kill_at = math.inf
        _living.add(self)
        self._send(first)

    @property
    def idle(self) -> bool:
        return self.held is None and not self.leaving

    def begin(self, held: Held, order: Begin) -> bool:
        """Have the child make an attempt; return False when it is dead already, and so never will."""
        self.held, self.begun, self._began = held, False, self._clock.steady()
        if not self._send(frame(order)):
            self.held = None
        return self.held is not None

    def interrupt(self, stop: BaseException, grace: float) -> None:
        """Ask the attempt to end because of *stop*; its process is killed after *grace* seconds.

        The first reason stays, unless the lease is lost.
        """
        self.leaving = True
        self.kill_at = min(self.kill_at, self._clock.steady() + grace)
        if self.stop is None or isinstance(stop, LeaseLost):
            self.stop = stop
            self._send(frame(Stop.of(stop)))

    def freeze(self) -> None:
        self.frozen = True
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.frozen = False
        self._signal(signal.SIGCONT)

    def hang_up(self, grace: float) -> None:
        """Let the child end, at once if it is in the midst of an attempt; it is killed after *grace* seconds."""
        self.leaving = True
        self.kill_at = min(self.kill_at, self._clock.steady() + grace)
        with suppress(OSError):
            self.line.shutdown(socket.SHUT_WR)

    def kill(self) -> None:
        """Kill the child, and whatever it has started in its process group."""
        self.leaving = True
        self.kill_at = math.inf
        self._signal(signal.SIGKILL)

    def receive(self) -> list[FromChild]:
        """Return what the child has said; after its last word, `over` is true."""
        try:
            data = self.line.recv(_CHUNK)
            messages = [from_child.decode(message) for message in self._frames.feed(data)]
        except (OSError, msgspec.DecodeError):
            data, messages = b"", []
        if not data:
            self.over = True
            self.kill()  # with what it has left running: the process id stays its own until it is collected
        return messages

    def collect(self) -> bool:
        """Return whether the child is dead, and leave nothing of it behind if so."""
        try:
            pid, status, usage = os.wait4(self._popen.pid, os.WNOHANG)
        except ChildProcessError:
            pass  # other code of this program waits for any child that may end
        else:
            if pid == 0:
                return False
            self._code, self._peak = os.waitstatus_to_exitcode(status), usage.ru_maxrss
        self._popen.returncode = self._code or 0  # or it would complain that nobody has waited
        self.let_go()
        return True

    def let_go(self) -> None:
        """Close our end of the line and of the leash."""
        _living.discard(self)
        self.line.close()
        os.close(self._leash)

    def fate(self) -> str:
        """Say how a child that was collected had ended."""
        ended = f"its process {_ending(self._code)} after {self._clock.steady() - self._began:.1f} s"
        if self._peak <= self._inherited:
            return ended
        return f"{ended}, having used up to {self._peak * _RSS_UNIT / 1_000_000:,.0f} MB of memory"

    def _signal(self, number: signal.Signals) -> None:
        """Send a signal to the child and whatever it has started in its process group."""
        if self._popen.returncode is None:  # once it is collected, its process id may be another's
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, number)

    def _send(self, data: bytes) -> bool:
        try:
            self.line.sendall(data)
        except OSError:
            self.kill()  # dead already, or so far gone that it does not read
            return False
        return True


_living: WeakSet[Process] = WeakSet()


def _after_fork() -> None:
    """Let go of them all in a process that the worker has forked, which might outlive it."""
    for process in list(_living):
        process.let_go()


os.register_at_fork(after_in_child=_after_fork)


def _start(line: int, leash: int) -> subprocess.Popen[bytes]:
    # With -P and our own path, because the program may have been started in another way than the child is.
    path = json.dumps([entry for entry in sys.path if isinstance(entry, str)])
    return subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-P", "-c", _PROGRAM, path, str(line), str(leash), str(os.getpid()), *sys.argv],
        stdin=subprocess.DEVNULL,
        pass_fds=(line, leash),
        start_new_session=True,
    )


def _ending(code: int | None) -> str:
    if code is None:
        return "ended"
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
