"""What the garbage collector need not look at."""

from __future__ import annotations

import gc


def settle_in() -> None:
    """Have what is there by now taken for good, by a process that has begun what it is to do for long.

    A full collection walks through every object: the modules of a server alone take it 60 ms, in which no thread does
    anything, a few times a second under load. What was imported is never garbage.
    """
    gc.collect()
    gc.freeze()


def move_out() -> None:
    """Have the collector look at everything again, once that is done: part of it is garbage by now."""
    gc.unfreeze()
