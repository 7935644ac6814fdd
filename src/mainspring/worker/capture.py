"""Capture: what Python's logging hears of while an attempt runs is kept with its job, beside what it says itself."""

from __future__ import annotations

import logging
from collections.abc import Callable

from mainspring.errors import InvalidValue, did_you_mean
from mainspring.model.text import shortened
from mainspring.worker.context import JobLog
from mainspring.worker.held import Held, current

DEFAULT_CAPTURE = "info"
_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
_OURS = "mainspring"


def capture_level(wanted: str) -> int | None:
    """Return the level from which on records are kept; None if none are."""
    name = wanted.lower() if isinstance(wanted, str) else ""
    if name not in _LEVELS and name != "off":
        choices = [*_LEVELS, "off"]
        hint = did_you_mean(name, choices)
        raise InvalidValue(f"expected capture_logs to be one of {', '.join(choices)}, got: {shortened(wanted)}{hint}")
    return _LEVELS.get(name)


class Capture(logging.Handler):
    """A handler for the root logger that keeps records of the attempt in whose context they are made.

    It leaves out our own: what a job says by its context is kept already. It takes no lock, so that one job that logs
    does not wait for another.
    """

    def __init__(self, level: int, log_of: Callable[[Held], JobLog | None], *, instead: bool = False) -> None:
        """*log_of* returns None for an attempt that is over, or another's.

        What nobody hears but this handler, Python would have written to stderr if it were not there: so this does, or
        leaves it to whoever keeps it *instead*.
        """
        super().__init__(min(level, logging.WARNING))
        self.kept_from = level
        self._log_of = log_of
        self._instead = instead

    def createLock(self) -> None:  # noqa: N802 - logging's name
        self.lock = None

    def install(self) -> None:
        """Listen to the root logger, unless it does."""
        if self not in logging.root.handlers:
            logging.root.addHandler(self)

    def remove(self) -> None:
        logging.root.removeHandler(self)

    def handle(self, record: logging.LogRecord) -> bool:
        kept = self.filter(record) and self._keep(record)
        if (
            not (kept and self._instead)
            and record.levelno >= logging.WARNING
            and self._is_first()
            and unheard(record.name)
        ):
            _write(record)
        return bool(kept)

    def _keep(self, record: logging.LogRecord) -> bool:
        held = current.get()
        if held is None or record.levelno < self.kept_from or record.name.partition(".")[0] == _OURS:
            return False
        log = self._log_of(held)
        if log is not None:
            log.keep_record(record)
        return log is not None

    def _is_first(self) -> bool:
        """Return whether it is for this one to write, of several workers' in one process."""
        return next((handler for handler in logging.root.handlers if isinstance(handler, Capture)), None) is self


def unheard(name: str) -> bool:
    """Return whether nobody listens to the logger of this *name* but ourselves."""
    logger: logging.Logger | None = logging.getLogger(name)
    while logger is not None:
        if any(not isinstance(handler, Capture) for handler in logger.handlers):
            return False
        logger = logger.parent if logger.propagate else None
    return True


def _write(record: logging.LogRecord) -> None:
    if logging.lastResort is not None and record.levelno >= logging.lastResort.level:
        logging.lastResort.handle(record)
