"""`mainspring scheduler`: the sweeps without a worker."""

from __future__ import annotations

import logging
import math
import threading
from contextlib import closing
from datetime import timedelta

from mainspring.app import DEFAULT_URL
from mainspring.cli.log import log_to_stderr
from mainspring.cli.options import DEFAULT_RETENTION, DatabaseUrl, LogFormat, LogLevel, Retention
from mainspring.cli.output import without_passwords
from mainspring.cli.values import length, level, log_format
from mainspring.errors import StoreError
from mainspring.scheduler import Scheduler, prune
from mainspring.service import Loop, close
from mainspring.signals import on_stop_signal
from mainspring.store import Store, open_store
from mainspring.store.database import DUE, FIRE

_LISTEN = 5.0
_LAST_SWEEPS = 20.0
"""Seconds; more than a call to the database may take."""

log = logging.getLogger("mainspring.scheduler")


def scheduler(
    url: DatabaseUrl = DEFAULT_URL,
    retention: Retention = DEFAULT_RETENTION,
    log_level: LogLevel = "info",
    form: LogFormat = "text",
) -> None:
    """Run only the sweeps, which need no app.

    They make jobs ready in time, take back those of dead workers, and prune those that finished long ago.
    Every worker runs them too, and any number may run at the same time.
    """
    kept = prune.retention(length(retention, "--retention"))
    log_to_stderr(level(log_level), log_format(form))
    stopped = threading.Event()
    with on_stop_signal(stopped.set), closing(open_store(url)) as store:
        log.info("sweeping database %s", without_passwords(url))
        _sweep(store, stopped, kept)
    log.info("stopped")


def _sweep(store: Store, stopped: threading.Event, retention: timedelta) -> None:
    sweeps = Scheduler(store, retention)
    listener = store.listen({DUE, FIRE})

    def hear() -> float:
        try:
            sweeps.heard(listener.wait(_LISTEN))
        except StoreError:
            return math.inf  # closed
        return 0

    listen = Loop("listen", hear)
    sweeps.start()
    listen.start()
    stopped.wait()
    listener.close()
    close([listen], _LAST_SWEEPS)
    sweeps.close(_LAST_SWEEPS)
