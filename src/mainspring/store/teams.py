"""Teams: what they may have, and whether they may have more."""

from __future__ import annotations

from mainspring.errors import QuotaExceeded
from mainspring.model.job import NOTIFY_QUEUE
from mainspring.model.limits import Gate, Standing
from mainspring.model.team import DEFAULT_TEAM, Quotas, Team, stored_team, with_quotas
from mainspring.model.text import counted
from mainspring.store.database import Database, Runner

_LOOKED_AT_LEAST, _LOOKED_PER_JOB = 10_000, 10

MOST = {"rule": 100, "alert": 100, "secret": 1_000}
"""What any team may have. Rules above all: one settle stores as many jobs for each of its own as there are rules."""

_CALLED = {"rule": "notification"}


def put(db: Database, name: str, quotas: Quotas) -> Team:
    """See `protocol.Teams.set_team`."""

    def work(tx: Runner) -> Team:
        tx.run("lock_room", room=f"team {name}")  # of a team that is not known yet there is no row to lock
        known = [Team(*row) for row in tx.run("lock_team", team=name)]
        wanted = with_quotas(known[0] if known else Team(name), quotas)
        (row,) = tx.run(
            "put_team",
            team=name,
            max_pending=wanted.max_pending,
            max_schedules=wanted.max_schedules,
            gap=wanted.interval,
            burst=wanted.burst,
        )
        return Team(*row)

    with_quotas(Team(name), quotas)  # refused before anything is locked
    return db.transact(work)


def teams(db: Database, name: str | None) -> list[Team]:
    """See `protocol.Teams.teams`."""
    return [Team(*row) for row in db.read("teams", team=name)]


def remove(db: Database, name: str) -> bool:
    """See `protocol.Teams.remove_team`."""
    found: list[object] = []  # kept from try to try: after a lost reply it is gone
    db.transact(lambda tx: found.extend(tx.run("remove_team", team=name)))
    return bool(found)


def admit(db: Database, name: str, jobs: int, schedules: int) -> None:
    """See `protocol.Teams.admit_team`."""
    for team in teams(db, name):
        if jobs and team.max_pending is not None and _pending(db, name, team.max_pending) + jobs > team.max_pending:
            raise QuotaExceeded(name, f"more than {counted(team.max_pending, 'unfinished job')}")
        if schedules and team.max_schedules is not None:
            ((known,),) = db.read("schedules_of_team", team=name)
            if known + schedules > team.max_schedules:
                raise QuotaExceeded(name, f"more than {counted(team.max_schedules, 'schedule')}")
        # Last, so that what is refused for another reason takes nothing. One whose reply is lost may count twice.
        if jobs and team.interval is not None and not db.run("take_of_team", team=name, jobs=jobs):
            _refuse_rate(db, name, jobs)


def check_room(tx: Runner, kind: str, team: str | None, name: str) -> None:
    """Refuse what is new if the team has as many of its *kind* as any may have; whoever asks at the same time waits."""
    tx.run("lock_room", room=f"{kind} {team}")
    ((found, known),) = tx.run(f"room_for_{kind}", team=team, id=name)
    if found >= MOST[kind] and not known:
        called = counted(MOST[kind], _CALLED.get(kind, kind))
        raise QuotaExceeded(team or DEFAULT_TEAM, f"more than {called}; remove one that is no longer needed")


def _pending(db: Database, name: str, most: int) -> int:
    """Return how many jobs of the team have not ended, without those that tell people, among as many as it takes.

    Those are made by the platform: a receiver that is down must not keep the team from its work.
    """
    stored, looked = stored_team(name), max(_LOOKED_AT_LEAST, _LOOKED_PER_JOB * most)
    if stored is None:
        ((pending,),) = db.read("pending_of_nobody", looked=looked, left_out=NOTIFY_QUEUE)
    else:
        ((pending,),) = db.read("pending_of_team", team=stored, looked=looked, left_out=NOTIFY_QUEUE)
    return int(pending)


def _refuse_rate(db: Database, name: str, jobs: int) -> None:
    for now, interval, burst, full_at in db.read("bucket_of_team", team=name):
        if full_at is not None and full_at > now + burst * interval:
            db.run("mend_team", team=name)
        if jobs > burst:
            raise QuotaExceeded(name, f"{counted(jobs, 'job')} at once, but {burst:,} at most; send fewer together")
        opens_at = Gate(Standing(name, None, interval, burst, full_at, 0, waiting=False), now).opens_at(jobs - 1)
        wait = 0.0 if opens_at is None else max(0.0, (opens_at - now).total_seconds())
        raise QuotaExceeded(name, f"more than a job every {interval.total_seconds():g} s", wait)
