"""Workers in processes of their own: started, kept alive, and stopped together.

Each is the same command for one process, started anew and not forked. Signals from a terminal reach the supervisor
alone, for the workers have process groups of their own. The first is passed on, and asks them to end what they have
started; the second has them told over the line to stop at once; the third kills them.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from mainspring.cli.line import VARIABLE, SupervisorEnd
from mainspring.clock import SystemClock
from mainspring.model.exit_code import how_it_ended
from mainspring.signals import on_stop_signal

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds before a worker that died is started again; they double from death to death."""

HEALTHY = 60.0
"""A worker that lived as many seconds was well; the next pause is short again."""

_LOOK = 0.5

log = logging.getLogger("mainspring.supervisor")


class Child:
    """One worker process, and the line to it."""

    def __init__(self, command: Sequence[str], *, speaks: bool) -> None:
        ours, theirs = socket.socketpair()
        self.line = SupervisorEnd(ours)
        try:
            self._process = _start(command, theirs, speaks)
        except OSError:
            self.line.close()
            raise
        finally:
            theirs.close()
        self.pid = self._process.pid

    def hear(self) -> bool:
        """Take note of what it says within a moment; return False once it is dead, or has closed its end of the line.

        The line alone would not do as a sign of life: a process that it has left behind may keep it open.
        """
        dead = self._process.poll() is not None  # asked first, so that its last words are heard
        return self.line.hear(0 if dead else _LOOK) and not dead

    def stop(self) -> None:
        # Not SIGINT: one that is still starting would show the traceback of an interrupted import.
        self._process.terminate()

    def stop_at_once(self) -> None:
        self.line.stop_at_once()

    def kill(self) -> None:
        self._process.kill()

    def wait(self) -> int:
        """Return the exit code once it has ended; a negative one is the signal that killed it."""
        code = self._process.wait()
        self.line.close()
        return code


_REQUESTS = (
    ("stopping: what has started may end; another signal stops at once", Child.stop),
    ("stopping at once; another signal kills what does not", Child.stop_at_once),
    ("killing what does not stop", Child.kill),
)


class Supervisor:
    """Starts workers for its keepers, and passes signals on to them."""

    def __init__(self, command: Sequence[str], *, speak: bool = False) -> None:
        """*speak* has the workers say which files they were made of."""
        self._command = command
        self._speak = speak
        self._lock = threading.Lock()
        self._children: set[Child] = set()
        self._asked = 0
        self._news: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._keepers = 0
        self._code = 0
        self.stopping = threading.Event()
        self.worked = False  # whether a worker ever has

    def run(self, keep: Callable[[Supervisor], None], processes: int = 1) -> int:
        """Run *keep* for each of *processes* until all have returned, and return the exit code.

        The first begins alone, and the others when a worker works: so what is wrong with all of them is said once.
        """
        others = processes - 1
        with on_stop_signal(lambda: self._news.put(self._ask)):
            self._start(keep)
            while self._keepers:
                self._news.get()()
                while others and self.worked and not self.stopping.is_set():
                    self._start(keep)
                    others -= 1
        return self._code

    def spawn(self) -> Child | None:
        """Start a worker; None when there are to be no more."""
        with self._lock:
            if self.stopping.is_set():
                return None
            child = Child(self._command, speaks=self._speak)
            self._children.add(child)
            return child

    def has_worked(self) -> None:
        """Take note that a worker works. Called by any thread."""
        self.worked = True
        self._news.put(lambda: None)

    def give_up(self, code: int) -> None:
        """Start no more workers, and have `run` return *code*. Called by any thread."""
        self._code = code
        self.stopping.set()

    def ended(self, child: Child) -> int:
        """Wait until *child* has ended, and return its exit code."""
        code = child.wait()
        with self._lock:
            self._children.discard(child)
        # One that SIGTERM kills was not yet ready to hear it, and so had started nothing.
        if self.stopping.is_set() and code not in (0, -signal.SIGTERM):
            log.warning("worker process %d %s while it stopped", child.pid, how_it_ended(code))
            self._code = 1
        return code

    def _start(self, keep: Callable[[Supervisor], None]) -> None:
        self._keepers += 1
        threading.Thread(target=self._keep, args=(keep,), name="mainspring-keeper", daemon=True).start()

    def _keep(self, keep: Callable[[Supervisor], None]) -> None:
        try:
            keep(self)
        finally:
            self._news.put(self._keeper_ended)

    def _keeper_ended(self) -> None:
        self._keepers -= 1

    def _ask(self) -> None:
        sentence, request = _REQUESTS[min(self._asked, 2)]
        log.info("%s", sentence)
        self._asked += 1
        with self._lock:
            self.stopping.set()
            for child in self._children:
                request(child)


def keep_alive(supervisor: Supervisor) -> None:
    """Have one worker at all times: when it dies, start another after a pause that grows with every death."""
    clock = SystemClock()
    pause = FIRST_PAUSE
    while not supervisor.stopping.is_set():
        began = clock.steady()
        how = _one_life(supervisor)
        if clock.steady() - began >= HEALTHY:
            pause = FIRST_PAUSE
        if not supervisor.stopping.is_set():
            log.warning("%s; starting another in %g s", how, pause)
            supervisor.stopping.wait(pause)
        pause = min(LONGEST_PAUSE, pause * 2)


def _one_life(supervisor: Supervisor) -> str:
    """Start a worker, and return how it ended."""
    try:
        child = supervisor.spawn()
    except OSError as error:
        return f"no worker process could be started ({error.strerror})"
    if child is None:
        return "stopping"
    while not child.line.working and child.hear():
        pass
    if child.line.working:
        supervisor.has_worked()
    code = supervisor.ended(child)
    if not supervisor.worked and not supervisor.stopping.is_set():
        supervisor.give_up(code if code > 0 else 1)  # it has said why; another would say the same
    return f"worker process {child.pid} {how_it_ended(code)}"


def _start(command: Sequence[str], line: socket.socket, speaks: bool) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own program
        # With -P, because a module of the user's in this folder may have the name of one that we import.
        [sys.executable, "-P", "-m", "mainspring", *command],
        env=os.environ | {VARIABLE: f"{line.fileno()}{'+' if speaks else ''}"},
        # Whoever reads from a terminal out of a process group that is not in front is stopped.
        stdin=subprocess.DEVNULL,
        pass_fds=[line.fileno()],
        process_group=0,
    )
