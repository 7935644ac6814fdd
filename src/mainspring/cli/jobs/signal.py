"""`mainspring jobs signal`: tell a job what it waits for."""

from __future__ import annotations

from typing import Annotated

import typer

from mainspring.app import DEFAULT_URL
from mainspring.cli.database import client_at
from mainspring.cli.ids import find
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
    told = None if value is None else read(value)
    encoded = encode_result(told, "the value of the signal")
    with client_at(url, team) as client:
        store = client.store
        job = find(client, job_id)
        note(store.record_audit, "job.signal", teams_of([job]), name=name)
        (signal_id,) = client.new_ids(1)
        store.signal(job.id, name, encoded, signal_id)
        state = store.get([job.id])[job.id].state
    if as_json:
        say_json({"id": str(job.id), "signal": name, "value": told, "state": state})
    else:
        say(f"{job.id} {state}")
