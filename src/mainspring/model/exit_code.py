"""Exit codes of processes, in words."""

from __future__ import annotations

import signal


def how_it_ended(code: int) -> str:
    """Return what *code* says of a process; a negative one is the signal that killed it."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
