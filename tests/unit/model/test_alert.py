"""What becomes of an alert from look to look, and what rules take."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from mainspring.errors import InvalidValue
from mainspring.model.alert import (
    RULES,
    Alert,
    AlertDefinition,
    AlertState,
    NewAlert,
    Reading,
    Rule,
    age,
    dead,
    depth,
    described,
    error_rate,
    judge,
    lag,
    missed_schedules,
    missing_workers,
    stuck,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
OK, PENDING, FIRING = AlertState
HOLDS, HOLDS_NOT, NOBODY_KNOWS = Reading(3, True, "3 jobs"), Reading(0, False, "none"), Reading(None, None, "?")
SAMPLES = [
    stuck("2h", task="t"),
    lag(),
    depth("mail"),
    age("mail", "1m"),
    error_rate(0.5, "1h", queue="mail"),
    dead(3),
    missing_workers("mail", 2),
    missed_schedules(),
]


def alert(state: AlertState, since: datetime = NOW - 5 * SECOND, hold: timedelta = timedelta(0)) -> Alert:
    definition = AlertDefinition(rule=dead(), hold=hold)
    return Alert("a", None, definition, state, since, None, None, NOW, None, None, NOW, NOW)


@pytest.mark.parametrize(
    ("state", "hold", "reading", "becomes", "event"),
    [
        (OK, 0, HOLDS_NOT, OK, None),
        (OK, 0, HOLDS, FIRING, "firing"),
        (OK, 9, HOLDS, PENDING, None),
        (PENDING, 9, HOLDS, PENDING, None),
        (PENDING, 5, HOLDS, FIRING, "firing"),
        (PENDING, 9, HOLDS_NOT, OK, None),
        (FIRING, 9, HOLDS, FIRING, None),
        (FIRING, 9, HOLDS_NOT, OK, "resolved"),
        (OK, 0, NOBODY_KNOWS, OK, None),
        (PENDING, 1, NOBODY_KNOWS, PENDING, None),
        (FIRING, 0, NOBODY_KNOWS, FIRING, None),
    ],
)
def test_what_becomes_of_it(
    state: AlertState, hold: int, reading: Reading, becomes: AlertState, event: str | None
) -> None:
    judged = judge(alert(state, hold=hold * SECOND), reading, NOW)

    assert (judged.state, judged.event and judged.event.event) == (becomes, event)
    assert judged.since == (NOW if judged.state is not state else NOW - 5 * SECOND)


def test_one_that_fires_says_since_when_its_rule_has_held() -> None:
    judged = judge(alert(PENDING, hold=5 * SECOND), HOLDS, NOW)

    assert judged.event is not None
    assert (judged.event.since, judged.event.at, judged.event.message) == (NOW - 5 * SECOND, NOW, "3 jobs")


def test_a_clock_that_was_set_back_does_not_make_it_wait_for_ever() -> None:
    judged = judge(alert(PENDING, since=NOW + timedelta(days=1), hold=5 * SECOND), HOLDS, NOW)

    assert (judged.state, judged.since) == (PENDING, NOW)


@pytest.mark.parametrize("rule", SAMPLES, ids=described)
def test_a_rule_is_a_value_that_can_be_stored(rule: Rule) -> None:
    stored = msgspec.json.encode(AlertDefinition(rule=rule))

    assert msgspec.json.decode(stored, type=AlertDefinition).rule == rule


def test_there_is_a_sample_of_every_rule() -> None:
    assert {type(rule) for rule in SAMPLES} == set(RULES.values())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: stuck(0), "expected longer_than to be a duration longer than 0"),
        (lambda: lag("soon"), "expected above to be a duration"),
        (lambda: depth("no queue"), "expected queue to be"),
        (lambda: depth("mail", above=-1), "expected above to be a whole number from 0 to 1,000,000, got: -1"),
        (lambda: depth("mail", above=True), "expected above to be a whole number"),
        (lambda: error_rate(1), "expected above to be a share from 0 to less than 1, got: 1"),
        (lambda: error_rate(at_least=0), "expected at_least to be a whole number from 1"),
        (lambda: missing_workers(fewer_than=0), "expected fewer_than to be a whole number from 1"),
        (lambda: NewAlert(id="a", definition=AlertDefinition(rule="dead")), "expected a rule such as dead()"),  # type: ignore[arg-type]
        (
            lambda: NewAlert(id="a", definition=AlertDefinition(rule=dead(), every=SECOND / 2)),
            "at least 1 s, got: 0.5s",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        make()

    assert message in str(refused.value)


def test_a_message_names_no_more_than_a_few_of_those_that_are_to_blame() -> None:
    reading = missed_schedules().read([f"s{n}" for n in range(7)], [], most=7)

    assert reading.message == "at least 7 schedules without the success expected: s0, s1, s2, s3, s4 and 2 more"
