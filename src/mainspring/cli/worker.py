"""`mainspring worker` and `mainspring up`: run jobs until told to stop."""

from __future__ import annotations

import atexit
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from mainspring.app import Mainspring
from mainspring.cli.apps import app_or_sender, find_place
from mainspring.cli.demo import DEMO, open_demo, welcome
from mainspring.cli.leave import leave
from mainspring.cli.line import WorkerEnd
from mainspring.cli.log import log_to_stderr
from mainspring.cli.options import (
    DEFAULT_HOST,
    DEFAULT_PORT,
    DEFAULT_RETENTION,
    AppName,
    AppUrl,
    Host,
    LogFormat,
    LogLevel,
    Port,
    Retention,
)
from mainspring.cli.output import say, without_passwords
from mainspring.cli.reload import run_reloading
from mainspring.cli.supervisor import Supervisor, keep_alive
from mainspring.cli.values import length, level, log_format, ports, weights
from mainspring.errors import InvalidValue
from mainspring.model.text import counted
from mainspring.node import DEFAULT_GRACE, Node, NodeSettings, run_until_signalled
from mainspring.store.open import check_url
from mainspring.worker.capture import DEFAULT_CAPTURE
from mainspring.worker.worker import COROUTINES

if TYPE_CHECKING:
    from mainspring.server import Server

log = logging.getLogger("mainspring")

