"""The launcher of a command: its parent for as long as it, or anything that it has started, lives.

A program of its own, started by its file and with nothing but Python's library, because a worker has threads, and a
process with threads must not fork and then do anything but exec. It has one thread, and does between fork and exec what
the command needs: limits, a session of its own, no way to more rights.

It is the subreaper of all that comes of the command: whoever loses his parent becomes its child, whatever sessions and
forks lie in between. So when it has no children left, nothing of the command is left.

The worker speaks in lines of JSON: the order first, then `stop`, `continue` and `end`. When it hangs up or dies, all is
killed.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Any, NoReturn

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 36, 38
_RESOURCES = {
    "cpu": resource.RLIMIT_CPU,
    "memory": resource.RLIMIT_AS,
    "files": resource.RLIMIT_NOFILE,
    "processes": resource.RLIMIT_NPROC,
    "file_size": resource.RLIMIT_FSIZE,
}
_CHUNK = 65_536
_MOST_PASSES = 100
_LIBC = ctypes.CDLL(None, use_errno=True)


class Launcher:
    """Starts one command, and sees to its end."""

    def __init__(self, line: int, worker: int) -> None:
        self._line = line
        self._worker = worker
        self._heard = b""
        self._main = 0
        self._status: int | None = None
        self._kill_at: float | None = None

    def run(self, streams: tuple[int, int]) -> None:
        """Do all that there is to do, from the order to the last word."""
        bell = _watch_children()
        order = self._order()
        try:
            self._main = self._start(order, streams)
            if self._main:
                for stream in streams:
                    os.close(stream)
                self._say(said="started", pid=self._main)
                self._wait(bell)
        finally:
            self._kill_all()
            if not order["cwd"]:
                _remove(order["folder"])
        if self._status is not None:
            self._say(said="ended", code=os.waitstatus_to_exitcode(self._status), **_used())

    def _order(self) -> dict[str, Any]:
        while b"\n" not in self._heard:
            if not self._hear():
                sys.exit(1)
        line, _, self._heard = self._heard.partition(b"\n")
        order: dict[str, Any] = json.loads(line)
        return order

    def _start(self, order: dict[str, Any], streams: tuple[int, int]) -> int:
        """Return the id of the command's process; 0, having said why, if it could not be started."""
        if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
            self._refuse("this system does not tell whose child a process is, so none could be ended")
            return 0
        try:
            pid, trouble = _fork(order, streams)
        except OSError as error:
            self._refuse(error.strerror or str(error), error.errno or 0)
            return 0
        if not trouble:
            return pid
        os.waitpid(pid, 0)
        number, _, why = trouble.partition(" ")
        self._refuse(why, int(number))
        return 0

    def _refuse(self, why: str, number: int = 0) -> None:
        self._say(said="refused", why=why, errno=number)

    def _wait(self, bell: int) -> None:
        """Return when the command has ended by itself, or is to be killed with all that has come of it."""
        poll = select.poll()
        poll.register(self._line, select.POLLIN)
        poll.register(bell, select.POLLIN)
        self._obey()  # what came with the order, and so rings no bell any more
        while self._status is None:
            left = None if self._kill_at is None else max(0.0, self._kill_at - time.monotonic())
            events = dict(poll.poll(None if left is None else left * 1_000 + 1))
            if bell in events:
                os.read(bell, _CHUNK)
            self._reap()
            alone = os.getppid() != self._worker or (self._line in events and not self._hear())
            self._obey()
            if alone or (self._kill_at is not None and time.monotonic() >= self._kill_at):
                return

    def _hear(self) -> bool:
        """Take note of what the worker says; return False when it has hung up, or died without having listened."""
        try:
            data = os.read(self._line, _CHUNK)
        except OSError:
            return False
        self._heard += data
        return bool(data)

    def _obey(self) -> None:
        """Do what the worker has said."""
        *lines, self._heard = self._heard.split(b"\n")
        for line in lines:
            order = json.loads(line)
            if order["do"] == "stop":
                _freeze()
            elif order["do"] == "continue":
                _signal_all(signal.SIGCONT)
            else:
                _signal_all(signal.SIGTERM)
                _signal_all(signal.SIGCONT)  # or one that stands still would never hear of it
                end = time.monotonic() + order["grace"]
                self._kill_at = end if self._kill_at is None else min(end, self._kill_at)

    def _reap(self, options: int = os.WNOHANG) -> bool:
        """Collect who has ended; return False when there is nobody left to collect, now or ever."""
        try:
            while True:
                pid, status = os.waitpid(-1, options)
                if pid == self._main:
                    self._status = status
                if pid == 0 or options == 0:
                    return True
        except ChildProcessError:
            return False

    def _kill_all(self) -> None:
        """Kill what is left until nothing is. Stopped first, so that none can make others faster than it dies."""
        while self._reap():
            _freeze()
            _signal_all(signal.SIGKILL)
            self._reap(0)

    def _say(self, **words: object) -> None:
        with suppress(OSError):  # the worker is gone
            os.write(self._line, json.dumps(words).encode() + b"\n")


