"""When a replay is to stop, and what its report adds up to."""

from __future__ import annotations

import pytest

from mainspring.model.dead import RECENT, Replayed, Watch
from mainspring.model.job import JobState

OK, BAD = JobState.SUCCEEDED, JobState.FAILED


def watched(stop_at: float, *states: JobState) -> Watch:
    watch = Watch(stop_at)
    for state in states:
        watch.saw(state)
    return watch


def test_a_share_that_is_reached_and_not_passed_is_fine() -> None:
    assert watched(0.2, BAD, OK, OK, OK, OK).objection(5) is None
    assert watched(0.2, BAD, BAD, OK, OK, OK).objection(5) is not None


@pytest.mark.parametrize(("failed", "stops"), [(1, False), (2, False), (3, True)])
def test_a_canary_ends_as_soon_as_it_can_not_turn_out_well(failed: int, stops: bool) -> None:
    assert (watched(0.2, *[BAD] * failed).objection(10) is not None) is stops


def test_without_a_canary_the_first_failure_decides_nothing() -> None:
    assert watched(0.2, BAD).objection() is None
    assert watched(0.2, BAD, BAD).objection() is not None


def test_a_share_of_nothing_allows_no_failure_and_one_of_all_allows_any() -> None:
    assert watched(0, BAD).objection() is not None
    assert watched(1, *[BAD] * 500).objection() is None


def test_many_successes_do_not_hide_a_new_fault() -> None:
    watch = watched(0.2, *[OK] * 10_000, *[BAD] * (RECENT // 5))
    assert watch.objection() is None
    watch.saw(BAD)
    assert watch.objection() == "21 of the last 100 jobs that finished failed again, more than 20%"


def test_what_ended_otherwise_does_not_count() -> None:
    assert watched(0, JobState.CANCELLED, JobState.EXPIRED).objection() is None


def test_a_report_adds_up() -> None:
    report = Replayed(found=10, replayed=7, succeeded=3, failed=1, cancelled=1)

    assert (report.left, report.unfinished) == (3, 2)
