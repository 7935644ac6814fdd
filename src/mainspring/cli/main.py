"""The program: its commands, and what becomes of an error.

A mistake of the user ends in one sentence on stderr and exit code 2, what is missing in exit code 1.
Anything unexpected is a bug of ours and shows its traceback: the plain one, because one with local variables would
print passwords.
"""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import Annotated, Any, NoReturn

import typer

import mainspring
from mainspring.cli.alerts.commands import alerts
from mainspring.cli.audit.commands import audit
from mainspring.cli.bench import bench
from mainspring.cli.breakers.commands import breakers
from mainspring.cli.dead.commands import dead
from mainspring.cli.doctor import doctor
from mainspring.cli.enqueue import enqueue
from mainspring.cli.group import MISTAKE, Group
from mainspring.cli.jobs.commands import jobs
from mainspring.cli.limits.commands import limits
from mainspring.cli.migrate import migrate
from mainspring.cli.notifications.commands import notifications
from mainspring.cli.output import complain, say
from mainspring.cli.prune import prune
from mainspring.cli.queues.commands import queues
from mainspring.cli.retention.commands import retention
from mainspring.cli.scheduler import scheduler
from mainspring.cli.schedules.commands import schedules
from mainspring.cli.secrets.commands import secrets
from mainspring.cli.server import server
from mainspring.cli.settings import settings
from mainspring.cli.tasks.commands import tasks
from mainspring.cli.teams.commands import teams
from mainspring.cli.tokens.commands import tokens
from mainspring.cli.top.command import top
from mainspring.cli.why import why
from mainspring.cli.worker import up, worker
from mainspring.cli.workers import workers
from mainspring.cli.workflows.commands import workflows
from mainspring.errors import MainspringError, NotFound, TaskNotFound

NOT_FOUND = 1
INTERRUPTED = 130
UNHEARD = 141
"""As of whom SIGPIPE has killed, which Python ignores: those who read on had seen enough."""

_ORDER = (
    "up",
    "worker",
    "scheduler",
    "server",
    "top",
    "enqueue",
    "jobs",
    "why",
    "workflows",
    "dead",
    "schedules",
    "queues",
    "limits",
    "breakers",
    "alerts",
    "notifications",
    "secrets",
    "tasks",
    "workers",
    "teams",
    "tokens",
    "audit",
    "retention",
    "prune",
    "migrate",
    "doctor",
    "settings",
    "bench",
)


class Commands(Group):
    """The commands of `mainspring`, and the one place where errors become exit codes."""

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        try:
            code = super().main(*args, **{**kwargs, "standalone_mode": False})
        except MainspringError as error:
            complain(str(error))
            # A task that the program lacks was named wrongly; what the database lacks may have been there before.
            code = MISTAKE if isinstance(error, TaskNotFound) or not isinstance(error, NotFound) else NOT_FOUND
        except (typer.Abort, KeyboardInterrupt):
            code = INTERRUPTED
        except SystemExit as ended:
            if not isinstance(ended.__context__, BrokenPipeError):
                raise
            code = UNHEARD  # typer and rich would say 1, each in its own way
        except Exception as error:
            # Which class a usage error has differs between versions of typer; that it can explain itself does not.
            if not hasattr(error, "format_message"):
                raise
            complain(_as_sentence(error.format_message()))
            code = MISTAKE
        sys.exit(code)

    def list_commands(self, ctx: Any) -> list[str]:
        # typer would put all groups after all commands.
        return sorted(super().list_commands(ctx), key=_ORDER.index)


app = typer.Typer(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
)
app.command(rich_help_panel="Run")(up)
app.command(rich_help_panel="Run")(worker)
app.command(rich_help_panel="Run")(scheduler)
app.command(rich_help_panel="Run")(server)
app.command(rich_help_panel="Jobs")(top)
app.command(rich_help_panel="Jobs")(enqueue)
app.add_typer(jobs, name="jobs", rich_help_panel="Jobs")
app.command(rich_help_panel="Jobs")(why)
app.add_typer(workflows, name="workflows", rich_help_panel="Jobs")
app.add_typer(dead, name="dead", rich_help_panel="Jobs")
app.add_typer(schedules, name="schedules", rich_help_panel="Jobs")
app.add_typer(queues, name="queues", rich_help_panel="Jobs")
app.add_typer(limits, name="limits", rich_help_panel="Jobs")
app.add_typer(breakers, name="breakers", rich_help_panel="Jobs")
app.add_typer(alerts, name="alerts", rich_help_panel="Jobs")
app.add_typer(secrets, name="secrets", rich_help_panel="Jobs")
app.add_typer(notifications, name="notifications", rich_help_panel="Jobs")
app.add_typer(tasks, name="tasks", rich_help_panel="Jobs")
app.command(rich_help_panel="Jobs")(workers)
app.add_typer(teams, name="teams", rich_help_panel="People")
app.add_typer(tokens, name="tokens", rich_help_panel="People")
app.add_typer(audit, name="audit", rich_help_panel="People")
app.add_typer(retention, name="retention", rich_help_panel="Database")
app.command(rich_help_panel="Database")(prune)
app.command(rich_help_panel="Database")(migrate)
app.command(rich_help_panel="Database")(doctor)
app.command(rich_help_panel="Machine")(settings)
app.command(rich_help_panel="Machine")(bench)


@app.callback(invoke_without_command=True)
def _program(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Background jobs, cron schedules and workflows on SQLite or PostgreSQL."""
    if version:
        say(f"mainspring {mainspring.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        say(context.get_help())
        raise typer.Exit(MISTAKE)


def run() -> NoReturn:
    """Run the program on the arguments of this process."""
    if isinstance(sys.stdout, TextIOWrapper):
        # A file name that the terminal's encoding lacks must not end in a traceback.
        sys.stdout.reconfigure(errors="backslashreplace")
    app(prog_name="mainspring")
    raise AssertionError("the program ends by exiting")


def _as_sentence(message: str) -> str:
    return f"{message[:1].lower()}{message[1:].rstrip('.')}"
