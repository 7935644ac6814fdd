"""Jobs of a workflow run after their parents, and all end, while workers are killed and the server is restarted."""

from __future__ import annotations

import pytest

from tests.faults.dag_storm import Ledger, Planned, Seen, judge, storm
from tests.support.postgres import FAST_AND_LOOSE, running_server


@pytest.mark.slow
def test_parents_come_first_and_all_jobs_end_while_workers_die(url: str) -> None:
    account = storm(url, runs=2, nodes=60, kills=4, every=0.4, longest=0.1, patience=120)

    assert account.balanced, account
    assert account.kills


@pytest.mark.slow
def test_parents_come_first_and_all_jobs_end_while_the_server_restarts() -> None:
    with running_server(FAST_AND_LOOSE) as server:
        account = storm(server.url(), server, runs=2, nodes=60, kills=2, every=0.4, longest=0.1, patience=120)

    assert account.balanced, account
    assert account.restarts


# The judge of storms.

SUCCEEDED, FAILED, CANCELLED, QUARANTINED = (
    Seen("succeeded", 1, 0),
    Seen("failed", 1, 0),
    Seen("cancelled", 0, 0),
    Seen("failed", 3, 3),
)


def found(planned: list[Planned], lines: list[str], *seen: Seen) -> set[str]:
    """Return what is wrong with a run whose handlers wrote *lines*: what, node, fence, and results."""
    written = []
    for place, line in enumerate(lines, 1):
        what, node, fence, got = line.split()
        written.append((place, [what, "0", node, "id", fence, got, "0.0"]))
    return {what for what, _ in judge(planned, Ledger(written), dict(enumerate(seen)))}


PAIR = [Planned("sound", {}), Planned("sound", {0: "cancel"})]
IN_ORDER = ["begin 0 1 .", "end 0 1 .", "begin 1 1 0", "end 1 1 0"]


def test_a_child_after_its_parent_is_right() -> None:
    assert not found(PAIR, IN_ORDER, SUCCEEDED, SUCCEEDED)


def test_an_attempt_of_which_nothing_was_recorded_is_no_end() -> None:
    lost = ["begin 0 1 .", "end 0 1 .", "begin 0 2 .", "end 0 2 ."]
    child = ["begin 1 1 0", "end 1 1 0"]
    early = [*lost[:2], *child, *lost[2:]]

    assert not found(PAIR, [*lost, *child], Seen("succeeded", 2, 1), SUCCEEDED)
    assert found(PAIR, early, Seen("succeeded", 2, 1), SUCCEEDED) == {"began before a parent had ended"}


@pytest.mark.parametrize("policy", ["run", "cancel"])
def test_what_becomes_of_the_child_of_a_failed_parent_goes_by_its_policy(policy: str) -> None:
    planned = [Planned("doomed", {}), Planned("sound", {0: policy})]
    ran = ["begin 0 1 .", "fail 0 1 .", "begin 1 1 -", "end 1 1 -"]

    assert bool(found(planned, ran, FAILED, SUCCEEDED)) == (policy == "cancel")
    assert bool(found(planned, ran[:2], FAILED, CANCELLED)) == (policy == "run")
    assert "ran though a parent ended badly" in found(planned, ran, FAILED, CANCELLED)


def test_a_grandchild_waits_for_what_cancels_its_parent() -> None:
    planned = [Planned("doomed", {}), Planned("sound", {0: "cancel"}), Planned("sound", {1: "run"})]
    lines = ["begin 0 1 .", "fail 0 1 .", "begin 2 1 -", "end 2 1 -"]

    assert not found(planned, lines, FAILED, CANCELLED, SUCCEEDED)
    assert found(planned, [*lines[2:], *lines[:2]], FAILED, CANCELLED, SUCCEEDED)


def test_one_that_costs_too_many_workers_their_life_fails() -> None:
    assert not found(PAIR, ["begin 0 3 ."], QUARANTINED, CANCELLED)


def test_other_mistakes_are_found() -> None:
    assert found(PAIR, IN_ORDER[:2], SUCCEEDED) == {"state"}
    assert found([PAIR[0]], IN_ORDER[:1]) == {"state"}
    assert found(PAIR, [*IN_ORDER, "begin 1 1 0"], SUCCEEDED, SUCCEEDED) == {"fence used twice"}
    assert found(PAIR, [*IN_ORDER[:2], "begin 1 1 -", "end 1 1 -"], SUCCEEDED, SUCCEEDED) == {"got other results"}
    assert found(PAIR, IN_ORDER[:3], SUCCEEDED, SUCCEEDED) == {"recorded without having ended"}
