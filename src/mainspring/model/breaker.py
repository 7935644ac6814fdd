"""Breakers: while what a task depends on is down, its jobs wait instead of failing one after the other.

A breaker is shared by all jobs whose template comes to the same key. It is *closed* while all is well. When too many of
the recent attempts have failed it is *open*, and nothing starts. When that has lasted for its cooldown it is
*half-open*: some jobs start as probes, and the more of them succeed, the more may start. All of this follows from what
is stored and the time at which somebody looks, so there is no message that could get lost on the way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from mainspring.errors import InvalidValue
from mainspring.model.duration import Duration, duration
from mainspring.model.template import render
from mainspring.model.text import said, short_key, shortened

PREFIX = "@breaker:"
"""Where the key of a breaker begins in the table that it shares with limits; no limit's key begins so."""

TRIP = timedelta(minutes=15)
"""How long a breaker stays open that a person tripped, unless he says otherwise."""

ANY_NUMBER = 1_000_000_000

_OPEN_AT = re.compile(r"(\d{1,3})\s*%\s*of\s+(\d{1,9})\s+in\s+(.+)")
_MOST_ATTEMPTS = 200
_SLACK = timedelta(seconds=1)
"""By how much what two processes take for now may differ, or a clock be set back, without being noticed."""


class Rule(msgspec.Struct, frozen=True):
    """When a breaker opens and for how long, as the code has it now."""

    percent: int
    of: int
    within: timedelta
    shortest: timedelta
    longest: timedelta

    @property
    def enough(self) -> int:
        """How many failures open it."""
        return max(1, -(-self.percent * self.of // 100))


@dataclass(frozen=True, init=False)
class Breaker:
    """Keeps jobs from starting while too many of those that share its key fail: `Breaker("smtp")`.

    `open_at="50% of 20 in 1m"` opens it when 10 of the last 20 attempts have failed, counting none that ended more than
    a minute ago. `cooldown="30s..15m"` keeps it open for 30 s, and after each probe that fails for twice as long as
    before, up to 15 minutes; a single length is always the same.
    """

    key: str
    rule: Rule

    def __init__(self, key: str, *, open_at: str = "50% of 20 in 1m", cooldown: Duration = "30s..15m") -> None:
        if not isinstance(key, str) or not key:
            raise InvalidValue(f"expected a breaker to have a key such as 'smtp', got: {shortened(key)}")
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "rule", Rule(*_read_open_at(open_at), *_read_cooldown(cooldown)))

    def key_of(self, arguments: Mapping[str, object]) -> str:
        """Return the key under which a job with these arguments finds this breaker in the database."""
        return stored_key(render(self.key, "breaker", arguments))


def stored_key(key: str) -> str:
    """Return what the breaker that people call *key* is called in the database."""
    return PREFIX + short_key(key)


class Phase(StrEnum):
    """What a breaker does at some instant."""

    CLOSED = "closed"  # lets all start
    OPEN = "open"  # lets none start
    HALF_OPEN = "half-open"  # lets some start, as probes


class Ended(msgspec.Struct, frozen=True, array_like=True):
    """When an attempt ended, and whether what it depends on worked."""

    at: datetime
    worked: bool


class State(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is stored of a breaker.

    It is closed while `until` is None, open until then, and half-open from then on. `recent` are the last attempts, or,
    while it is half-open, the last probes. As long as nothing has failed it is empty.
    """

    recent: tuple[Ended, ...] = ()
    opened_at: datetime | None = None
    until: datetime | None = None
    lasts: timedelta = timedelta(0)  # how long it is open this time
    cooldown: timedelta = timedelta(0)  # how long it was open last by its rule; none since it was closed
    successes: int = 0  # of probes since it is half-open
    probing_since: datetime | None = None  # when a probe began while there was no other
    failed: int = 0  # of so many attempts, which opened it:
    seen: int = 0
    by: str | None = None  # who tripped it, and why
    reason: str | None = None

    def phase(self, now: datetime) -> Phase:
        """Return what it does at *now*, by the database's clock."""
        if self.until is None:
            return Phase.CLOSED
        # One that seems to last longer than it was meant to is from before the clock was set back.
        return Phase.OPEN if timedelta(0) < self.until - now <= self.lasts + _SLACK else Phase.HALF_OPEN

    def room(self, now: datetime, held: int) -> int:
        """Return how many more may start while *held* probes run.

        A probe makes room for itself and for one more by succeeding, so that they double each time around. For each
        cooldown that probes have taken there is room for one more: those that hang must not keep it shut, be they from
        before it opened again.
        """
        match self.phase(now):
            case Phase.CLOSED:
                return ANY_NUMBER
            case Phase.OPEN:
                return 0
            case Phase.HALF_OPEN:
                begun = self.probing_since or self.until
                hanging = (now - begun) // self.lasts if held and begun is not None else 0
                return max(0, 1 + self.successes + max(0, hanging) - held)

    def probe(self, now: datetime, held: int) -> State:
        """Return what it is once another probe has started beside those that are *held*."""
        return self if held else replace(self, probing_since=now)

    def calm(self, rule: Rule, now: datetime) -> bool:
        """Return whether a success would leave it as it is, or as good as that."""
        return self.until is None and not _failed(_fresh(self.recent, now, rule))

    def counts(self, now: datetime, *, probe: bool) -> bool:
        """Return whether an attempt that ends at *now* says anything that is not known already.

        While it is open none does. While it is half-open probes do: any other began before it opened.
        """
        phase = self.phase(now)
        return phase is Phase.CLOSED or (phase is Phase.HALF_OPEN and probe)

    def record(self, rule: Rule, now: datetime, *, worked: bool) -> State:
        """Return what it is once another attempt has ended, which *counts*."""
        recent = _fresh((*self.recent, Ended(now, worked)), now, rule)
        failed = _failed(recent)
        if self.until is None:
            if not worked and failed >= rule.enough:
                return self._open(rule, now, recent)
            return replace(self, recent=_since_first_failure(recent))
        if not worked and 100 * failed >= rule.percent * len(recent):
            return self._open(rule, now, recent)
        return replace(self, recent=recent, successes=self.successes + worked)

    def settled(self, rule: Rule, now: datetime, *, held: int, waiting: bool) -> State:
        """Return it as it is, or closed, once probes have ended, of which *held* still run.

        While jobs are *waiting* they go on as probes succeed, however many have: closed, it would let all start
        together. When nobody waits and no probe is left, a few are as good as many: a trickle of jobs would not bring
        more for long, and the first of them to fail would open it again.
        """
        if self.phase(now) is not Phase.HALF_OPEN or not self.successes or waiting:
            return self
        if held and self.successes < rule.of:
            return self
        return State(recent=_since_first_failure(_fresh(self.recent, now, rule)))

    def trip(self, now: datetime, lasting: timedelta, by: str, reason: str | None) -> State:
        """Return it open because a person says so."""
        return State(opened_at=now, until=now + lasting, lasts=lasting, cooldown=self.cooldown, by=by, reason=reason)

    def reset(self, now: datetime, *, held: int, waiting: bool) -> State:
        """Return it closed because a person says so; half-open if jobs are *waiting*, which would start all at once.

        Probes that are *held* may be what he is tired of waiting for, so there is room beside them.
        """
        if self.until is None or not waiting:
            return State()
        return replace(self, recent=(), until=now, cooldown=timedelta(0), successes=held, probing_since=now)

    def idle_at(self, rule: Rule) -> datetime | None:
        """Return from when on it means nothing any more, if nobody uses it: None when it means nothing now."""
        if self.until is not None:
            return self.until
        return self.recent[-1].at + rule.within if self.recent else None

    def _open(self, rule: Rule, now: datetime, recent: Sequence[Ended]) -> State:
        lasts = max(rule.shortest, min(rule.longest, 2 * self.cooldown))
        return State(
            opened_at=now, until=now + lasts, lasts=lasts, cooldown=lasts, failed=_failed(recent), seen=len(recent)
        )

    @property
    def why(self) -> str:
        """Why it opened, as a part of a sentence."""
        if self.by is None:
            return f"{self.failed} of the last {self.seen} attempts failed"
        return f"{self.by} tripped it{f' ({self.reason})' if self.reason else ''}"


class BreakerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A breaker as it was at one moment, for people.

    `since` is when it began to be what it is, and `until` when it lets the first probe start, if it is open. `failures`
    of the last `attempts` that counted have failed; when it is not closed, those are what opened it, unless a person
    tripped it: then `by` says who, and `reason` why.
    """

    key: str
    phase: Phase
    since: datetime | None = None
    until: datetime | None = None
    waiting: int = 0  # jobs that wait for it
    probes: int = 0  # that run
    failures: int = 0
    attempts: int = 0
    by: str | None = None
    reason: str | None = None


def status(key: str, state: State, now: datetime, *, waiting: int, probes: int) -> BreakerStatus:
    """Return how the breaker called *key* in the database stands."""
    phase = state.phase(now)
    closed, is_open = phase is Phase.CLOSED, phase is Phase.OPEN
    return BreakerStatus(
        key=key.removeprefix(PREFIX),
        phase=phase,
        since=state.opened_at if is_open else state.until,
        until=state.until if is_open else None,
        waiting=waiting,
        probes=probes,
        failures=_failed(state.recent) if closed else state.failed,
        attempts=len(state.recent) if closed else state.seen,
        by=state.by,
        reason=state.reason,
    )


class Trip(msgspec.Struct, frozen=True, kw_only=True):
    """The wish that a breaker be open for a while, with who wishes it and why."""

    key: str
    lasting: timedelta
    by: str
    reason: str | None = None

    def __post_init__(self) -> None:
        check_breaker_key(self.key)
        if duration(self.lasting, "lasting") == timedelta(0):
            raise InvalidValue("expected lasting to be longer than 0; to close a breaker, reset it")
        by, reason = said(self.by, self.reason, "trips the breaker")
        msgspec.structs.force_setattr(self, "by", by)
        msgspec.structs.force_setattr(self, "reason", reason)


def check_breaker_key(key: str) -> None:
    """Refuse what no breaker can be called."""
    if not isinstance(key, str) or not key:
        raise InvalidValue(f"expected the key of a breaker, such as 'smtp', got: {shortened(key)}")


def _fresh(recent: Sequence[Ended], now: datetime, rule: Rule) -> tuple[Ended, ...]:
    """Return those of *recent* that count by *rule*: the last ones, and none that is too old."""
    return tuple(one for one in recent if -_SLACK <= now - one.at < rule.within)[-rule.of :]


def _failed(recent: Sequence[Ended]) -> int:
    return sum(not one.worked for one in recent)


def _since_first_failure(recent: Sequence[Ended]) -> tuple[Ended, ...]:
    """Return *recent* without the successes that it begins with: they change nothing, and to keep them is to write."""
    first = next((place for place, one in enumerate(recent) if not one.worked), len(recent))
    return tuple(recent[first:])


def _read_open_at(text: str) -> tuple[int, int, timedelta]:
    parts = _OPEN_AT.fullmatch(text.strip()) if isinstance(text, str) else None
    if parts is None:
        raise InvalidValue(
            "expected open_at to say how many failures among how many attempts in how long open the breaker, such as "
            f"'50% of 20 in 1m', got: {shortened(text)}"
        )
    percent, of = int(parts[1]), int(parts[2])
    if not 1 <= percent <= 100:
        raise InvalidValue(f"expected open_at to begin with 1% to 100%, got: {shortened(text)}")
    if not 1 <= of <= _MOST_ATTEMPTS:
        raise InvalidValue(f"expected open_at to look at 1 to {_MOST_ATTEMPTS} attempts, got: {shortened(text)}")
    return percent, of, _length(parts[3], "the last part of open_at")


def _read_cooldown(value: Duration) -> tuple[timedelta, timedelta]:
    first, dots, last = value.partition("..") if isinstance(value, str) else (value, "", "")
    shortest = _length(first, "cooldown")
    longest = _length(last, "the second part of cooldown") if dots else shortest
    if longest < shortest:
        raise InvalidValue(f"expected cooldown to name the shorter length first, got: {shortened(value)}")
    return shortest, longest


def _length(value: Duration, name: str) -> timedelta:
    length = duration(value, name)
    if length == timedelta(0):
        raise InvalidValue(f"expected {name} to be longer than 0, got: {shortened(value)}")
    return length
