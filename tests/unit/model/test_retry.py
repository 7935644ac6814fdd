"""Retry: how long to wait, how often, and after which exceptions."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.errors import InvalidValue
from mainspring.model.duration import LONGEST
from mainspring.model.retry import Retry

MICROSECOND = timedelta(microseconds=1)
CENTURY = timedelta(days=36_525)
LENGTHS = st.timedeltas(min_value=timedelta(0), max_value=CENTURY)
JITTERS = st.floats(min_value=0.5, max_value=1.5)
ATTEMPTS = st.integers(min_value=1, max_value=10**6)


@pytest.mark.parametrize(
    ("attempt", "jitter", "delay"),
    [
        (1, 1.0, timedelta(seconds=2)),
        (2, 1.0, timedelta(seconds=4)),
        (3, 1.0, timedelta(seconds=8)),
        (5, 1.0, timedelta(seconds=32)),
        (6, 1.0, timedelta(minutes=1)),
        (7, 1.0, timedelta(minutes=1)),
        (1, 0.5, timedelta(seconds=1)),
        (1, 1.5, timedelta(seconds=3)),
        (9, 0.5, timedelta(seconds=30)),
        (9, 1.5, timedelta(seconds=90)),
    ],
)
def test_the_delay_doubles_up_to_the_cap_and_then_takes_the_jitter(
    attempt: int, jitter: float, delay: timedelta
) -> None:
    assert Retry(base="2s", cap="1m").delay(attempt, jitter) == delay


@given(base=LENGTHS, cap=LENGTHS, attempt=st.integers(min_value=1, max_value=70), jitter=JITTERS)
def test_the_delay_follows_the_formula(base: timedelta, cap: timedelta, attempt: int, jitter: float) -> None:
    doubled = base // MICROSECOND * 2 ** (attempt - 1)
    expected = min(LONGEST, min(cap // MICROSECOND, doubled) * MICROSECOND * jitter)

    delay = Retry(base=base, cap=cap).delay(attempt, jitter)

    assert abs(delay - expected) <= MICROSECOND


@given(base=LENGTHS, cap=LENGTHS, attempt=ATTEMPTS)
def test_the_delay_before_jitter_never_falls(base: timedelta, cap: timedelta, attempt: int) -> None:
    retry = Retry(base=base, cap=cap)

    assert retry.delay(attempt, 1.0) <= retry.delay(attempt + 1, 1.0)


@given(base=LENGTHS, cap=LENGTHS, attempt=ATTEMPTS, jitter=JITTERS)
def test_the_delay_lies_between_nothing_and_one_and_a_half_caps(
    base: timedelta, cap: timedelta, attempt: int, jitter: float
) -> None:
    delay = Retry(base=base, cap=cap).delay(attempt, jitter)

    assert timedelta(0) <= delay <= cap * 1.5 + MICROSECOND


@pytest.mark.parametrize("base", [MICROSECOND, "2s", CENTURY])
@pytest.mark.parametrize("attempt", [1_000, 10**6, 10**18])
def test_a_millionth_attempt_waits_for_the_cap(base: Any, attempt: int) -> None:
    assert Retry(base=base, cap=CENTURY).delay(attempt, 1.0) == CENTURY


def test_a_base_of_nothing_retries_at_once_for_ever() -> None:
    assert Retry(base=0).delay(10**6, 1.5) == timedelta(0)


def test_a_base_beyond_the_cap_waits_for_the_cap() -> None:
    assert Retry(base="1h", cap="1m").delay(1, 1.0) == timedelta(minutes=1)


@pytest.mark.parametrize(
    ("max_attempts", "attempt", "allowed"),
    [(1, 1, False), (2, 1, True), (2, 2, False), (5, 4, True), (5, 5, False), (5, 6, False)],
)
def test_max_attempts_counts_the_first_run(max_attempts: int, attempt: int, allowed: bool) -> None:
    assert Retry(max_attempts=max_attempts).allows(attempt) is allowed


@pytest.mark.parametrize(
    ("on", "never", "error", "covered"),
    [
        ((Exception,), (), ValueError(), True),
        ((Exception,), (), KeyboardInterrupt(), False),
        ((BaseException,), (), KeyboardInterrupt(), True),
        ((ConnectionError,), (), ConnectionError(), True),
        ((ConnectionError,), (), ConnectionResetError(), True),
        ((ConnectionError,), (), OSError(), False),
        ((ConnectionError, KeyError), (), KeyError(), True),
        ((), (), ValueError(), False),
        ((Exception,), (ValueError,), ValueError(), False),
        ((Exception,), (ValueError,), UnicodeError(), False),
        ((Exception,), (ValueError,), KeyError(), True),
        ((UnicodeError,), (ValueError,), UnicodeError(), False),
        ((ValueError,), (UnicodeError,), ValueError(), True),
    ],
)
def test_on_and_never_decide_by_kind_and_never_wins(
    on: tuple[type[BaseException], ...], never: tuple[type[BaseException], ...], error: BaseException, covered: bool
) -> None:
    assert Retry(on=on, never=never).covers(error) is covered


def test_the_defaults_are_five_attempts_from_two_seconds_up_to_ten_minutes() -> None:
    retry = Retry()

    assert (retry.max_attempts, retry.base, retry.cap) == (5, timedelta(seconds=2), timedelta(minutes=10))
    assert (retry.on, retry.never) == ((Exception,), ())


def test_lengths_however_written_are_kept_as_timedeltas() -> None:
    retry = Retry(base=1.5, cap="1h30m")

    assert (retry.base, retry.cap) == (timedelta(milliseconds=1500), timedelta(minutes=90))


def test_a_retry_can_not_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Retry().max_attempts = 7  # type: ignore[misc]


def test_retries_that_say_the_same_are_equal_and_hash_alike() -> None:
    one, other = Retry(base="60s", on=(OSError,)), Retry(base="1m", on=(OSError,))

    assert one == other
    assert hash(one) == hash(other)


@pytest.mark.parametrize(
    "other", [Retry(6), Retry(base=1), Retry(cap=1), Retry(on=(OSError,)), Retry(never=(OSError,))]
)
def test_retries_that_differ_in_anything_are_not_equal(other: Retry) -> None:
    assert other != Retry()


def test_the_repr_of_a_retry_shows_every_rule() -> None:
    shown = repr(Retry(max_attempts=3, base="1s", cap="2s", never=(KeyError,)))

    assert shown == (
        "Retry(max_attempts=3, base=datetime.timedelta(seconds=1), cap=datetime.timedelta(seconds=2), "
        "on=(<class 'Exception'>,), never=(<class 'KeyError'>,), jitter=True)"
    )


@pytest.mark.parametrize("max_attempts", [0, -1, True, 1.0, 2.5, "3", None])
def test_max_attempts_must_be_a_whole_number_of_at_least_one(max_attempts: Any) -> None:
    with pytest.raises(InvalidValue) as caught:
        Retry(max_attempts=max_attempts)

    assert str(caught.value) == f"expected max_attempts to be a whole number of at least 1, got: {max_attempts!r}"


@pytest.mark.parametrize("name", ["base", "cap"])
@pytest.mark.parametrize("value", ["soon", -1, None, True])
def test_a_wrong_length_is_refused_by_its_name(name: str, value: Any) -> None:
    with pytest.raises(InvalidValue, match=f"expected {name} to be .*, got: {value!r}"):
        Retry(**{name: value})


@pytest.mark.parametrize("jitter", [0, 1.0, "no", None])
def test_jitter_is_wanted_or_not(jitter: Any) -> None:
    with pytest.raises(InvalidValue, match=f"^expected jitter to be True or False, got: {jitter!r}$"):
        Retry(jitter=jitter)


def test_a_rule_that_is_a_class_is_refused_with_what_to_write_instead() -> None:
    with pytest.raises(InvalidValue, match=r"got: <class 'ValueError'>; write \(ValueError,\)$"):
        Retry(on=ValueError)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["on", "never"])
@pytest.mark.parametrize("value", [ValueError, [ValueError], (int,), ("ValueError",), (ValueError(),), None])
def test_rules_must_be_tuples_of_exception_classes(name: str, value: Any) -> None:
    with pytest.raises(InvalidValue, match=f"expected {name} to be a tuple of exception classes, got: "):
        Retry(**{name: value})


@pytest.mark.parametrize(
    ("error", "covered"),
    [
        (ExceptionGroup("g", [ConnectionError(), ConnectionResetError()]), True),
        (ExceptionGroup("g", [ConnectionError(), ValueError()]), False),
        (ExceptionGroup("g", [ConnectionError(), ExceptionGroup("h", [PermissionError(), ConnectionError()])]), False),
        (ExceptionGroup("g", [ConnectionError(), ConnectionAbortedError()]), False),
    ],
)
def test_a_group_is_retried_if_all_in_it_are(error: BaseException, covered: bool) -> None:
    retry = Retry(on=(ConnectionError,), never=(ConnectionAbortedError,))

    assert retry.covers(error) is covered


def test_one_in_a_group_that_is_never_retried_rules_it_out_whatever_else_covers_it() -> None:
    assert not Retry(never=(ValueError,)).covers(ExceptionGroup("g", [OSError(), ValueError()]))
    assert Retry(never=(ValueError,)).covers(ExceptionGroup("g", [OSError()]))
