"""Kinds of arguments that built-in tasks share; jobs of theirs are checked when they are enqueued."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Length = Annotated[float, Meta(gt=0)] | Annotated[str, Meta(pattern=r"^\s*(\d+(\.\d+)?\s*(ms|[smhdw])\s*)+$")]
"""A length of time: seconds, or text such as `90s` or `1h30m`."""

Attempts = Annotated[int, Meta(ge=1, le=100)]
