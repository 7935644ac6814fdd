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
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from weakref import WeakSet

import msgspec

from mainspring.clock import Clock
from mainspring.errors import LeaseLost
from mainspring.model.exit_code import how_it_ended
from mainspring.worker.executors.messages import (
    Begin,
    Flushed,
    Frames,
    FromChild,
    Setup,
    Stop,
    TimeLeft,
    frame,
    from_child,
)
from mainspring.worker.held import Held

_PROGRAM = """
import json, sys
path, home = json.loads(sys.argv[1])
sys.path.append(home)
from mainspring.worker.executors.child import main
sys.path[:] = path
main()
"""
_HOME = str(Path(__file__).parents[3])

STARTING = 60.0
"""Seconds that a child has to get ready, before anything of the user's is imported."""

DYING = 5.0
"""Seconds that the system has to end what was killed."""

_CHUNK = 65_536
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


class Process:
    """One child, which makes one attempt at a time. Only one thread uses it.

    It is on a leash, a pipe on which nothing is ever said: when the worker's end is closed, the child is killed.
    """

    def __init__(self, setup: Setup, clock: Clock) -> None:
        self._clock = clock
        self._frames = Frames()
        self._unsent = bytearray()
        # A new process counts what its parent had used as its own, until it has used more itself.
        self._inherited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self._code: int | None = None
        self._peak = 0
        self._began = clock.steady()
        self._left = math.inf
        self.held: Held | None = None
        self.ready = False
        self.begun = False
        self.stop: BaseException | None = None
        self.frozen = False
        self.leaving = False  # takes no other attempt
        self.over = False  # has said its last word
        self.killed = False
        self.expire_at = math.inf  # when the attempt's time is up
        self.kill_at = self._began + STARTING
        with being_born:
            self._start()
        self._send(frame(setup))

    @property
    def idle(self) -> bool:
        return self.held is None and not self.leaving

    @property
    def has_more_to_say(self) -> bool:
        return bool(self._unsent)

    def got_ready(self) -> None:
        """Take note that the child can make attempts."""
        self.ready = True
        if not self.leaving:
            self.kill_at = math.inf

    def begin(self, order: Begin) -> bool:
        """Have the child, which is ready, make an attempt; return False when it is dead already, and so never will."""
        self.begun, self._began = False, self._clock.steady()
        return self._send(frame(order))

    def allow(self, seconds: float) -> None:
        """Give the attempt *seconds* from now on, of which those do not count in which it stands still."""
        if self.frozen:
            self._left = seconds
        else:
            self.expire_at = self._clock.steady() + seconds

    def let_off(self) -> None:
        """Have no attempt any more."""
        self.held, self.expire_at = None, math.inf

    def interrupt(self, stop: BaseException, grace: float) -> None:
        """Ask the attempt to end because of *stop*; its process is killed after *grace* seconds.

        The first reason stays, unless the lease is lost.
        """
        self._leave_within(grace)
        self.expire_at = math.inf
        if self.stop is None or isinstance(stop, LeaseLost):
            self.stop = stop
            self._send(frame(Stop.of(stop)))

    def flushed(self) -> None:
        """Tell the child that what it has said is written."""
        self._send(frame(Flushed()))

    def freeze(self) -> None:
        self.frozen = True
        self._left, self.expire_at = self.expire_at - self._clock.steady(), math.inf
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.frozen = False
        self.expire_at = self._clock.steady() + self._left
        if self.begun and self._left < math.inf:
            self._send(frame(TimeLeft(self._left)))
        self._signal(signal.SIGCONT)

    def hang_up(self, grace: float) -> None:
        """Let the child end, at once if it is in the midst of an attempt; it is killed after *grace* seconds."""
        self._leave_within(grace)
        self._unsent.clear()
        with suppress(OSError):
            self.line.shutdown(socket.SHUT_WR)

    def kill(self) -> None:
        """Kill the child, and whatever it has started in its process group; once more if that does not help."""
        self.leaving = self.killed = True
        self.kill_at = self._clock.steady() + DYING
        self._signal(signal.SIGKILL)

    def receive(self) -> list[FromChild]:
        """Return what the child has said; after its last word, `over` is true."""
        try:
            data = self.line.recv(_CHUNK)
            messages = [from_child.decode(message) for message in self._frames.feed(data)]
        except BlockingIOError:
            return []
        except (OSError, msgspec.DecodeError):
            data, messages = b"", []
        if not data:
            self.over = True
            self.kill()  # with what it has left running: the process id stays its own until it is collected
        return messages

    def speak(self) -> bool:
        """Send as much as the line has room for, without waiting; return False when nobody is there any more."""
        try:
            while self._unsent:
                del self._unsent[: self.line.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self._unsent.clear()
            self.kill()
            return False
        return True

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
        how = "ended" if self._code is None else how_it_ended(self._code)
        ended = f"its process {how} after {self._clock.steady() - self._began:.1f} s"
        if self._peak <= self._inherited:
            return ended
        return f"{ended}, having used up to {self._peak * _RSS_UNIT / 1_000_000:,.0f} MB of memory"

    def _leave_within(self, grace: float) -> None:
        self.leaving = True
        if not self.killed:
            self.kill_at = min(self.kill_at, self._clock.steady() + grace)

    def _signal(self, number: signal.Signals) -> None:
        """Send a signal to the child and whatever it has started in its process group."""
        if self._popen.returncode is None:  # once it is collected, its process id may be another's
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, number)

    def _send(self, data: bytes) -> bool:
        self._unsent += data
        return self.speak()

    def _start(self) -> None:
        with ExitStack() as theirs, ExitStack() as ours:
            self.line, line = socket.socketpair()
            ours.callback(self.line.close)
            theirs.callback(line.close)
            leash, self._leash = os.pipe()
            ours.callback(os.close, self._leash)
            theirs.callback(os.close, leash)
            self._popen = _start(line.fileno(), leash)
            ours.pop_all()
        self.line.setblocking(False)
        _living.add(self)


_living: WeakSet[Process] = WeakSet()

being_born = threading.Lock()
"""Held while there are sockets and pipes that a fork would inherit and not know of."""


def _after_fork() -> None:
    """Let go of them all in a process that the worker has forked, which might outlive it."""
    being_born.release()
    for process in list(_living):
        process.let_go()


os.register_at_fork(before=being_born.acquire, after_in_parent=being_born.release, after_in_child=_after_fork)


def _start(line: int, leash: int) -> subprocess.Popen[bytes]:
    # With our own path, because the program may have been started in another way than the child is; yet with -P, and
    # that path only after our own imports, because a module of the user's may have the name of one that we import.
    path = json.dumps(([entry for entry in sys.path if isinstance(entry, str)], _HOME))
    return subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-P", "-c", _PROGRAM, path, str(line), str(leash), str(os.getpid()), *sys.argv],
        stdin=subprocess.DEVNULL,
        pass_fds=(line, leash),
        start_new_session=True,
    )
