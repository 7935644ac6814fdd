"""`mainspring dead replay`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from mainspring.app import Mainspring
from mainspring.cli.apps import app_at
from mainspring.cli.confirm import confirmed
from mainspring.cli.dead.options import GroupName, Ids, Reason, Yes, chosen_by, note_letters
from mainspring.cli.options import AppName, AppUrl, AsJson, Queue, TaskName, Team
from mainspring.cli.output import counting, say, say_json
from mainspring.cli.values import named_arguments, share
from mainspring.dead import Chosen
from mainspring.documents.dead import replay_document
from mainspring.errors import InvalidValue
from mainspring.model.dead import Replayed
from mainspring.model.rate import rate
from mainspring.model.text import counted

Canary = Annotated[
    int, typer.Option("--canary", min=0, metavar="N", help="How many to try first, before the others follow.")
]
RateText = Annotated[str, typer.Option("--rate", metavar="RATE", help="How fast the others follow: 20/s, 100/m, 5/h.")]
StopAt = Annotated[
    str, typer.Option("--stop-at", metavar="SHARE", help="Stop when more than this share fails again: 0.2 or 20%.")
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="An argument to change in each job, as JSON or else as text; any number. Checked if --app is named.",
    ),
]

_STOPPED = 1


def replay(  # noqa: PLR0913 - one parameter for each option
    group: GroupName = None,
    ids: Ids = None,
    queue: Queue = None,
    task: TaskName = None,
    canary: Canary = 5,
    rate_text: RateText = "20/s",
    stop_at: StopAt = "20%",
    changes: Changes = None,
    reason: Reason = None,
    yes: Yes = False,
    team: Team = None,
    app: AppName = None,
    url: AppUrl = None,
    as_json: AsJson = False,
) -> None:
    """Run dead letters again: a few first, then the rest, until all have finished or too many fail again.

    It can be interrupted, and run again for the rest. The exit code is 1 when it stopped because of failures. A server
    replays them all at once, which --canary 0 must say.
    """
    patch = named_arguments(changes or [], "--set")
    how = {"canary": canary, "rate": rate(rate_text, "--rate"), "stop_at": share(stop_at, "--stop-at"), "patch": patch}
    with app_at(url, app, team) as found:
        if not isinstance(found, Mainspring) and (canary or patch):
            raise InvalidValue(
                "a server replays dead letters all at once, without trying a few first or changing their arguments: "
                "say so by --canary 0, or name the database itself by --url"
            )
        chosen, count = chosen_by(found, group, ids, queue, task)
        deed = f"replay {counted(count, 'dead letter')}"
        if count and not ids and not yes and not confirmed(deed, as_json):
            say("Nothing was changed.")
            return
        report = Replayed(found=count)
        if count:
            note_letters(found, "replay", chosen, count, reason)
            if isinstance(found, Mainspring):
                report = _tried(found, chosen, count, {**how, "reason": reason}, as_json)
            else:
                report = Replayed(found=count, replayed=found.dead.replay(reason=reason, **chosen))
    _say(report, as_json)
    if report.stopped:
        raise typer.Exit(_STOPPED)


def _tried(app: Mainspring, chosen: Chosen, count: int, how: dict[str, Any], as_json: bool) -> Replayed:
    """Replay a few, and the rest if these succeed; show how far it is."""
    if not as_json and not app.client.store.sessions():
        say("No worker is alive; this goes on once there is one.", "yellow")
    with counting("Replay jobs", count, quiet=as_json) as advance:
        return app.dead.replay(progress=_finished(advance), **how, **chosen)


def _finished(advance: Callable[[int], None]) -> Callable[[Replayed], None]:
    """Return what tells a bar how many jobs have finished since it was told last."""
    told = 0

    def progress(report: Replayed) -> None:
        nonlocal told
        finished = report.replayed - report.unfinished
        advance(finished - told)
        told = finished

    return progress


def _say(report: Replayed, as_json: bool) -> None:
    if as_json:
        say_json(replay_document(report))
        return
    if not report.found:
        say("No dead letter is like that.")
        return
    came_of_it = [(report.succeeded, "succeeded"), (report.failed, "failed again"), (report.cancelled, "cancelled")]
    came_of_it += [(report.unfinished, "not finished yet"), (report.left, "left")]
    parts = ", ".join(f"{number:,} {what}" for number, what in came_of_it if number)
    say(f"Replayed {counted(report.replayed, 'job')}: {parts}.")
    if report.stopped:
        say(f"Stopped, because {report.stopped}.", "bold red")