Queues = Annotated[
    list[str] | None,
    typer.Option(
        "--queues",
        "-q",
        envvar="MAINSPRING_QUEUES",
        metavar="NAME=N,…",
        help="The queues to serve, each with its weight or 1; those of the app's tasks unless given.",
    ),
]
Concurrency = Annotated[
    int,
    typer.Option(
        "--concurrency",
        "-c",
        envvar="MAINSPRING_CONCURRENCY",
        metavar="N",
        help="How many threads run jobs, in each process. Beside them run up to "
        f"{COROUTINES:,} coroutines, and processes: N, or as many as there are cores if those are fewer.",
    ),
]
Processes = Annotated[
    int,
    typer.Option(
        "--processes",
        "-p",
        min=1,
        max=1_000,
        envvar="MAINSPRING_PROCESSES",
        metavar="N",
        help="How many processes to run, each kept alive.",
    ),
]
Lease = Annotated[
    str,
    typer.Option(
        "--lease",
        envvar="MAINSPRING_LEASE",
        metavar="LENGTH",
        help="How long the others wait for a sign of life before they take over what this worker runs.",
    ),
]
Grace = Annotated[
    str,
    typer.Option(
        "--grace",
        envvar="MAINSPRING_GRACE",
        metavar="LENGTH",
        help="How long running jobs may take to end when the worker stops; after that they go back to their queue.",
    ),
]
AllowCommand = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-command",
        envvar="MAINSPRING_ALLOW_COMMANDS",
        metavar="NAME|FOLDER",
        help="A program that jobs of mainspring.command may run, by its name or by the folder that it is in. "
        "None unless given.",
    ),
]
CaptureLogs = Annotated[
    str,
    typer.Option(
        "--capture-logs",
        envvar="MAINSPRING_CAPTURE_LOGS",
        metavar="LEVEL",
        help="From which level on records of Python's logging are kept with the job that made them, or off.",
    ),
]
MetricsPort = Annotated[
    str | None,
    typer.Option(
        "--metrics-port",
        envvar="MAINSPRING_METRICS_PORT",
        metavar="PORT",
        help="Serve metrics for Prometheus on this port, or on the first that is free of 9400-9403. Several processes "
        "take this port and the next ones.",
    ),
]
MetricsHost = Annotated[
    str,
    typer.Option(
        "--metrics-host",
        envvar="MAINSPRING_METRICS_HOST",
        metavar="HOST",
        help="The address to serve metrics on. For any but this host's own, set MAINSPRING_METRICS_TOKEN.",
    ),
]
Reload = Annotated[bool, typer.Option("--reload", help="Start again when the code changes, for development.")]
Demo = Annotated[
    bool,
    typer.Option(
        "--demo",
        help="Run a little shop to look at, in the file mainspring-demo.db unless --url names another database.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """What the command line asks of a worker."""

    app: str | None
    queues: list[str]
    commands: list[str]
    concurrency: int
    lease: str
    grace: str
    retention: str
    url: str | None
    log_level: str
    log_format: str
    capture_logs: str
    metrics_ports: range
    metrics_host: str
    address: tuple[str, int] | None = None  # where the API is served beside the worker
    demo: bool = False  # whether its app is ours, for people to look at

    def again(self) -> list[str]:
        """Return the arguments that start one process of the same kind."""
        options = [
            *(["--demo"] if self.demo else [] if self.app is None else [f"--app={self.app}"]),
            f"--concurrency={self.concurrency}",
            f"--lease={self.lease}",
            f"--grace={self.grace}",
            f"--retention={self.retention}",
            f"--log-level={self.log_level}",
            f"--log-format={self.log_format}",
            f"--capture-logs={self.capture_logs}",
            *(f"--queues={queues}" for queues in self.queues),
            *(f"--allow-command={allowed}" for allowed in self.commands),
        ]
        if self.metrics_ports:
            first, last = self.metrics_ports[0], self.metrics_ports[-1]
            options += [f"--metrics-port={first}-{last}", f"--metrics-host={self.metrics_host}"]
        if self.url is not None:
            options.append(f"--url={self.url}")
        if self.address is None:
            return ["worker", "--processes=1", *options]
        return ["up", f"--host={self.address[0]}", f"--port={self.address[1]}", *options]

    def settings(self) -> NodeSettings:
        wanted: NodeSettings = {
            "concurrency": self.concurrency,
            "lease": length(self.lease, "--lease"),
            "grace": length(self.grace, "--grace"),
            "retention": length(self.retention, "--retention"),
            "capture_logs": self.capture_logs,
        }
        if self.commands:
            wanted["commands"] = self.commands
        queues = weights(self.queues)
        if queues:
            wanted["queues"] = queues
        return wanted

    def folders(self) -> list[Path]:
        """Return where the app's code is."""
        return list(dict.fromkeys((Path.cwd(), *([] if self.app is None else [find_place(self.app).folder]))))


def worker(  # noqa: PLR0913 - one parameter for each option
    app: AppName = None,
    queues: Queues = None,
    concurrency: Concurrency = 8,
    processes: Processes = 1,
    lease: Lease = "15s",
    grace: Grace = DEFAULT_GRACE,
    retention: Retention = DEFAULT_RETENTION,
    allow_command: AllowCommand = None,
    url: AppUrl = None,
    reload: Reload = False,
    log_level: LogLevel = "info",
    form: LogFormat = "text",
    capture_logs: CaptureLogs = DEFAULT_CAPTURE,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = "127.0.0.1",
) -> None:
    """Run the jobs of an app.

    It also runs the sweeps that make jobs ready in time, take back those of dead workers, and prune old ones.
    SIGTERM or Ctrl-C lets running jobs end; a second one stops at once.

    Exit code: 0 all that had started was settled, 1 it was not, 2 the worker could not start.
    """
    if not app and not allow_command:
        raise InvalidValue(
            "a worker needs an app; add --app module:name, or set MAINSPRING_APP; or, to run commands and requests "
            "alone, allow some with --allow-command"
        )
    if reload and processes > 1:
        raise InvalidValue(f"expected --reload with one process, got --processes {processes}")
    wanted = _Wanted(
        app=app or None,
        queues=queues or [],
        commands=allow_command or [],
        concurrency=concurrency,
        lease=lease,
        grace=grace,
        retention=retention,
        url=url,
        log_level=log_level,
        log_format=log_format(form),
        capture_logs=capture_logs,
        metrics_ports=ports(metrics_port, processes),
        metrics_host=metrics_host,
    )
    _run(wanted, processes, reload)


def up(  # noqa: PLR0913 - one parameter for each option
    app: AppName = None,
    host: Host = DEFAULT_HOST,
    port: Port = DEFAULT_PORT,
    queues: Queues = None,
    concurrency: Concurrency = 8,
    lease: Lease = "15s",
    grace: Grace = DEFAULT_GRACE,
    retention: Retention = DEFAULT_RETENTION,
    allow_command: AllowCommand = None,
    url: AppUrl = None,
    reload: Reload = False,
    log_level: LogLevel = "info",
    form: LogFormat = "text",
    capture_logs: CaptureLogs = DEFAULT_CAPTURE,
    demo: Demo = False,
) -> None:
    """Run an app with all it needs, in one process: a worker, the sweeps, and the HTTP API.

    Without one it runs requests, and the commands that --allow-command names; with --demo, work to look at.
    """
    if app and demo:
        raise InvalidValue("expected either an app or --demo, got both; leave out --demo, or --app and MAINSPRING_APP")
    wanted = _Wanted(
        app=DEMO if demo else app or None,
        queues=queues or [],
        concurrency=concurrency,
        lease=lease,
        grace=grace,
        retention=retention,
        commands=allow_command or [],
        url=url,
        log_level=log_level,
        log_format=log_format(form),
        capture_logs=capture_logs,
        metrics_ports=range(0),
        metrics_host="127.0.0.1",
        address=(host, port),
        demo=demo,
    )
    _run(wanted, 1, reload)


def _run(wanted: _Wanted, processes: int, reload: bool) -> None:
    settings, log_at, folders = wanted.settings(), level(wanted.log_level), wanted.folders()
    if processes == 1 and not reload:
        _work(wanted, settings, log_at)
    log_to_stderr(log_at, wanted.log_format, one_of_many=True)
    if reload:
        code = run_reloading(wanted.again(), folders)
    else:
        log.info("starting %d worker processes", processes)
        code = Supervisor(wanted.again()).run(keep_alive, processes)
    raise typer.Exit(code)


def _work(wanted: _Wanted, settings: NodeSettings, log_at: int) -> NoReturn:
    line = WorkerEnd.of_this_process()
    if line is not None:
        line.attend(wanted.folders(), length(wanted.grace, "--grace"))
    app = app_or_sender(wanted.app, wanted.url)
    check_url(app.client.url)  # before anything is served
    log_to_stderr(log_at, wanted.log_format, one_of_many=line is not None)
    server = None if wanted.address is None else _server(app, *wanted.address)
    if wanted.demo:
        open_demo(app)
    greeting = welcome(app, None if server is None else server.url) if wanted.demo else None
    node = _ToldNode(app, settings, line, server, greeting)
    _serve_metrics(wanted, app)
    log.info("%s", _about(wanted, app, node))
    if wanted.app is None:
        log.info("no app, so only %s run; for tasks of your own add --app module:name", _builtin(wanted))
    elif not len(app.tasks):
        log.warning("the app has no tasks, so there is nothing to run; import the modules that hold them")
    # With a supervisor, a service manager's signal comes twice: from it, and passed on.
    settled = run_until_signalled(node, again=line is None)
    if settled:
        log.info("stopped")
    else:
        log.error("stopped, but the database did not take what became of some jobs; they run again after the lease")
    atexit.register(app.close)  # or a SQLite file would be left with its log beside it
    leave(0 if settled else 1)


def _serve_metrics(wanted: _Wanted, app: Mainspring) -> None:
    """Serve metrics if they are wanted. A port that is taken, as by a worker that still stops, is no reason to fail."""
    if not wanted.metrics_ports:
        return
    from mainspring.metrics import configured_token, serve  # here, for few workers need a server

    server = serve(app, wanted.metrics_ports, host=wanted.metrics_host, token=configured_token())
    if server is None:
        first = wanted.metrics_ports[0]
        log.error("can't serve metrics on port %d of %s, which is in use; working without", first, wanted.metrics_host)
    else:
        log.info("serving metrics at http://%s:%d/metrics", wanted.metrics_host, server.port)


class _ToldNode(Node):
    """A node that tells its supervisor once it works, or a person, and has a server beside it, where there are such."""

    def __init__(
        self,
        app: Mainspring,
        settings: NodeSettings,
        line: WorkerEnd | None,
        server: Server | None,
        greeting: str | None,
    ) -> None:
        super().__init__(app.client, app.tasks, settings, app.schedules.sync)
        self._line = line
        self._server = server
        self._greeting = greeting
        if line is not None:
            line.at_once = self.stop_now

    def start(self) -> None:
        super().start()
        if self._server is not None:
            self._server.start()
        if self._line is not None:
            self._line.working()
        if self._greeting is not None:
            say(self._greeting, "bold")

    def stop(self) -> bool:
        if self._server is not None:
            self._server.stop()  # before the database is closed that it serves
        return super().stop()


def _server(app: Mainspring, host: str, port: int) -> Server | None:
    """Return what serves the API of *app*; None, with a word about it, where its packages are not installed."""
    try:
        from mainspring.server import Server
    except ModuleNotFoundError as error:
        log.warning("no API is served, because %s is not installed; add it with mainspring[server]", error.name)
        return None
    return Server(app, host, port)


def _builtin(wanted: _Wanted) -> str:
    return "requests and allowed commands" if wanted.commands else "requests"


def _about(wanted: _Wanted, app: Mainspring, node: Node) -> str:
    """Return what a worker of *app* is, in one line."""
    queues = [f"{queue}={weight}" if weight > 1 else queue for queue, weight in node.queues.items()]
    tasks = sorted(task.name for task in app.tasks)
    allowed = f", commands {', '.join(wanted.commands)}" if wanted.commands else ""
    return (
        f"app {wanted.app or '-'}, database {without_passwords(app.client.url)}, queues {', '.join(queues)}, "
        f"concurrency {wanted.concurrency}{allowed}, {counted(len(tasks), 'task')}: {', '.join(tasks)}"
    )
