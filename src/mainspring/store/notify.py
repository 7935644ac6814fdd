"""Notify: store the jobs that tell people, in the transaction that makes what they tell of; and whom teams want told.

So nobody is told of what was rolled back, and nobody is forgotten by a crash. What a settle whose reply was lost has
done is not done again: its jobs have moved already, and only those are told of that move now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mainspring.clock import SystemClock
from mainspring.model import notice
from mainspring.model.alert import FIRING, AlertEvent
from mainspring.model.channel import Channel, Event, decode_channels, encode_channels, redefined
from mainspring.model.job import NewJob
from mainspring.model.lifecycle import Settlement
from mainspring.model.notice import Notice, Rule
from mainspring.model.team import DEFAULT_TEAM
from mainspring.store import rows
from mainspring.store.chunks import chunks
from mainspring.store.database import Database, Row, Runner
from mainspring.store.insert import insert, topics_of
from mainspring.store.teams import check_room

_FRESH = 1.0
"""Seconds for which it is taken for granted that there are still no rules: the plain job must not pay for a look."""

Told = tuple[Notice, Sequence[Channel]]
"""Something that has happened, and whom it may concern."""


class Ruled:
    """Whether there are any rules, as far as this process knows; asked whenever jobs are settled."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._clock = SystemClock()
        self._some = False
        self._look_at = self._clock.steady()

    def __call__(self) -> bool:
        now = self._clock.steady()
        if now >= self._look_at:
            ((found,),) = self._db.read("any_rule")
            self._some, self._look_at = bool(found), now + _FRESH
        return self._some

    def look_again(self) -> None:
        """Take nothing for granted any more."""
        self._look_at = self._clock.steady()


def notify(tx: Runner, moved: Sequence[Settlement], *, ruled: bool) -> set[str]:
    """Have those told that want to know of jobs that have *moved*; return the topics to wake."""
    # A job that is given twice has moved once.
    once = {one.job_id: one for one in reversed(moved) if ruled or one.tells}.values()
    found = [made for one in once if (made := notice.of_settlement(one)) is not None]
    return spread(tx, found, ruled=ruled)


def spread(tx: Runner, notices: Sequence[Notice], *, ruled: bool = True) -> set[str]:
    """Have those told that want to know of *notices*; return the topics to wake.

    That comes last in a transaction: what is kept of troubles is locked after all else.
    """
    if not notices:
        return set()
    teams = {one.team or DEFAULT_TEAM for one in notices if not one.private} if ruled else set()
    rules = channels_of(tx, teams)
    told = [(one, one.audience(rules.get(one.team or DEFAULT_TEAM, ()))) for one in notices]
    wanted = _with_recoveries(tx, [(one, audience) for one, audience in told if audience])
    return announce(tx, wanted)


def channels_of(tx: Runner, teams: Iterable[str]) -> Mapping[str, Sequence[Channel]]:
    """Return whom *teams*, called by their names, want to be told."""
    asked = sorted(teams)
    found: dict[str, list[Channel]] = {}
    for team, channel in tx.run("rules_of", teams=rows.document(asked)) if asked else ():
        found.setdefault(team, []).extend(decode_channels(channel))
    return found


def announce(tx: Runner, wanted: Sequence[Told]) -> set[str]:
    """Store a job for each channel that is to be told of something; return the topics to wake."""
    if not any(channels for _, channels in wanted):
        return set()
    ((now,),) = tx.run("now")
    made = [notice.new_job(one, channel, now) for one, channels in wanted for channel in channels]
    jobs = list({job.id: job for job in made}.values())
    first = 0
    for piece in chunks(jobs, _characters):
        insert(tx, piece, first)
        first += len(piece)
    return {topic for job in jobs for topic in topics_of(job)}


def leave_notices(tx: Runner, team: str | None, event: AlertEvent, channels: Sequence[Channel]) -> set[str]:
    """Have *channels* told that an alert of *team* fires or has resolved; return the topics to wake.

    An alert that names nobody is told to those whom the team wants told of failures, and of recoveries.
    """
    told = notice.of_alert(event, team)
    if not channels:
        wanted = Event.FAILURE if event.event == FIRING else Event.RECOVERED
        rules = channels_of(tx, [team or DEFAULT_TEAM]).get(team or DEFAULT_TEAM, ())
        channels = [one for one in rules if wanted in one.on]
    return announce(tx, [(told, notice.each_once(channels))])


def _with_recoveries(tx: Runner, told: Sequence[Told]) -> list[Told]:
    """Return who is to be told of what, and keep in mind who was told of trouble, for the day it ends."""
    candidates = {pair for one, audience in told for pair in notice.may_have_recovered(one, audience)}
    begun = {pair for one, audience in told for pair in notice.keep_in_mind(one, audience)}
    if candidates and begun:  # each alone is locked in its order, but the two are not in the order of both
        tx.run("lock_troubles", troubles=rows.document(sorted(candidates | begun)))
    ended = set(tx.run("end_troubles", troubles=rows.document(sorted(candidates)))) if candidates else set()
    if begun:
        tx.run("note_troubles", troubles=rows.document(sorted(begun)))
    wanted: list[Told] = []
    for one, audience in told:
        recovered = _relieved(one, audience, ended)
        others = {channel.target for channel in recovered}
        wanted.append((one, [channel for channel in notice.heard_by(one, audience) if channel.target not in others]))
        wanted.append((notice.recovery(one), recovered))
        ended -= {(one.subject, channel.target) for channel in recovered}  # the first success is the recovery
    return wanted


def _relieved(one: Notice, audience: Sequence[Channel], ended: set[Row]) -> list[Channel]:
    if one.event != Event.SUCCESS:
        return []
    return notice.each_once(
        channel for channel in audience if Event.RECOVERED in channel.on and (one.subject, channel.target) in ended
    )


def put_rule(db: Database, team: str, rule_id: str, channel: Channel, ruled: Ruled) -> Rule:
    """See `protocol.Notifies.put_rule`."""

    def work(tx: Runner) -> Row:
        check_room(tx, "rule", team, rule_id)
        before = [one for (text,) in tx.run("lock_rule", team=team, id=rule_id) for one in decode_channels(text)]
        kept = redefined(before[0] if before else None, channel)
        (row,) = tx.run("put_rule", team=team, id=rule_id, channel=encode_channels([kept]))
        return row

    row = db.transact(work)
    ruled.look_again()
    (rule,) = _read([row])
    return rule


def rules(db: Database, team: str | None, rule_id: str | None) -> list[Rule]:
    """See `protocol.Notifies.rules`."""
    return _read(db.read("rules", team=team, id=rule_id))


def remove_rule(db: Database, team: str, rule_id: str) -> bool:
    """See `protocol.Notifies.remove_rule`."""
    found: list[Row] = []  # kept from try to try: after a lost reply it is gone
    db.transact(lambda tx: found.extend(tx.run("remove_rule", team=team, id=rule_id)))
    return bool(found)


def _read(found: Iterable[Row]) -> list[Rule]:
    return [
        Rule(team, rule_id, channel, created_at, changed_at)
        for team, rule_id, text, created_at, changed_at in found
        for channel in decode_channels(text)
    ]


def _characters(job: NewJob) -> int:
    return len(job.payload) + len(job.notify or "")
