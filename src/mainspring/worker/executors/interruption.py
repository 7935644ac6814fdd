"""Interruption: an exception, sent into a thread from outside and raised in the midst of what it does."""

from __future__ import annotations

import ctypes
import dis
import os
import sys
import threading
from pathlib import Path
from types import FrameType

from mainspring import store, worker
from mainspring.errors import TimeExpired
from mainspring.worker.durable import Call
from mainspring.worker.execute import call

_CALLS = (call.__code__, Call.perform.__code__)
"""Where a handler, or the function of one of its steps, is called: what lies within is not ours."""

_OURS = tuple(f"{Path(str(package.__file__)).parent}{os.sep}" for package in (store, worker))

_LIBRARY = Path(threading.__file__).parent
_IN_STEPS = (
    "<frozen importlib._bootstrap>",
    threading.__file__,
    *(f"{_LIBRARY / folder}{os.sep}" for folder in ("concurrent", "multiprocessing")),
    *(str(_LIBRARY / file) for file in ("http/cookiejar.py", "queue.py", "tempfile.py")),
)
"""Files of Python's library that take and release locks in steps, between which an exception leaves one locked."""

_LOGGING = f"{_LIBRARY / 'logging'}{os.sep}"
_STEPS_OF_LOGGING = frozenset({"acquire", "release", "_acquireLock", "_releaseLock"})
"""The same in logging. Not all of it: a handler that logs all the time is mostly seen there, waiting for a file."""

_WAIT = threading.Condition.wait.__code__
_STANDING_STILL = {
    step.positions.lineno for step in dis.get_instructions(_WAIT) if step.positions and step.argval == "acquire"
}
"""Lines on which everything waits that does not wait in C. There an exception is expected, and finds all in order."""


class Interruption:
    """One exception, sent into the thread that made this, at most.

    It arrives between two steps of Python code, so not while the thread waits in a call to the system. Because it
    is only one, it has arrived, or never will, by the time that `shut` is over.
    """

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._gate = threading.Lock()
        self._sent = False

    def send(self, stop: BaseException | None) -> None:
        """Have the exception raised if time is up, and if it does no harm now: or else, ask again a little later."""
        if isinstance(stop, TimeExpired) and not self._sent and self._gate.acquire(blocking=False):
            if _may_be_interrupted(sys._current_frames().get(self._thread)):  # noqa: SLF001 - the documented way
                self._sent = True
                _raise_in(self._thread, TimeExpired)
            self._gate.release()

    def shut(self) -> None:
        """Let nothing in any more. Called by the thread itself."""
        self._gate.acquire()  # for good
        if self._sent:
            _raise_in(self._thread, None)  # takes back what has not arrived


def _may_be_interrupted(frame: FrameType | None) -> bool:
    """Return whether an exception could be raised in *frame* without leaving a lock behind that others wait for.

    Of Python's library, only the innermost frame counts: where it has called something else, it is ready for what
    that may raise. Our own parts are nowhere, and neither is the thread before or after the call of the handler.
    """
    if frame is None or _is_amid_steps(frame):
        return False
    while frame is not None and frame.f_code not in _CALLS:
        if frame.f_code.co_filename.startswith(_OURS):
            return False
        frame = frame.f_back
    return frame is not None


def _is_amid_steps(frame: FrameType) -> bool:
    code = frame.f_code
    if code is _WAIT:
        return frame.f_lineno not in _STANDING_STILL
    if code.co_filename.startswith(_LOGGING):
        return code.co_name in _STEPS_OF_LOGGING
    return code.co_filename.startswith(_IN_STEPS)


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    target = ctypes.py_object(kind) if kind is not None else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), target)
