"""Breakers as values, and what becomes of them as attempts end and time passes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.errors import InvalidValue
from mainspring.model.breaker import ANY_NUMBER, PREFIX, Breaker, Ended, Phase, Rule, State, Trip
from mainspring.model.limits import BreakerGate, Gate, Limit, Standing, gate, want_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
RULE = Breaker("k").rule


def after(state: State, *worked: bool, at: datetime = NOW, rule: Rule = RULE) -> State:
    for one in worked:
        assert state.counts(at, probe=True)
        state = state.record(rule, at, worked=one)
    return state


def opened(rule: Rule = RULE, at: datetime = NOW) -> State:
    return after(State(), *[False] * rule.enough, at=at, rule=rule)


def test_a_breaker_is_read_as_people_write_it() -> None:
    assert Breaker("smtp").rule == Rule(50, 20, MINUTE, 30 * SECOND, 15 * MINUTE)
    assert Breaker("smtp", open_at=" 33 %  of 10 in 1h30m ", cooldown=5).rule == Rule(
        33, 10, 90 * MINUTE, 5 * SECOND, 5 * SECOND
    )
    assert (Breaker("a", open_at="33% of 10 in 1m").rule.enough, Breaker("a", open_at="1% of 5 in 1m").rule.enough) == (
        4,
        1,
    )


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"key": ""}, "expected a breaker to have a key"),
        ({"key": 7}, "expected a breaker to have a key"),
        ({"open_at": "half"}, "such as '50% of 20 in 1m', got: 'half'"),
        ({"open_at": 50}, "such as '50% of 20 in 1m'"),
        ({"open_at": "0% of 20 in 1m"}, "begin with 1% to 100%"),
        ({"open_at": "101% of 20 in 1m"}, "begin with 1% to 100%"),
        ({"open_at": "50% of 0 in 1m"}, "look at 1 to 200 attempts"),
        ({"open_at": "50% of 201 in 1m"}, "look at 1 to 200 attempts"),
        ({"open_at": "50% of 20 in a while"}, "the last part of open_at to be a duration"),
        ({"open_at": "50% of 20 in 0s"}, "the last part of open_at to be longer than 0"),
        ({"cooldown": "0s"}, "cooldown to be longer than 0"),
        ({"cooldown": "soon"}, "cooldown to be a duration"),
        ({"cooldown": "30s.."}, "the second part of cooldown to be a duration"),
        ({"cooldown": "30s..10s"}, "name the shorter length first"),
        ({"cooldown": None}, "cooldown to be a duration"),
    ],
)
def test_a_breaker_that_makes_no_sense_is_refused(given: dict[str, Any], says: str) -> None:
    arguments: dict[str, Any] = {"key": "k"} | given
    with pytest.raises(InvalidValue, match=says):
        Breaker(arguments.pop("key"), **arguments)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"key": ""}, "expected the key of a breaker"),
        ({"lasting": timedelta(0)}, "to be longer than 0; to close a breaker, reset it"),
        ({"by": " "}, "expected by to say who trips the breaker"),
        ({"reason": 7}, "expected reason to be text"),
    ],
)
def test_a_trip_that_makes_no_sense_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidValue, match=says):
        Trip(**dict[str, Any](key="k", lasting=MINUTE, by="ada") | given)


def test_no_limit_has_the_key_of_a_breaker() -> None:
    breaker = want_of(Breaker("{name}"), {"name": "x"})
    limit = Limit("{name}", concurrency=1).want({"name": f"{PREFIX}x"})

    assert (breaker.key, breaker.rule, limit.key) == ("@breaker:x", RULE, "@limit:@breaker:x")
    assert Limit("x", concurrency=1).want({}).key == "x"


def test_it_opens_when_enough_of_the_recent_attempts_have_failed() -> None:
    almost = after(State(), *[False] * 9, *[True] * 10)

    assert almost.phase(NOW) is Phase.CLOSED
    assert after(almost, False).phase(NOW) is Phase.OPEN
    assert after(almost, True, False, False).phase(NOW) is Phase.CLOSED  # the first of them are no longer recent
    assert (opened().failed, opened().seen, opened().why) == (10, 10, "10 of the last 10 attempts failed")


def test_what_failed_too_long_ago_does_not_count() -> None:
    old = after(State(), *[False] * 9)

    assert after(old, False, at=NOW + MINUTE).phase(NOW + MINUTE) is Phase.CLOSED
    assert after(old, False, at=NOW + 0.9 * MINUTE).phase(NOW + MINUTE) is Phase.OPEN
    assert (old.calm(RULE, NOW), old.calm(RULE, NOW + MINUTE)) == (False, True)


def test_what_failed_before_the_clock_was_set_back_does_not_count() -> None:
    assert after(after(State(), *[False] * 9), False, at=NOW - 2 * SECOND).phase(NOW) is Phase.CLOSED


def test_successes_alone_are_nothing_to_remember() -> None:
    assert after(State(), *[True] * 5) == State()
    assert after(State(), False, *[True] * 20) == State()
    assert msgspec.json.encode(State()) == b"{}"


def test_while_it_is_open_nothing_starts_and_nothing_counts() -> None:
    state = opened()

    assert state.room(NOW, 0) == 0
    assert (state.counts(NOW, probe=False), state.counts(NOW, probe=True)) == (False, False)
    assert state.phase(NOW + 29.9 * SECOND) is Phase.OPEN
    assert state.phase(NOW + 30 * SECOND) is Phase.HALF_OPEN


def test_one_that_seems_to_last_too_long_is_from_before_the_clock_was_set_back() -> None:
    assert opened().phase(NOW - 0.5 * SECOND) is Phase.OPEN
    assert opened().phase(NOW - timedelta(hours=1)) is Phase.HALF_OPEN
    assert opened().room(NOW - timedelta(hours=1), 0) == 1


def test_each_probe_that_succeeds_makes_room_for_two() -> None:
    then = NOW + 30 * SECOND
    state = opened()

    assert (state.room(then, 0), state.room(then, 1)) == (1, 0)
    state = after(state, True, at=then)
    assert (state.room(then, 0), state.room(then, 2)) == (2, 0)
    state = after(state, True, True, at=then)
    assert state.room(then, 0) == 4


def test_only_probes_count_while_it_is_half_open() -> None:
    then = NOW + 30 * SECOND

    assert (opened().counts(then, probe=True), opened().counts(then, probe=False)) == (True, False)


def test_probes_that_hang_make_room_by_and_by() -> None:
    then = NOW + timedelta(hours=8)
    state = opened().probe(then, 0)

    assert opened().room(then, 0) == 1  # however long nobody came
    assert state.room(then + 29 * SECOND, 1) == 0
    assert state.room(then + 30 * SECOND, 1) == 1
    assert state.probe(then + 30 * SECOND, 1) == state
    assert state.room(then + 60 * SECOND, 2) == 1


def test_each_probe_phase_that_fails_doubles_the_cooldown_up_to_the_longest() -> None:
    at, state, lasted = NOW, opened(), []
    for _ in range(7):
        lasted.append(state.lasts)
        at += state.lasts
        state = after(state, False, at=at)
        assert state.phase(at) is Phase.OPEN

    assert lasted == [30 * SECOND, MINUTE, 2 * MINUTE, 4 * MINUTE, 8 * MINUTE, 15 * MINUTE, 15 * MINUTE]


def test_it_opens_again_by_the_share_of_the_probes_that_fail() -> None:
    then = NOW + 30 * SECOND
    state = after(opened(), True, True, False, True, at=then)

    assert state.phase(then) is Phase.HALF_OPEN
    assert after(state, False, at=then).phase(then) is Phase.HALF_OPEN
    assert after(state, False, False, at=then).phase(then) is Phase.OPEN
    long_ramp = after(opened(), *[True] * 500, at=then)
    assert after(long_ramp, *[False] * 10, at=then).phase(then) is Phase.OPEN


def test_it_closes_when_nobody_waits_and_enough_has_succeeded() -> None:
    then = NOW + 30 * SECOND
    few, many = after(opened(), True, at=then), after(opened(), *[True] * 20, at=then)

    assert few.settled(RULE, then, held=0, waiting=True) == few
    assert few.settled(RULE, then, held=1, waiting=False) == few
    assert few.settled(RULE, then, held=0, waiting=False) == State()
    assert many.settled(RULE, then, held=5, waiting=True) == many
    assert many.settled(RULE, then, held=5, waiting=False) == State()
    assert opened().settled(RULE, then, held=0, waiting=False) == opened()
    assert opened().settled(RULE, NOW, held=0, waiting=False) == opened()


def test_once_closed_it_begins_with_the_shortest_cooldown_and_what_failed_lately() -> None:
    then = NOW + 30 * SECOND
    again = after(opened(), False, at=then)
    later = then + MINUTE
    closed = after(again, True, True, False, True, at=later).settled(RULE, later, held=0, waiting=False)

    assert closed == State(recent=(Ended(later, False), Ended(later, True)))
    assert after(closed, *[False] * 9, at=later).lasts == 30 * SECOND


def test_a_trip_ends_by_itself_and_a_probe_that_fails_after_it_opens_it_by_the_rule() -> None:
    state = State().trip(NOW, timedelta(hours=1), "ada", "maintenance")
    end = NOW + timedelta(hours=1)

    assert (state.phase(NOW), state.phase(end), state.why) == (
        Phase.OPEN,
        Phase.HALF_OPEN,
        "ada tripped it (maintenance)",
    )
    assert after(state, False, at=end).lasts == 30 * SECOND
    assert opened().trip(NOW, SECOND, "ada", None).phase(NOW + SECOND) is Phase.HALF_OPEN


def test_a_reset_closes_it_unless_jobs_wait_which_then_go_on_one_after_the_other() -> None:
    assert opened().reset(NOW, held=0, waiting=False) == State()
    assert after(State(), False).reset(NOW, held=0, waiting=True) == State()
    ramp = opened().reset(NOW, held=0, waiting=True)
    assert (ramp.phase(NOW), ramp.room(NOW, 0)) == (Phase.HALF_OPEN, 1)
    beside = opened().reset(NOW, held=3, waiting=True)
    assert beside.room(NOW, 3) == 1
    assert after(ramp, False).lasts == 30 * SECOND


def test_its_gate_lets_all_through_while_it_is_closed_and_counts_probes_while_it_is_half_open() -> None:
    then = NOW + 30 * SECOND

    def at(state: State, now: datetime, held: int = 0) -> BreakerGate | Gate:
        return gate(Standing("k", None, None, None, None, held, False, state), now)

    closed, shut, ajar = at(State(), NOW), at(opened(), NOW), at(opened(), then)
    closed.take()
    ajar.take()

    assert (closed.room, closed.holds) == (ANY_NUMBER, False)
    assert (shut.room, shut.holds, shut.release_at) == (0, False, NOW + 30 * SECOND)
    assert (ajar.room, ajar.holds, ajar.release_at) == (0, True, then + 5 * SECOND)
    assert ajar.state is not None
    assert ajar.state.probing_since == then


def test_probes_from_before_it_opened_again_do_not_keep_it_shut_if_they_hang() -> None:
    assert opened().room(NOW + 30 * SECOND, 1) == 0
    assert opened().room(NOW + 60 * SECOND, 1) == 1


RULES = st.builds(
    lambda percent, of, within, shortest, more: Rule(
        percent, of, within * SECOND, shortest * SECOND, (shortest + more) * SECOND
    ),
    *(st.integers(1, 100), st.integers(1, 200), st.integers(1, 300), st.integers(1, 60), st.integers(0, 600)),
)
DEEDS = ["start", "work", "fail", "neither", "trip", "reset"]


class Use:
    """A breaker in use by jobs, of which *waiting* wait for it whenever it does not let them start."""

    def __init__(self, rule: Rule, waiting: int) -> None:
        self.state, self.now, self.held = State(), NOW, 0
        self.rule, self.waiting = rule, waiting

    @property
    def phase(self) -> Phase:
        return self.state.phase(self.now)

    def start(self) -> None:
        if self.state.room(self.now, self.held) and self.phase is Phase.HALF_OPEN:
            self.state, self.held = self.state.probe(self.now, self.held), self.held + 1

    def end(self, worked: bool | None) -> None:
        probe = self.held > 0
        self.held -= probe
        if worked is not None and self.state.counts(self.now, probe=probe):
            self.state = self.state.record(self.rule, self.now, worked=worked)
        self.state = self.state.settled(self.rule, self.now, held=self.held, waiting=self.waiting > 0)

    def do(self, what: str) -> None:
        match what:
            case "start":
                self.start()
            case "trip":
                self.state = self.state.trip(self.now, 60 * SECOND, "ada", None)
            case "reset":
                self.state = self.state.reset(self.now, held=self.held, waiting=self.waiting > 0)
            case _:
                self.end({"work": True, "fail": False}.get(what))

    def let_those_that_wait_succeed(self) -> None:
        """What is held by now hangs for ever."""
        room = min(self.waiting, self.state.room(self.now, self.held))
        for _ in range(room):
            self.start()
        self.waiting -= room
        for _ in range(room):
            self.end(worked=True)


@given(RULES, st.lists(st.tuples(st.sampled_from(DEEDS), st.integers(0, 120)), max_size=40), st.integers(1, 100))
def test_whatever_has_happened_those_that_wait_go_on_if_what_they_depend_on_works(
    rule: Rule, steps: list[tuple[str, int]], waiting: int
) -> None:
    use = Use(rule, waiting)
    for what, seconds in steps:
        use.now += seconds * SECOND
        use.do(what)
        assert use.state.room(use.now, use.held) >= 0
    hanging = use.held
    for _ in range(1_000):
        use.let_those_that_wait_succeed()
        use.now += max(SECOND, use.state.lasts)

    assert use.waiting == 0
    assert hanging or use.phase is Phase.CLOSED
