"""`mainspring server`: the HTTP API without a worker."""

from __future__ import annotations

import logging
import threading
from contextlib import closing

from mainspring.cli.apps import app_or_sender
from mainspring.cli.log import log_to_stderr
from mainspring.cli.options import DEFAULT_HOST, DEFAULT_PORT, AppName, AppUrl, Host, LogFormat, LogLevel, Port
from mainspring.cli.output import without_passwords
from mainspring.cli.values import level, log_format
from mainspring.errors import MainspringError
from mainspring.signals import on_stop_signal
from mainspring.store.open import check_url

log = logging.getLogger("mainspring")


def server(
    app: AppName = None,
    host: Host = DEFAULT_HOST,
    port: Port = DEFAULT_PORT,
    url: AppUrl = None,
    log_level: LogLevel = "info",
    form: LogFormat = "text",
) -> None:
    """Serve the HTTP API.

    With an app the arguments of jobs are checked against its tasks. Without one any task may be named, and whether it
    is known shows when a worker takes the job.
    """
    log_to_stderr(level(log_level), log_format(form))
    try:
        from mainspring.server import Server
    except ModuleNotFoundError as error:
        raise MainspringError(
            f"the server needs {error.name}, which is not installed; add mainspring[server]"
        ) from None
    stopped = threading.Event()
    with on_stop_signal(stopped.set), closing(app_or_sender(app, url)) as found:
        check_url(found.client.url)  # nobody else would: a database that is not there yet may come
        serving = Server(found, host, port)
        log.info("database %s", without_passwords(found.client.url))
        serving.start()
        stopped.wait()
        log.info("stopping: requests may end")
        serving.stop()
    log.info("stopped")
