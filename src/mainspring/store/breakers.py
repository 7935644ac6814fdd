"""Breakers: judge the attempts that end under them, in the transaction that settles these; trip, reset and list them.

A breaker is a row among the limits. Jobs wait for it as they wait for a limit, and probes have slots of it, so admit,
release and reap need to know little more than that it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from mainspring.model import lifecycle
from mainspring.model.breaker import BreakerStatus, Phase, Rule, State, Trip, status, stored_key
from mainspring.model.lifecycle import Settlement
from mainspring.model.limits import Standing
from mainspring.model.outcome import SPARED
from mainspring.store import rows
from mainspring.store.database import Database, Row, Runner
from mainspring.store.release import Recorded, become, keep, let_go_on, look

Change = Callable[[Standing, State, datetime], State]
_States = dict[str, tuple[State, datetime]]


def closed(db: Database, keys: Collection[str]) -> set[str]:
    """Return those of the breakers with these *keys* that are closed; one that has no row is.

    A look is enough: to start a moment before it opens is no worse than to have started a moment earlier.
    """
    found = _states(db.read("look_at_limits", keys=rows.document(keys)))
    return set(keys) - {key for key, (state, now) in found.items() if state.phase(now) is not Phase.CLOSED}


def prepare(db: Database, settlements: Sequence[Settlement]) -> bool:
    """Return whether *settlements* leave all breakers as they are. If not, see to it that these have their rows."""
    rules = _rules(settlements)
    if not rules:
        return True
    found = db.read("look_at_limits", keys=rows.document(rules))
    missing = _failing(settlements) - {key for _, key, *_ in found}
    if missing:
        # In a transaction of its own: together with those that are locked already, they would be locked in no order.
        db.run("put_limits", limits=rows.new_breakers(missing))
    return _calm(settlements, rules, found)


def judge(tx: Runner, settlements: Sequence[Settlement]) -> tuple[Sequence[Settlement], Recorded]:
    """Return *settlements* as their breakers leave them, and what the breakers become, whose rows are locked.

    An attempt that does not hold its job any more says nothing, nor does one that an earlier try of this call settled.
    """
    rules = _rules(settlements)
    if not rules or _calm(settlements, rules, tx.run("look_at_limits", keys=rows.document(rules))):
        return settlements, {}
    # Jobs before limits, and of either all at once: also those of the batch that have no breaker.
    ours = set(tx.run("lock_claimed", ids=rows.ids(one.job_id for one in settlements)))
    keys = {*rules, *(key for one in settlements for key in one.holds)}
    tx.run("lock_limits", keys=rows.document(sorted(keys)))
    states = _states(tx.run("look_at_limits", keys=rows.document(rules)))
    probes = set(tx.run("slots_of", ids=rows.ids(one.job_id for one in settlements if one.breaker is not None)))
    spared = _spared_before(tx, settlements)
    judged: list[Settlement] = []
    for one in settlements:
        attempt = (one.job_id, one.source, one.fence)
        if one.breaker is not None and one.breaker.key in states and attempt in ours:
            ours.discard(attempt)  # one that is given twice counts once
            judged.append(_judge(one, one.breaker.key, rules, states, probes))
        else:
            judged.append(lifecycle.spare(one) if (one.job_id, one.fence) in spared else one)
    return judged, {key: (state, rules[key]) for key, (state, _) in states.items()}


def _judge(one: Settlement, key: str, rules: Mapping[str, Rule], states: _States, probes: set[Row]) -> Settlement:
    """Record an attempt with its breaker, and return what becomes of its job."""
    state, now = states[key]
    probe = (key, one.job_id) in probes
    if probe and key not in one.holds:
        one = replace(one, holds=(*one.holds, key))
    if one.worked is None:
        return one
    if state.counts(now, probe=probe):
        states[key] = state.record(rules[key], now, worked=one.worked), now
        return one
    return one if one.worked else lifecycle.spare(one)


def _spared_before(tx: Runner, settlements: Sequence[Settlement]) -> set[Row]:
    """Return the job and the fence of those that an earlier try of this call spared, when its reply was lost."""
    if not tx.in_doubt:
        return set()
    history = tx.run("attempts", ids=rows.ids(one.job_id for one in settlements if one.breaker is not None))
    return {(job_id, fence) for job_id, fence, _, _, _, _, outcome, *_ in history if outcome == SPARED}


def _rules(settlements: Sequence[Settlement]) -> dict[str, Rule]:
    wants = [one.breaker for one in settlements if one.breaker is not None]
    return {want.key: want.rule for want in wants if want.rule is not None}


def _failing(settlements: Sequence[Settlement]) -> set[str]:
    return {one.breaker.key for one in settlements if one.breaker is not None and one.worked is False}


def _calm(settlements: Sequence[Settlement], rules: Mapping[str, Rule], found: Sequence[Row]) -> bool:
    """Return whether these breakers, as they were *found*, have nothing to record, and no slot that is to be freed.

    A slot of one's own is there from before the attempt began, so it can't be overlooked.
    """
    if _failing(settlements):
        return False
    standings = [(Standing(*row), now) for now, *row in found]
    return not any(
        limit.held or (limit.breaker is not None and not limit.breaker.calm(rules[limit.key], now))
        for limit, now in standings
    )


def _states(found: Sequence[Row]) -> _States:
    standings = [(Standing(*row), now) for now, *row in found]
    return {limit.key: (limit.breaker, now) for limit, now in standings if limit.breaker is not None}


def trip(db: Database, wanted: Trip) -> BreakerStatus:
    """See `protocol.Breakers.trip_breaker`."""
    key = stored_key(wanted.key)

    def tripped(_: Standing, state: State, now: datetime) -> State:
        return state.trip(now, wanted.lasting, wanted.by, wanted.reason)

    db.wake(db.transact(lambda tx: _change(tx, key, tripped)))
    return breakers(db, wanted.key)[0]


def reset(db: Database, name: str, *, all_at_once: bool) -> bool:
    """See `protocol.Breakers.reset_breaker`."""
    key = stored_key(name)
    was: list[Phase] = []  # kept from try to try: after a lost reply it is closed already

    def let_through(standing: Standing, state: State, now: datetime) -> State:
        was.append(state.phase(now))
        return state.reset(now, held=standing.held, waiting=standing.waiting and not all_at_once)

    if not db.read("breakers", key=key):
        return False
    db.wake(db.transact(lambda tx: _change(tx, key, let_through)))
    return was[0] is not Phase.CLOSED


def _change(tx: Runner, key: str, change: Change) -> set[str]:
    """Make of a breaker what *change* says; return the topics to wake."""
    tx.run("put_limits", limits=rows.new_breakers([key]))  # which locks it
    ((standing, passed),) = look(tx, [key]).values()
    assert standing.breaker is not None
    state = change(standing, standing.breaker, passed.now)
    changed = {key: become(standing, state, state.until, passed.now)}
    return keep(tx, changed) | let_go_on(tx, changed)


def breakers(db: Database, name: str | None = None) -> list[BreakerStatus]:
    """See `protocol.Breakers.breakers`."""
    found = db.read("breakers", key=None if name is None else stored_key(name))
    return [status(key, state, now, waiting=waiting, probes=held) for now, key, state, waiting, held in found]
