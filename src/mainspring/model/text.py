"""Text as it can be stored, and as it can be shown."""

from __future__ import annotations


def storable(text: str) -> str:
    """Return *text* with what no database takes, NUL and lone surrogates, written as escapes.

    For text that tells what happened, such as an error message: half of it beats none, and it must never be the
    reason that an outcome can't be recorded.
    """
    return text.replace("\0", "\\x00").encode(errors="backslashreplace").decode()


def shortened(value: object, limit: int = 60) -> str:
    """Return the repr of *value*, cut to *limit* characters, for use in a message."""
    try:
        text = storable(repr(value))
    except Exception:  # noqa: BLE001 - a __repr__ that fails, in whatever way, must not hide what is wrong
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
