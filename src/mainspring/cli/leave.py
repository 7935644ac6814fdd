"""The end of a process that has run a user's code."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import suppress
from typing import NoReturn

_PATIENCE = 10.0
"""Seconds for what was registered for the exit; a service manager would wait longer, but kills in the end."""


def leave(code: int) -> NoReturn:
    """End this process with exit code *code*, whatever threads it still has.

    Python would wait for those of a user's pool, or of `asyncio.to_thread`, though their jobs have been settled or
    given back and nobody waits for them any more. What was registered for the exit is called all the same: error
    reporters, measurements of coverage and our log say their last words there.
    """
    threading.Thread(target=_end_in_time, args=(code,), name="mainspring-leave", daemon=True).start()
    atexit._run_exitfuncs()  # noqa: SLF001 - there is no other way, and multiprocessing goes it too
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # broken, closed, or not there
            stream.flush()
    os._exit(code)


def _end_in_time(code: int) -> None:
    threading.Event().wait(_PATIENCE)
    os._exit(code)
