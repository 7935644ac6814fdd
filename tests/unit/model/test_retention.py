"""Which rule covers what, and where what is kept begins."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from mainspring.model.job import JobState
from mainspring.model.retention import Covers, Kept, covering, exceptions, nth_newest

NOW = datetime(2026, 1, 10, 15, 30, tzinfo=UTC)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)

selections = st.builds(
    Covers,
    st.sampled_from([None, "acme", "other"]),
    st.sampled_from([None, "mail", "default"]),
    st.sampled_from([None, JobState.FAILED, JobState.SUCCEEDED]),
)
jobs = st.builds(
    Covers,
    st.sampled_from(["acme", "other"]),
    st.sampled_from(["mail", "default"]),
    st.sampled_from([JobState.FAILED, JobState.SUCCEEDED]),
)


@given(st.sets(selections), jobs)
def test_every_job_goes_by_one_rule_and_that_is_the_most_precise(known: set[Covers], job: Covers) -> None:
    known |= {Covers()}
    matching = [one for one in known if one.meets(job)]

    counting = [one for one in matching if not any(other.meets(job) for other in exceptions(one, known))]

    assert counting == [max(matching, key=lambda one: one.precedence)]


def test_a_day_or_more_is_kept_by_whole_days_and_less_to_the_moment() -> None:
    edges = [Kept(Covers(), age).aged(NOW).at for age in (DAY, 2.5 * DAY, DAY - MINUTE)]

    assert edges == [
        datetime(2026, 1, 9, tzinfo=UTC),
        datetime(2026, 1, 8, tzinfo=UTC),
        datetime(2026, 1, 9, 15, 31, tzinfo=UTC),
    ]


@given(st.dictionaries(st.integers(0, 5), st.integers(1, 4)), st.integers(1, 20))
def test_the_nth_newest_is_found_in_its_minute(tally: dict[int, int], n: int) -> None:
    every = sorted((minute for minute, count in tally.items() for _ in range(count)), reverse=True)

    found = nth_newest([(NOW + minute * MINUTE, count) for minute, count in tally.items()], n)

    if n > len(every):
        assert found is None
    else:
        minute = every[n - 1]
        assert found == (NOW + minute * MINUTE, n - 1 - every.index(minute))


def test_of_rules_that_are_about_a_job_the_most_precise_counts() -> None:
    rules = [Covers(), Covers(state=JobState.FAILED), Covers(queue="mail"), Covers("acme")]

    assert covering(Covers("default", "default", JobState.SUCCEEDED), rules) == Covers()
    assert covering(Covers("default", "mail", JobState.FAILED), rules) == Covers(queue="mail")
    assert covering(Covers("acme", "mail", JobState.FAILED), rules) == Covers("acme")
