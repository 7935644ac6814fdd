"""Dead letters: failed jobs by their cause, replayed with care or given up."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import msgspec
from starlette.responses import Response

from mainspring.api.policy import needs
from mainspring.errors import DeadGroupNotFound, InvalidValue
from mainspring.model.dead import Group, Meant
from mainspring.model.rate import rate as read_rate
from mainspring.model.text import counted, shortened
from mainspring.model.token import Role
from mainspring.web.pages import Pages, Visit
from mainspring.web.replays import Replays

pages = Pages()

_GROUPS = 100
_PAGE = 50
_AT_ONCE = 1.0
"""Seconds for which an answer waits for a replay: a mistake is known by then, and a small one may be over."""

_LOOK = needs(Role.VIEWER)
_SHARE = re.compile(r"\d{1,3}(\.\d{1,6})?")
DEFAULTS = {"canary": "5", "rate": "20/s", "stop_at": "20"}


@pages.get("/dead", _LOOK)
def list_groups(visit: Visit) -> Response:
    """Show the causes, the one seen last first."""
    wanted = {name: visit.asked(name) for name in ("task", "queue")}
    groups = visit.app.dead.groups(wanted["queue"] or None, wanted["task"] or None, _GROUPS)
    return visit.show("dead.html", groups=groups, wanted=wanted, most=_GROUPS)


@pages.get("/dead/{group}", _LOOK)
def show_group(visit: Visit) -> Response:
    """Show a cause, and the jobs that died of it."""
    name, before = _whole(visit), visit.asked("before")
    replay = _replays(visit).get(visit.caller.team, name)
    try:
        meant = visit.app.dead.meant(name)
        found = [one.snapshot for one in visit.app.dead.list(name, before=before or None, limit=_PAGE + 1)]
    except DeadGroupNotFound:
        if replay is None:
            raise
        meant, found = Meant(0, None), []
    shown = found[:_PAGE]
    return visit.show(
        "dead_group.html",
        name=name,
        group=_summary(visit, name, shown[0].task) if shown else None,
        failure=shown[0].failure if shown else None,
        meant=meant,
        letters=shown,
        older=f"/dead/{name}?before={shown[-1].id}" if len(found) > _PAGE else None,
        newest=not before,
        replay=replay,
        acts=visit.may("operator"),
        idle=visit.app.client.of_fleet and not visit.app.workers(),
        defaults=DEFAULTS,
    )


def _summary(visit: Visit, name: str, task: str) -> Group | None:
    """Return since when, and until when, its letters died; unless there are too many causes to find it among."""
    groups = visit.app.dead.groups(task=task, limit=_GROUPS)
    return next((group for group in groups if group.fingerprint == name), None)


@pages.post("/dead/{group}/replay", needs(Role.OPERATOR, records="dead.replay"))
def replay_group(visit: Visit) -> Response:
    """Run the letters again: a few first, and then the rest. The answer does not wait for the end of it."""
    form, dead = visit.form, visit.app.dead
    name = dead.fingerprint(visit.path["group"])
    canary, rate, stop_at = _number(form["canary"]), read_rate(form["rate"]), _share(form["stop_at"])
    patch, reason, actor = _patch(form["patch"]), form.words("reason"), visit.caller.actor
    until, found = _meant(visit, name)
    visit.caller.record(name, found=found, canary=canary, rate=form["rate"], stop_at=stop_at, reason=reason)
    replay = _replays(visit).start(
        visit.caller.team,
        name,
        lambda progress, halt: dead.replay(
            group=name,
            finished_until=until,
            canary=canary,
            rate=rate,
            stop_at=stop_at,
            patch=patch,
            reason=reason,
            by=actor,
            progress=progress,
            halt=halt,
        ),
    )
    replay.wait(_AT_ONCE)
    if replay.error is not None:
        raise InvalidValue(replay.error)
    return visit.go(f"/dead/{name}", f"The replay of {counted(found, 'dead letter')} has begun.")


@pages.post("/dead/{group}/stop", needs(Role.OPERATOR, records="dead.stop"))
def stop_replay(visit: Visit) -> Response:
    """Replay no more of a group."""
    name = _whole(visit)
    visit.caller.record(name)
    replay = _replays(visit).get(visit.caller.team, name)
    if replay is None or replay.over:
        return visit.go(f"/dead/{name}" if replay else "/dead", "No replay of it is under way on this server.")
    replay.stop(f"{visit.caller.actor} has stopped it")
    replay.wait(_AT_ONCE)
    return visit.go(f"/dead/{name}", "The replay is stopped; what was replayed by then goes on.")


@pages.get("/dead/{group}/discard", needs(Role.OPERATOR))
def ask_discard(visit: Visit) -> Response:
    """Ask whether it is meant, saying of how many."""
    name = visit.app.dead.fingerprint(visit.path["group"])
    meant = visit.app.dead.meant(name)
    letters = counted(meant.letters, "dead letter")
    return visit.show(
        "dead_discard.html",
        meant=meant,
        question=f"Discard {letters}?",
        sentence="They count as cancelled, and stay in history until they are pruned.",
        address=f"/dead/{name}/discard",
        label=f"Discard {letters}",
        back=f"/dead/{name}",
    )


@pages.post("/dead/{group}/discard", needs(Role.OPERATOR, records="dead.discard"))
def discard_group(visit: Visit) -> Response:
    """Give the letters of a group up."""
    name, reason = visit.app.dead.fingerprint(visit.path["group"]), visit.form.words("reason")
    until, found = _meant(visit, name)
    visit.caller.record(name, found=found, reason=reason)
    done = visit.app.dead.discard(group=name, finished_until=until, reason=reason, by=visit.caller.actor)
    return visit.go("/dead", f"{counted(done, 'dead letter')} discarded.")


def _replays(visit: Visit) -> Replays:
    replays: Replays = visit.request.app.state.replays
    return replays


def _whole(visit: Visit) -> str:
    """Return the fingerprint of the group by which it is known; as it was named if it has no letters any more."""
    name: str = visit.path["group"]
    try:
        return visit.app.dead.fingerprint(name)
    except DeadGroupNotFound:
        return name


def _meant(visit: Visit, group: str) -> tuple[datetime, int]:
    """Return before when those letters died that the visitor was shown, and how many of them are left."""
    text = visit.form["finished_until"]
    try:
        until = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidValue(f"expected finished_until to be an instant, got: {shortened(text)}") from None
    return until, visit.app.dead.count(group, finished_until=until)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise InvalidValue(f"expected the number to try first to be a whole number, got: {shortened(text)}")
    return int(text)


def _share(text: str) -> float:
    """Return the share that *text* says in percent."""
    number = text.removesuffix("%").strip()
    if not _SHARE.fullmatch(number) or float(number) > 100:
        raise InvalidValue(f"expected the share to stop at to be from 0 to 100 percent, got: {shortened(text)}")
    return float(number) / 100


def _patch(text: str) -> dict[str, Any]:
    """Return the arguments to change, as JSON says them."""
    if not text:
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        raise InvalidValue(
            f"""expected the arguments to change as JSON, such as {{"host": "mail2"}}, got: {shortened(text)}"""
        ) from None
