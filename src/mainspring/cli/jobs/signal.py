"""`mainspring jobs signal`: tell a job what it waits for."""

from __future__ import annotations

from typing import Annotated

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.ids import find
from mainspring.cli.jobs.told import told
from mainspring.cli.note import note, teams_of
from mainspring.cli.options import AsJson, JobId, Team, Url
from mainspring.cli.output import say, say_json
from mainspring.cli.values import value as read
from mainspring.model.payload import encode_result

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the signal.")]
Value = Annotated[
    str | None, typer.Argument(metavar="[VALUE]", help="What the job is told with it: JSON, or else the text itself.")
]


def signal(
    job_id: JobId, name: Name, value: Value = None, team: Team = None, url: Url = DEFAULT_URL, as_json: AsJson = False
) -> None:
    """Send a signal to a job: one that waits for it goes on, another finds it when it asks."""
    said = None if value is None else read(value)
    encode_result(said, "the value of the signal")  # which refuses what can't be one, before anything is on record
    with app_at(url, team=team) as app:
        job = find(app, job_id)
        note(app, "job.signal", teams_of([told(job)]), name=name)
        job.signal(name, said)
        state = job.state
    if as_json:
        say_json({"id": str(job.id), "signal": name, "value": said, "state": state})
    else:
        say(f"{job.id} {state}")
