"""Sweeps that any number of nodes may run at the same time."""

from mainspring.scheduler.scheduler import Scheduler

__all__ = ["Scheduler"]
