"""What is kept of an exception."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from types import CodeType, TracebackType

from mainspring.model.failure import Failure
from mainspring.model.fingerprint import fingerprint
from mainspring.model.retry import leaves
from mainspring.model.text import cut

_OURS = str(Path(__file__).parents[1])
_DEMO = str(Path(__file__).parents[1] / "demo.py")  # which stands for an app of a user's
_LIBRARIES = tuple({_OURS, *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))})
_LONGEST = 20_000
_DEEPEST = 50
_MOST_SHOWN = 10

Redact = Callable[[str], str]
"""Returns a text without what must not be kept."""


def failure_of(error: BaseException, task: str, redact: Redact = str) -> Failure:
    """Return what is kept of *error*, whatever it does when it is asked about itself.

    A group has the fingerprint of its first exception: what went wrong is the same, whoever gathered it. What it says
    goes through *redact*, before any of it is left out: half a secret would not be found.
    """
    cause = next(leaves(error), error)
    return Failure(
        type=_kind(error),
        message=_message(error, redact),
        traceback=traceback_of(error, redact),
        fingerprint=fingerprint(task, _kind(cause), _message(cause, redact), _where(cause.__traceback__)),
    )


def traceback_of(error: BaseException, redact: Redact = str) -> str:
    """Return the traceback of *error*, and for a group those of the first few exceptions in it."""
    parts = [_traceback(error, redact)]
    if isinstance(error, BaseExceptionGroup):
        parts += [f"in which there was:\n\n{_traceback(leaf, redact)}" for leaf in islice(leaves(error), _MOST_SHOWN)]
    return "\n\n".join(parts)


def _kind(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _message(error: BaseException, redact: Redact) -> str:
    """Return what *error* says; of a group, which says nothing but how many are in it, also what its first says."""
    try:
        text = str(error)
        if isinstance(error, BaseExceptionGroup):
            first = next(leaves(error))
            text = f"{text}: {_kind(first)}: {_message(first, redact)}"
        return cut(redact(text), _LONGEST)
    except Exception:  # noqa: BLE001 - a __str__ that fails must not hide that there was an error
        return f"an exception of type {type(error).__qualname__} that can't be shown"


def _traceback(error: BaseException, redact: Redact) -> str:
    """Return the traceback of one exception without our own frames on top, and with its message as it is kept."""
    try:
        lines = traceback.format_tb(_beyond_ours(error.__traceback__), limit=-_DEEPEST)
        causes, notes = _causes(error, redact), _notes(error, redact)
    except Exception:  # noqa: BLE001 - half a record beats none
        lines, causes, notes = [], "", ""
    said = f"{_kind(error)}: {_message(error, redact)}{notes}"
    return f"{causes}Traceback (most recent call last):\n{redact(''.join(lines))}{said}"


def _notes(error: BaseException, redact: Redact) -> str:
    """Return what was added to *error* while it passed by, each note on a line of its own."""
    notes = getattr(error, "__notes__", ())
    return "".join(f"\n{cut(redact(str(note)), _LONGEST)}" for note in notes[:_DEEPEST])


def _causes(error: BaseException, redact: Redact) -> str:
    """Return the exceptions that led to *error*, oldest first, each in one line."""
    found: list[str] = []
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    while cause is not None and len(found) < _DEEPEST:
        found.append(f"{_kind(cause)}: {_message(cause, redact)}\n\nwhich led to:\n\n")
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return "".join(reversed(found))


def _beyond_ours(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and _is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return trace


def _is_ours(file: str) -> bool:
    return file.startswith(_OURS) and file != _DEMO


def _where(trace: TracebackType | None) -> str:
    """Return the deepest place in the user's own code; a library's place says little about the cause."""
    deepest, own = "", ""
    while trace is not None:
        code = trace.tb_frame.f_code
        deepest = _place(code, trace)
        if code.co_filename == _DEMO or not code.co_filename.startswith(_LIBRARIES):
            own = deepest
        trace = trace.tb_next
    return own or deepest


def _place(code: CodeType, trace: TracebackType) -> str:
    return f"{trace.tb_frame.f_globals.get('__name__', '?')}.{code.co_qualname}"
