"""What tests need: of Mainspring itself, and of those who use it."""

from mainspring.testing.clock import SettableClock

__all__ = ["SettableClock"]
