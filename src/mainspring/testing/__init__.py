"""What tests need: of Mainspring itself, and of those who use it. `docs/testing.md` shows how."""

from mainspring.testing.clock import SettableClock
from mainspring.testing.drain import adrain, drain
from mainspring.testing.enqueued import EnqueuedCall, assert_enqueued, enqueued
from mainspring.testing.isolated import isolated

__all__ = ["EnqueuedCall", "SettableClock", "adrain", "assert_enqueued", "drain", "enqueued", "isolated"]
