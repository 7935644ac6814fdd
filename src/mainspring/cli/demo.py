"""`mainspring up --demo`: a little shop for newcomers to look at, in a database that nothing else uses."""

from __future__ import annotations

from mainspring.app import Mainspring
from mainspring.cli.output import without_passwords
from mainspring.errors import InvalidValue

DEMO = "mainspring.demo:app"

_FEW = 100


def open_demo(app: Mainspring) -> None:
    """Begin the work of the demo's *app*; refuse a database that anybody else works with."""
    from mainspring.demo import open_shop  # here, for nobody else needs a shop

    own = {task.name for task in app.tasks}
    used = {job.snapshot.task for job in app.jobs(limit=_FEW)}
    used |= {schedule.definition.task for schedule in app.schedules.page(limit=_FEW)}
    used |= {task for worker in app.workers() for task in worker.tasks}
    strange = sorted(task for task in used - own if not task.startswith("mainspring."))
    if strange:
        raise InvalidValue(
            f"expected a database for the demo alone, got {without_passwords(app.client.url)}, which is used for "
            f"{strange[0]!r} too; leave out --url, or name one that is empty"
        )
    open_shop()


def welcome(app: Mainspring, address: str | None) -> str:
    """Return where there is something to look at."""
    place = f"look at it on {address}/" if address else "look at it"
    url = without_passwords(app.client.url)
    return f"The demo is at work: {place}, or with `mainspring top --url {url}`. Ctrl-C ends it."
