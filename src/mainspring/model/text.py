"""Text as it can be stored, and as it can be shown."""

from __future__ import annotations

from hashlib import blake2b

from mainspring.errors import InvalidValue

_LONGEST_KEY = 200


def storable(text: str) -> str:
    """Return *text* with what no database takes, NUL and lone surrogates, written as escapes.

    For text that tells what happened, such as an error message: half of it beats none, and it must never be the
    reason that an outcome can't be recorded.
    """
    return text.replace("\0", "\\x00").encode(errors="backslashreplace").decode()


def cut(text: str, limit: int) -> str:
    """Return *text*, of which the middle is left out when it is longer than *limit*: both ends tell the most."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"


def short_key(key: str) -> str:
    """Return *key* in a form that any database can find quickly, the same for the same key."""
    key = storable(key)
    if len(key) <= _LONGEST_KEY:
        return key
    return f"{key[:_LONGEST_KEY]}…{blake2b(key.encode(), digest_size=16).hexdigest()}"


def check_document(text: str, what: str) -> None:
    """Refuse what is no JSON text: one database would cut it short, and the other refuse it later."""
    if not isinstance(text, str):
        raise InvalidValue(f"expected {what} to be JSON text, got: {shortened(text)}")
    if "\0" in text or not (text.isascii() or storable(text) == text):
        raise InvalidValue(
            f"expected {what} to be JSON text, which has no NUL and no lone surrogate, got: {shortened(text)}"
        )


def said(by: str, reason: str | None, deed: str) -> tuple[str, str | None]:
    """Return who does *deed*, and why if he says so, as it can be stored; refuse what is no text."""
    if not isinstance(by, str) or not by.strip():
        raise InvalidValue(f"expected by to say who {deed}, got: {shortened(by)}")
    if reason is not None and not isinstance(reason, str):
        raise InvalidValue(f"expected reason to be text, got: {shortened(reason)}")
    return storable(by), None if reason is None else storable(reason)


def counted(count: int, noun: str) -> str:
    """Return so many of *noun*: `1 job`, `7 jobs`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def shortened(value: object, limit: int = 60) -> str:
    """Return the repr of *value*, cut to *limit* characters, for use in a message."""
    try:
        text = storable(repr(value))
    except Exception:  # noqa: BLE001 - a __repr__ that fails, in whatever way, must not hide what is wrong
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
