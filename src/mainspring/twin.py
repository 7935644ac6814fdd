"""Awaitable twins: the same call, made on a thread, for callers that must not block their loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def twin(call: Callable[P, T]) -> Callable[P, Awaitable[T]]:
    """Return *call* as a coroutine function."""

    @wraps(call)
    async def awaited(*args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(call, *args, **kwargs)

    return awaited
