"""Teams: what they may have, and whose queues are."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path
from starlette.responses import Response

from mainspring.api.callers import Asking
from mainspring.api.documents import OwnerRequest, TeamDocument, TeamName, TeamRequest, Teams
from mainspring.api.pages import NameInPath
from mainspring.api.policy import Where, needs
from mainspring.api.routing import Routes, answer, nothing
from mainspring.documents.teams import team_document
from mainspring.model.token import Role

routes = Routes("teams")

TeamInPath = Annotated[TeamName, Path()]


@routes.get("/teams", needs(Role.VIEWER), gives=Teams)
def list_teams(caller: Asking) -> Response:
    """List the teams of which something was said, by name: the team itself, or all for who has the role in team `*`."""
    return answer({"items": [team_document(team) for team in caller.reach.teams.list()]})


@routes.get("/teams/{name}", needs(Role.VIEWER), gives=TeamDocument)
def get_team(caller: Asking, name: TeamInPath) -> Response:
    """Show what a team may have."""
    return answer(team_document(caller.reach.teams.get(name)))


@routes.put("/teams/{name}", needs(Role.ADMIN, Where.EVERYWHERE, records="team.set"), gives=TeamDocument)
def set_team(caller: Asking, name: TeamInPath, wanted: TeamRequest) -> Response:
    """Say what a team may have. What is left out stays as it is, and null lifts it."""
    quotas: Any = {name: getattr(wanted, name) for name in wanted.model_fields_set}
    caller.record(name, **quotas)
    return answer(team_document(caller.whole.teams.set(name, **quotas)))


@routes.delete("/teams/{name}", needs(Role.ADMIN, Where.EVERYWHERE, records="team.remove"), status=204)
def remove_team(caller: Asking, name: TeamInPath) -> Response:
    """Forget what was said of a team, which may then have as much as it likes. What is the team's stays."""
    caller.whole.teams.get(name)
    caller.record(name)
    caller.whole.teams.remove(name)
    return nothing()


@routes.put("/queues/{name:path}/owner", needs(Role.ADMIN, Where.EVERYWHERE, records="queue.give"), status=204)
def give_queue(caller: Asking, name: NameInPath, wanted: OwnerRequest) -> Response:
    """Make a queue a team's own: other teams enqueue nothing more there. Null makes it everybody's."""
    caller.record(name, team=wanted.team)
    caller.whole.queues.give(name, wanted.team)
    return nothing()
