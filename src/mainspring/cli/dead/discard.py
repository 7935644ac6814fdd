"""`mainspring dead discard`."""

from __future__ import annotations

from mainspring.app import DEFAULT_URL
from mainspring.cli.apps import app_at
from mainspring.cli.confirm import confirmed
from mainspring.cli.dead.options import GroupName, Ids, Reason, Yes, chosen_by, note_letters
from mainspring.cli.options import AsJson, Queue, TaskName, Team, Url
from mainspring.cli.output import counting, say, say_json
from mainspring.model.text import counted


def discard(  # noqa: PLR0913 - one parameter for each option
    group: GroupName = None,
    ids: Ids = None,
    queue: Queue = None,
    task: TaskName = None,
    reason: Reason = None,
    yes: Yes = False,
    team: Team = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Give dead letters up. They count as cancelled, and stay in history until they are pruned."""
    with app_at(url, team=team) as app:
        chosen, count = chosen_by(app, group, ids, queue, task)
        deed = f"discard {counted(count, 'dead letter')}"
        if count and not ids and not yes and not confirmed(deed, as_json):
            say("Nothing was changed.")
            return
        if count:
            note_letters(app, "discard", chosen, count, reason)
        with counting("Discard jobs", quiet=as_json):
            discarded = app.dead.discard(reason=reason, **chosen) if count else 0
    if as_json:
        say_json({"found": count, "discarded": discarded})
    elif count:
        say(f"Discarded {counted(discarded, 'job')}.")
    else:
        say("No dead letter is like that.")
