"""Pace: slow jobs are not hoarded, fast ones are taken ahead."""

from __future__ import annotations

import pytest

from mainspring.worker.pace import MOST, Pace


def paced(job: float, claim: float, slots: int = 8) -> Pace:
    pace = Pace(slots)
    for _ in range(200):
        pace.job_took(job)
        pace.claim_took(claim)
    return pace


def test_before_anything_is_known_no_more_is_taken_than_there_are_slots() -> None:
    assert Pace(8).at_hand == 8


def test_of_slow_jobs_no_more_are_taken_than_there_are_slots() -> None:
    assert paced(job=1.0, claim=0.005).at_hand == 8


def test_of_fast_jobs_as_many_are_taken_as_end_during_two_claims() -> None:
    assert paced(job=0.001, claim=0.005).at_hand == pytest.approx(8 + 2 * 8 * 5, abs=1)


def test_what_is_taken_ahead_is_bounded() -> None:
    assert paced(job=0.0, claim=10.0).at_hand == 8 + MOST


def test_jobs_that_turn_slow_are_noticed_within_few() -> None:
    pace = paced(job=0.00001, claim=0.005)
    pace.job_took(1.0)

    assert pace.at_hand < 16


def test_a_stall_counts_at_once() -> None:
    pace = paced(job=0.00001, claim=0.005)
    pace.stalled()

    assert pace.at_hand == 8
