"""`mainspring worker` and `mainspring up`: run jobs until told to stop."""

from __future__ import annotations

import atexit
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from mainspring.app import Mainspring
from mainspring.cli.apps import find_place, load_app
from mainspring.cli.leave import leave
from mainspring.cli.line import WorkerEnd
from mainspring.cli.log import log_to_stderr
from mainspring.cli.options import DEFAULT_RETENTION, AppName, AppUrl, LogLevel, Retention
from mainspring.cli.output import say, without_passwords
from mainspring.cli.reload import run_reloading
from mainspring.cli.supervisor import Supervisor, keep_alive
from mainspring.cli.values import length, level, weights
from mainspring.errors import InvalidValue
from mainspring.model.text import counted
from mainspring.node import DEFAULT_GRACE, Node, NodeSettings, run_until_signalled
from mainspring.worker.worker import COROUTINES

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
Reload = Annotated[bool, typer.Option("--reload", help="Start again when the code changes, for development.")]

_EXAMPLE = """\
from mainspring import Mainspring

app = Mainspring()

@app.task
def greet(name: str) -> str:
    return f"Hello, {name}!"
"""


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """What the command line asks of a worker."""

    app: str
    queues: list[str]
    concurrency: int
    lease: str
    grace: str
    retention: str
    url: str | None
    log_level: str

    def again(self) -> list[str]:
        """Return the arguments that start one process of the same kind."""
        options = [
            f"--app={self.app}",
            f"--concurrency={self.concurrency}",
            f"--lease={self.lease}",
            f"--grace={self.grace}",
            f"--retention={self.retention}",
            f"--log-level={self.log_level}",
            *(f"--queues={queues}" for queues in self.queues),
        ]
        return ["worker", "--processes=1", *options, *([] if self.url is None else [f"--url={self.url}"])]

    def settings(self) -> NodeSettings:
        wanted: NodeSettings = {
            "concurrency": self.concurrency,
            "lease": length(self.lease, "--lease"),
            "grace": length(self.grace, "--grace"),
            "retention": length(self.retention, "--retention"),
        }
        queues = weights(self.queues)
        if queues:
            wanted["queues"] = queues
        return wanted

    def folders(self) -> list[Path]:
        """Return where the app's code is."""
        return list(dict.fromkeys((Path.cwd(), find_place(self.app).folder)))


def worker(  # noqa: PLR0913 - one parameter for each option
    app: AppName = None,
    queues: Queues = None,
    concurrency: Concurrency = 8,
    processes: Processes = 1,
    lease: Lease = "15s",
    grace: Grace = DEFAULT_GRACE,
    retention: Retention = DEFAULT_RETENTION,
    url: AppUrl = None,
    reload: Reload = False,
    log_level: LogLevel = "info",
) -> None:
    """Run the jobs of an app.

    It also runs the sweeps that make jobs ready in time, take back those of dead workers, and prune old ones.
    SIGTERM or Ctrl-C lets running jobs end; a second one stops at once.

    Exit code: 0 all that had started was settled, 1 it was not, 2 the worker could not start.
    """
    if not app:
        raise InvalidValue("a worker needs an app; add --app module:name, or set MAINSPRING_APP")
    if reload and processes > 1:
        raise InvalidValue(f"expected --reload with one process, got --processes {processes}")
    wanted = _Wanted(
        app=app,
        queues=queues or [],
        concurrency=concurrency,
        lease=lease,
        grace=grace,
        retention=retention,
        url=url,
        log_level=log_level,
    )
    _run(wanted, processes, reload)


def up(  # noqa: PLR0913 - one parameter for each option
    app: AppName = None,
    queues: Queues = None,
    concurrency: Concurrency = 8,
    lease: Lease = "15s",
    grace: Grace = DEFAULT_GRACE,
    retention: Retention = DEFAULT_RETENTION,
    url: AppUrl = None,
    reload: Reload = False,
    log_level: LogLevel = "info",
) -> None:
    """Run an app with all it needs, in one process.

    Today that is what a worker does: it runs the jobs, and the sweeps that make them ready in time.
    """
    if not app:
        say(_EXAMPLE)
        raise InvalidValue(
            "up needs an app; save the lines above as tasks.py for a start and run `mainspring up --app tasks:app`, "
            'then in another terminal `mainspring enqueue greet "Ada"`'
        )
    worker(app, queues, concurrency, 1, lease, grace, retention, url, reload, log_level)


def _run(wanted: _Wanted, processes: int, reload: bool) -> None:
    settings, log_at, folders = wanted.settings(), level(wanted.log_level), wanted.folders()
    if processes == 1 and not reload:
        _work(wanted, settings, log_at)
    log_to_stderr(log_at, one_of_many=True)
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
    app = load_app(wanted.app, wanted.url)
    log_to_stderr(log_at, one_of_many=line is not None)
    node = _ToldNode(app, settings, line)
    log.info("%s", _about(wanted, app, node))
    if not len(app.tasks):
        log.warning("the app has no tasks, so there is nothing to run; import the modules that hold them")
    # With a supervisor, a service manager's signal comes twice: from it, and passed on.
    settled = run_until_signalled(node, again=line is None)
    if settled:
        log.info("stopped")
    else:
        log.error("stopped, but the database did not take what became of some jobs; they run again after the lease")
    atexit.register(app.close)  # or a SQLite file would be left with its log beside it
    leave(0 if settled else 1)


class _ToldNode(Node):
    """A node that tells its supervisor, if it has one, once it works."""

    def __init__(self, app: Mainspring, settings: NodeSettings, line: WorkerEnd | None) -> None:
        super().__init__(app.client, app.tasks, settings, app.schedules.sync)
        self._line = line
        if line is not None:
            line.at_once = self.stop_now

    def start(self) -> None:
        super().start()
        if self._line is not None:
            self._line.working()


def _about(wanted: _Wanted, app: Mainspring, node: Node) -> str:
    """Return what a worker of *app* is, in one line."""
    queues = [f"{queue}={weight}" if weight > 1 else queue for queue, weight in node.queues.items()]
    tasks = sorted(task.name for task in app.tasks)
    return (
        f"app {wanted.app}, database {without_passwords(app.client.url)}, queues {', '.join(queues)}, "
        f"concurrency {wanted.concurrency}, {counted(len(tasks), 'task')}: {', '.join(tasks)}"
    )
