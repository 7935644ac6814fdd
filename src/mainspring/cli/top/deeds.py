"""What the keys do to queues and jobs; each is on record before it is done."""

from __future__ import annotations

from mainspring.cli.apps import App
from mainspring.cli.jobs.told import told, told_again
from mainspring.cli.note import note, teams_of
from mainspring.cli.top.screen import Deed
from mainspring.errors import MainspringError


def do(app: App, deed: Deed) -> str:
    """Do it, and return in a sentence what came of it."""
    try:
        return _rule(app, deed) if deed.place.kind == "queue" else _act(app, deed)
    except MainspringError as error:
        return f"Could not {deed}: {error}."


def _rule(app: App, deed: Deed) -> str:
    name = deed.place.key
    note(app, f"queue.{deed.verb}", [name])
    if deed.verb == "pause":
        app.queues.pause(name)
        return f"Queue {name} is paused; what runs goes on."
    app.queues.resume(name)
    return f"Queue {name} goes on."


def _act(app: App, deed: Deed) -> str:
    job = app.job(deed.place.key)
    note(app, f"job.{deed.verb}", teams_of([told(job)]))
    acts = {"pause": job.pause, "resume": job.resume, "cancel": job.cancel, "replay": job.replay}
    acts[deed.verb]()
    after = told_again(job)
    return f"{deed.label} is {after.state}." if after.wish is None else f"{deed.label} was asked to {after.wish}."