def _fork(order: dict[str, Any], streams: tuple[int, int]) -> tuple[int, str]:
    """Return the id of the process that becomes the command, and what its trouble is if it does not."""
    cwd = order["cwd"] or order["folder"]
    if not order["cwd"]:
        os.mkdir(cwd, 0o700)
    ear, mouth = os.pipe()
    source = _source(order["stdin"])
    launcher = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(ear)
        _become(order, cwd, (source, *streams), mouth, launcher)
    os.close(mouth)
    os.close(source)
    with os.fdopen(ear, "rb") as trouble:
        return pid, trouble.read().decode(errors="replace")


def _become(order: dict[str, Any], cwd: str, streams: tuple[int, ...], mouth: int, launcher: int) -> NoReturn:
    """Turn this process, which was forked for it, into the command; or say why not, and end."""
    try:
        os.setsid()
        os.umask(0o077)
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != launcher:
            os._exit(127)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        _enter(cwd)
        for number in range(1, signal.NSIG):
            _reset(number)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        _limit(order["limits"])
        env = order["env"] if order["cwd"] else {"TMPDIR": cwd, **order["env"]}
        os.execve(  # noqa: S606 - which is what this is for
            order["path"].encode(),
            [argument.encode() for argument in order["argv"]],
            {name.encode(): value.encode() for name, value in env.items()},
        )
    except BaseException as error:  # noqa: BLE001 - whatever it is, the parent must hear of it, and we must end here
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        os.write(mouth, f"{getattr(error, 'errno', None) or 0} {why}".encode())
    finally:
        os._exit(127)


def _enter(folder: str) -> None:
    try:
        os.chdir(folder)
    except OSError as error:  # whose words alone would be taken for the program's
        raise OSError(f"its folder {folder} can't be entered: {error.strerror}") from None


def _limit(limits: dict[str, int]) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name, value in limits.items():
        _, most = resource.getrlimit(_RESOURCES[name])
        soft = value if most == resource.RLIM_INFINITY else min(value, most)
        # One second more before it is killed, so that the signal which says why comes first.
        hard = soft + 1 if name == "cpu" and most == resource.RLIM_INFINITY else soft
        resource.setrlimit(_RESOURCES[name], (soft, hard))


def _reset(number: int) -> None:
    with suppress(OSError, ValueError):  # it can't be changed, and so has not been
        signal.signal(number, signal.SIG_DFL)


def _source(text: str | None) -> int:
    """Return what the command reads: *text*, or nothing."""
    if text is None:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    source = os.memfd_create("stdin")
    data = memoryview(text.encode())
    while data:
        data = data[os.write(source, data) :]
    os.lseek(source, 0, os.SEEK_SET)
    return source


def _freeze() -> None:
    """Stop all that has come of the command, until nobody turns up who was made before his parent stood still."""
    stopped: set[int] = set()
    for _ in range(_MOST_PASSES):
        found = _signal_all(signal.SIGSTOP)
        if found <= stopped:
            return
        stopped |= found


def _signal_all(number: int) -> set[int]:
    """Send a signal to all that has come of this process, each as soon as it is found, and return their ids.

    One that forks and ends all the time has another id a moment later, so there is none to lose; and a parent that has
    been stopped makes no children while we look for them.
    """
    found: set[int] = set()
    left = [os.getpid()]
    while left:
        for child in _children(left.pop()):
            if child not in found:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(child, number)
                found.add(child)
                left.append(child)
    return found


def _children(pid: int) -> list[int]:
    """Return the children of all threads of a process; none if it has ended."""
    children: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                children += map(int, file.read().split())
    return children


def _used() -> dict[str, object]:
    """Return what the command and all that came of it have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    words: dict[str, object] = {"cpu": round(used.ru_utime + used.ru_stime, 3)}
    # A forked process counts what its parent had used as its own, until it has used more itself.
    if used.ru_maxrss > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss:
        words["rss"] = used.ru_maxrss * 1024
    return words


def _remove(folder: str) -> None:
    try:
        os.rmdir(folder)  # most leave nothing, and the import costs more than all the rest
    except FileNotFoundError:
        pass
    except OSError:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


def _watch_children() -> int:
    """Return what can be read from as soon as a child has ended, or the worker has died."""
    ear, bell = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(bell, warn_on_full_buffer=False)
    # A service manager that stops everything sends us this too; that says nothing about the worker.
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    return ear


def _prctl(option: int, value: int) -> None:
    if _LIBC.prctl(option, value, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def main() -> None:
    """Launch the command that the worker asks for: our arguments are its end of a line, two streams and its id."""
    line, out, err, worker = (int(argument) for argument in sys.argv[1:])
    for number in (line, out, err):
        os.set_inheritable(number, False)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() == worker:
        Launcher(line, worker).run((out, err))


if __name__ == "__main__":
    main()
