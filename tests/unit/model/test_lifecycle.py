"""The lifecycle: which moves there are, and what becomes of a job by each outcome and each person's wish."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mainspring.errors import IllegalMove
from mainspring.model.failure import Failure
from mainspring.model.fairness import TURN, Line
from mainspring.model.fingerprint import fingerprint
from mainspring.model.job import Job, JobState, NewJob, Wish
from mainspring.model.lifecycle import (
    MAX_LOSSES,
    MOVES,
    Asked,
    Settlement,
    cancel,
    discard,
    expire,
    finish,
    pause,
    replay,
    resume,
    settle,
)
from mainspring.model.outcome import (
    Cancelled,
    Expanded,
    Failed,
    Lost,
    Outcome,
    Paused,
    Returned,
    Snoozed,
    Succeeded,
    Suspended,
    TimedOut,
)
from mainspring.model.retry import Retry
from mainspring.model.workflow import Tally

BLOCKED, SCHEDULED, READY, RUNNING, RETRYING, PAUSED, SUCCEEDED, FAILED, CANCELLED, EXPIRED = JobState

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
BOOM = Failure(type="ValueError", message="boom", traceback="Traceback …", fingerprint="a1")
SLOW = Failure(type="TimeoutError", message="took too long", fingerprint="b2")
RETRY = Retry(max_attempts=3, base="2s", cap="1h")
MEMBERS = tuple(NewJob(id=UUID(int=n), task="part", payload="{}", workflow=UUID(int=1)) for n in (2, 3))
FINAL = [state for state in JobState if state.final]
WAITING = [state for state in JobState if not state.final and state is not RUNNING]


def job(state: JobState = RUNNING, **changes: Any) -> Job:
    """Return a job that is in its second attempt, has been lost once and was claimed five times."""
    unknown: dict[str, Any] = dict.fromkeys(Job.__struct_fields__) | {"holds": (), "awaited": False}
    known = {"id": UUID(int=1), "task": "send", "state": state, "run_at": NOW, "attempt": 2, "losses": 1, "fence": 5}
    return Job(**unknown | known | changes)


def worker_lost(message: str) -> Failure:
    return Failure(type="WorkerLost", message=message, fingerprint=fingerprint("send", "WorkerLost", "", ""))


def settled(**facts: Any) -> Settlement:
    """Return a settlement of `job()` that keeps its counters unless *facts* say otherwise."""
    given: dict[str, Any] = {"job_id": UUID(int=1), "fence": 5, "source": RUNNING, "attempt": 2, "losses": 1}
    return Settlement(**given | facts)


def bare(answer: Any) -> Any:
    """Return *answer* without the job that it was decided on, which every settlement carries along."""
    return replace(answer, job=None) if isinstance(answer, Settlement) else answer


def test_a_failure_that_knows_how_long_another_try_is_in_vain_waits_so_long_and_its_backoff_on_top() -> None:
    hurt = Failed(BOOM, after=60 * SECOND)

    assert settle(job(), hurt, RETRY).delay == 64 * SECOND
    assert settle(job(attempt=3), hurt, RETRY).state is FAILED


# --- the table of moves


def test_every_state_has_its_moves() -> None:
    assert set(MOVES) == set(JobState)


@pytest.mark.parametrize(
    ("source", "states"),
    [
        (BLOCKED, {SCHEDULED, READY, PAUSED, SUCCEEDED, FAILED, CANCELLED, EXPIRED}),
        (SCHEDULED, {READY, PAUSED, CANCELLED, EXPIRED}),
        (READY, {SCHEDULED, RUNNING, PAUSED, CANCELLED, EXPIRED}),
        (RUNNING, {BLOCKED, SCHEDULED, READY, RETRYING, PAUSED, SUCCEEDED, FAILED, CANCELLED}),
        (RETRYING, {READY, PAUSED, CANCELLED, EXPIRED}),
        (PAUSED, {BLOCKED, SCHEDULED, READY, FAILED, CANCELLED, EXPIRED}),
    ],
)
def test_an_unfinished_job_has_these_moves_and_no_others(source: JobState, states: set[JobState]) -> None:
    assert MOVES[source] == states


def test_no_state_moves_to_itself() -> None:
    assert [state for state in JobState if state in MOVES[state]] == []


@pytest.mark.parametrize("state", FINAL)
def test_a_final_state_leads_to_a_new_life_or_nowhere_but_a_failed_job_may_be_discarded(state: JobState) -> None:
    new_life = {BLOCKED, SCHEDULED, READY}

    assert MOVES[state] <= (new_life | {CANCELLED} if state is FAILED else new_life)


def test_a_job_that_succeeded_stays_so() -> None:
    assert MOVES[SUCCEEDED] == frozenset()


@pytest.mark.parametrize("state", [FAILED, CANCELLED, EXPIRED])
def test_a_job_that_ended_without_success_can_live_again(state: JobState) -> None:
    assert READY in MOVES[state]


@pytest.mark.parametrize("state", [*WAITING, RUNNING])
def test_every_unfinished_job_can_be_cancelled(state: JobState) -> None:
    assert CANCELLED in MOVES[state]


@pytest.mark.parametrize("state", WAITING)
def test_every_waiting_job_can_expire(state: JobState) -> None:
    assert EXPIRED in MOVES[state]


def test_a_running_job_does_not_expire() -> None:
    assert EXPIRED not in MOVES[RUNNING]


def test_only_a_ready_job_starts_to_run() -> None:
    assert [state for state in JobState if RUNNING in MOVES[state]] == [READY]


def test_only_a_running_job_is_retried() -> None:
    assert [source for source in JobState if RETRYING in MOVES[source]] == [RUNNING]


@pytest.mark.parametrize(("state", "sources"), [(SUCCEEDED, [BLOCKED, RUNNING]), (FAILED, [BLOCKED, RUNNING, PAUSED])])
def test_a_job_succeeds_or_fails_that_runs_or_is_a_workflow_whose_members_did(
    state: JobState, sources: list[JobState]
) -> None:
    assert [source for source in JobState if state in MOVES[source]] == sources


def test_the_table_can_not_be_changed() -> None:
    with pytest.raises(TypeError):
        MOVES[SUCCEEDED] = frozenset({READY})  # type: ignore[index]


@pytest.mark.parametrize(
    ("source", "state"), [pair for pair in product(JobState, JobState) if pair[1] in MOVES[pair[0]]]
)
def test_a_move_of_the_table_makes_a_settlement(source: JobState, state: JobState) -> None:
    made = settled(source=source, state=state)

    assert (made.source, made.state) == (source, state)


@pytest.mark.parametrize(
    ("source", "state"), [pair for pair in product(JobState, JobState) if pair[1] not in MOVES[pair[0]]]
)
def test_any_other_move_is_illegal(source: JobState, state: JobState) -> None:
    with pytest.raises(IllegalMove, match=f"^a job can't move from {source} to {state}$"):
        settled(source=source, state=state)


# --- what becomes of a running job

SETTLED: list[tuple[Outcome, Settlement]] = [
    (Succeeded("42"), settled(state=SUCCEEDED, outcome="succeeded", result="42", worked=True)),
    (Failed(BOOM), settled(state=RETRYING, outcome="failed", failure=BOOM, delay=4 * SECOND, worked=False)),
    (Failed(BOOM, retryable=False), settled(state=FAILED, outcome="failed", failure=BOOM)),
    (TimedOut(SLOW), settled(state=RETRYING, outcome="timed_out", failure=SLOW, delay=4 * SECOND, worked=False)),
    (TimedOut(SLOW, retryable=False), settled(state=FAILED, outcome="timed_out", failure=SLOW)),
    (Snoozed(9 * SECOND), settled(state=SCHEDULED, outcome="snoozed", delay=9 * SECOND, attempt=1)),
    (
        Suspended(9 * SECOND),
        settled(state=SCHEDULED, outcome="suspended", delay=9 * SECOND, attempt=1, losses=0, started=True),
    ),
    (
        Suspended(9 * SECOND, "paid"),
        settled(state=BLOCKED, outcome="suspended", delay=9 * SECOND, attempt=1, losses=0, signal="paid", started=True),
    ),
    (
        Expanded(MEMBERS, "{}"),
        settled(state=BLOCKED, outcome="expanded", spawn=MEMBERS, plan="{}", pending=2, started=True, worked=True),
    ),
    (Expanded((), "{}"), settled(state=SUCCEEDED, outcome="expanded", result="null", worked=True)),
    (Expanded((), '{"gathers":true}'), settled(state=SUCCEEDED, outcome="expanded", result="[]", worked=True)),
    (Cancelled("wrong file"), settled(state=CANCELLED, outcome="cancelled", reason="wrong file")),
    (Cancelled(), settled(state=CANCELLED, outcome="cancelled")),
    (Paused("lunch"), settled(state=PAUSED, outcome="paused", reason="lunch", attempt=1)),
    (Paused(), settled(state=PAUSED, outcome="paused", attempt=1)),
    (
        Lost("no beat for 15s"),
        settled(
            state=READY,
            outcome="lost",
            failure=worker_lost("no beat for 15s"),
            attempt=1,
            losses=2,
        ),
    ),
    (Returned(), settled(state=READY, outcome="returned", attempt=1)),
]
OUTCOMES: list[Outcome] = [outcome for outcome, _ in SETTLED]


@pytest.mark.parametrize(("outcome", "settlement"), SETTLED)
def test_each_outcome_has_one_settlement(outcome: Outcome, settlement: Settlement) -> None:
    made = settle(job(), outcome, RETRY)

    assert bare(made) == settlement
    assert made.job == job()


def test_every_outcome_is_in_the_table() -> None:
    assert {type(outcome) for outcome in OUTCOMES} == set(Outcome.__args__)


@pytest.mark.parametrize("state", [state for state in JobState if state is not RUNNING])
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_job_that_does_not_run_has_no_outcome(state: JobState, outcome: Outcome) -> None:
    with pytest.raises(IllegalMove):
        settle(job(state), outcome, RETRY)


@pytest.mark.parametrize("outcome", [Failed(BOOM), TimedOut(SLOW)])
@pytest.mark.parametrize(
    ("attempt", "state"), [(1, RETRYING), (2, RETRYING), (3, FAILED), (4, FAILED), (1_000_000, FAILED)]
)
def test_a_failure_is_retried_until_the_attempts_are_used_up(outcome: Outcome, attempt: int, state: JobState) -> None:
    made = settle(job(attempt=attempt), outcome, RETRY)

    assert (made.state, made.attempt) == (state, attempt)


@pytest.mark.parametrize("attempt", [1, 2, 3])
def test_a_failure_that_is_not_retryable_ends_the_job_at_any_attempt(attempt: int) -> None:
    assert settle(job(attempt=attempt), Failed(BOOM, retryable=False), RETRY).state is FAILED


def test_a_dead_letter_has_a_fingerprint_though_its_failure_had_none() -> None:
    one, two = (settle(job(), Failed(Failure(type="E", message=f"code {code}"))).failure for code in (1, 2))

    assert one is not None
    assert two is not None
    assert one.fingerprint == two.fingerprint == fingerprint("send", "E", "code 1", "")


def test_without_a_policy_a_failure_ends_the_job() -> None:
    assert settle(job(attempt=1), Failed(BOOM)).state is FAILED


@pytest.mark.parametrize(("attempt", "jitter", "seconds"), [(1, 1.0, 2), (2, 1.0, 4), (1, 0.5, 1), (2, 1.5, 6)])
def test_a_retry_waits_as_its_policy_says(attempt: int, jitter: float, seconds: int) -> None:
    assert settle(job(attempt=attempt), Failed(BOOM), RETRY, jitter).delay == seconds * SECOND


@pytest.mark.parametrize(
    "outcome", [Snoozed(SECOND), Suspended(SECOND), Suspended(SECOND, "paid"), Paused(), Returned(), Lost("gone")]
)
@pytest.mark.parametrize("attempt", [1, 2, 3])
def test_what_is_not_the_handlers_fault_costs_no_attempt(outcome: Outcome, attempt: int) -> None:
    assert settle(job(attempt=attempt, losses=0), outcome, RETRY).attempt == attempt - 1


@pytest.mark.parametrize("outcome", [Succeeded("1"), Failed(BOOM), TimedOut(SLOW), Cancelled()])
def test_what_the_handler_did_costs_an_attempt(outcome: Outcome) -> None:
    assert settle(job(), outcome, RETRY).attempt == 2


@pytest.mark.parametrize("outcome", [outcome for outcome in OUTCOMES if not isinstance(outcome, Lost | Suspended)])
def test_only_the_death_of_a_worker_counts_as_a_loss(outcome: Outcome) -> None:
    assert settle(job(losses=2), outcome, RETRY).losses == 2


def test_a_job_that_sleeps_has_left_behind_what_its_workers_died_of() -> None:
    assert settle(job(losses=2), Suspended(SECOND)).losses == 0


@pytest.mark.parametrize(("losses", "state"), [(0, READY), (1, READY), (2, FAILED), (3, FAILED)])
def test_a_job_is_quarantined_with_its_third_loss(losses: int, state: JobState) -> None:
    made = settle(job(losses=losses), Lost("gone"), Retry(max_attempts=100))

    assert (made.state, made.losses) == (state, losses + 1)


def test_a_quarantined_job_says_why() -> None:
    made = settle(job(losses=MAX_LOSSES - 1), Lost("killed by signal 9"))

    assert made.outcome == "lost"
    assert made.failure == worker_lost("killed by signal 9")


def test_losses_leave_all_attempts_to_the_handler() -> None:
    assert settle(job(attempt=3, losses=0), Lost("gone"), RETRY).state is READY


@pytest.mark.parametrize("outcome", [Paused(), Returned(), Lost("gone")])
def test_a_job_that_was_interrupted_keeps_its_place(outcome: Outcome) -> None:
    assert settle(job(), outcome, RETRY).delay is None


@pytest.mark.parametrize("wish", list(Wish))
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_wish_plays_no_part_in_a_settlement(outcome: Outcome, wish: Wish) -> None:
    assert bare(settle(job(wish=wish, reason="asked"), outcome, RETRY)) == bare(settle(job(), outcome, RETRY))


COUNTS = st.integers(min_value=0, max_value=2**31 - 1)


@given(
    outcome=st.sampled_from(OUTCOMES),
    number=st.integers(min_value=1, max_value=2**63 - 1),
    attempt=st.integers(min_value=1, max_value=2**31 - 1),
    losses=COUNTS,
)
def test_a_settlement_carries_the_job_the_fence_and_the_source(
    outcome: Outcome, number: int, attempt: int, losses: int
) -> None:
    running = job(id=UUID(int=number), fence=number, attempt=attempt, losses=losses)

    made = settle(running, outcome, RETRY)

    assert (made.job_id, made.fence, made.source) == (UUID(int=number), number, RUNNING)
    assert made.attempt >= 0


@given(
    outcome=st.sampled_from(OUTCOMES),
    attempt=st.integers(min_value=1, max_value=9),
    jitter=st.floats(min_value=0.5, max_value=1.5),
)
def test_the_same_facts_make_the_same_settlement(outcome: Outcome, attempt: int, jitter: float) -> None:
    running = job(attempt=attempt)
    before = msgspec.structs.replace(running)

    one, other = settle(running, outcome, RETRY, jitter), settle(running, outcome, RETRY, jitter)

    assert one == other
    assert running == before


# --- whole lives


def claimed(waiting: Job) -> Job:
    return msgspec.structs.replace(waiting, state=RUNNING, attempt=waiting.attempt + 1, fence=waiting.fence + 1)


def lived(outcomes: list[Outcome], retry: Retry) -> list[Job]:
    """Return a new job as it is after each of *outcomes* in turn, up to its end."""
    life = [job(READY, attempt=0, losses=0, fence=0)]
    for outcome in outcomes:
        running = claimed(life[-1])
        made = settle(running, outcome, retry)
        life.append(msgspec.structs.replace(running, state=made.state, attempt=made.attempt, losses=made.losses))
        if made.state.final or isinstance(outcome, Expanded):  # a workflow does not run again: its members do
            break
    return life[1:]


@given(outcomes=st.lists(st.sampled_from(OUTCOMES), max_size=30), max_attempts=st.integers(1, 5))
def test_no_life_has_more_attempts_or_losses_than_allowed(outcomes: list[Outcome], max_attempts: int) -> None:
    life = lived(outcomes, Retry(max_attempts=max_attempts))

    assert all(0 <= moment.attempt <= max_attempts for moment in life)
    assert all(0 <= moment.losses <= MAX_LOSSES for moment in life)


@given(outcomes=st.lists(st.sampled_from(OUTCOMES), max_size=30), max_attempts=st.integers(1, 5))
def test_the_attempt_counts_the_failures_and_the_losses_count_the_deaths(
    outcomes: list[Outcome], max_attempts: int
) -> None:
    life = lived(outcomes, Retry(max_attempts=max_attempts))

    happened = outcomes[: len(life)]
    slept = max((n for n, outcome in enumerate(happened) if isinstance(outcome, Suspended)), default=-1)
    deaths = sum(isinstance(outcome, Lost) for outcome in happened[slept + 1 :])
    failures = sum(isinstance(outcome, Failed | TimedOut | Expanded) for outcome in happened)
    assert life == [] or life[-1].losses == deaths
    assert life == [] or life[-1].state.final or life[-1].attempt == failures


@pytest.mark.parametrize("max_attempts", [1, 2, 5])
def test_a_job_that_always_fails_runs_exactly_max_attempts_times(max_attempts: int) -> None:
    life = lived([Failed(BOOM)] * 20, Retry(max_attempts=max_attempts))

    assert [moment.state for moment in life] == [RETRYING] * (max_attempts - 1) + [FAILED]


def test_a_job_that_kills_its_workers_runs_exactly_three_times() -> None:
    life = lived([Lost("gone")] * 20, Retry(max_attempts=100))

    assert [moment.state for moment in life] == [READY, READY, FAILED]


def test_losses_in_between_do_not_use_up_retries() -> None:
    life = lived([Lost("gone"), Failed(BOOM), Lost("gone"), Failed(BOOM), Succeeded("1")], RETRY)

    assert [moment.state for moment in life] == [READY, RETRYING, READY, RETRYING, SUCCEEDED]


@pytest.mark.parametrize(
    "outcome", [Snoozed(SECOND), Suspended(SECOND), Suspended(SECOND, "paid"), Paused(), Returned()]
)
def test_a_job_may_be_put_off_for_ever(outcome: Outcome) -> None:
    life = lived([outcome] * 200, Retry(max_attempts=1))

    assert len(life) == 200
    assert {moment.attempt for moment in life} == {0}


# --- what a person asks for

Answer = Settlement | Asked | None


def verdict(answer: Answer) -> JobState | Wish | str | None:
    """Return in a word what *answer* does: the state moved to, the wish left, "unasked" or nothing."""
    if isinstance(answer, Asked):
        return answer.wish or "unasked"
    return answer.state if answer else None


SITUATIONS: list[tuple[JobState, Wish | None]] = [
    *[(state, None) for state in JobState],
    (RUNNING, Wish.CANCEL),
    (RUNNING, Wish.PAUSE),
]

CANCELS: dict[tuple[JobState, Wish | None], JobState | Wish] = {
    (BLOCKED, None): CANCELLED,
    (SCHEDULED, None): CANCELLED,
    (READY, None): CANCELLED,
    (RETRYING, None): CANCELLED,
    (PAUSED, None): CANCELLED,
    (RUNNING, None): Wish.CANCEL,
    (RUNNING, Wish.PAUSE): Wish.CANCEL,
}

PAUSES: dict[tuple[JobState, Wish | None], JobState | Wish] = {
    (BLOCKED, None): PAUSED,
    (SCHEDULED, None): PAUSED,
    (READY, None): PAUSED,
    (RETRYING, None): PAUSED,
    (RUNNING, None): Wish.PAUSE,
}

RESUMES: dict[tuple[JobState, Wish | None], JobState | str] = {
    (PAUSED, None): READY,
    (RUNNING, Wish.PAUSE): "unasked",
}

REPLAYS: dict[tuple[JobState, Wish | None], JobState] = {
    (FAILED, None): READY,
    (CANCELLED, None): READY,
    (EXPIRED, None): READY,
}


@pytest.mark.parametrize(("state", "wish"), SITUATIONS)
def test_cancel_ends_asks_or_leaves_alone(state: JobState, wish: Wish | None) -> None:
    assert verdict(cancel(job(state, wish=wish))) == CANCELS.get((state, wish))


@pytest.mark.parametrize(("state", "wish"), SITUATIONS)
def test_pause_holds_asks_or_leaves_alone(state: JobState, wish: Wish | None) -> None:
    assert verdict(pause(job(state, wish=wish))) == PAUSES.get((state, wish))


@pytest.mark.parametrize(("state", "wish"), SITUATIONS)
def test_resume_goes_on_unasks_or_leaves_alone(state: JobState, wish: Wish | None) -> None:
    assert verdict(resume(job(state, wish=wish), NOW)) == RESUMES.get((state, wish))


@pytest.mark.parametrize(("state", "wish"), SITUATIONS)
def test_replay_revives_what_ended_without_success_and_nothing_else(state: JobState, wish: Wish | None) -> None:
    assert verdict(replay(job(state, wish=wish))) == REPLAYS.get((state, wish))


@pytest.mark.parametrize("state", list(JobState))
def test_only_a_failed_job_is_discarded_and_keeps_its_counters(state: JobState) -> None:
    answer = discard(job(state, attempt=8, losses=3), "a typo")

    gone = settled(source=FAILED, state=CANCELLED, attempt=8, losses=3, reason="a typo")
    assert bare(answer) == (gone if state is FAILED else None)


@pytest.mark.parametrize(
    ("due_in", "state"), [(-SECOND, READY), (timedelta(0), READY), (timedelta(microseconds=1), SCHEDULED)]
)
def test_a_resumed_job_is_due_when_it_was(due_in: timedelta, state: JobState) -> None:
    answer = resume(job(PAUSED, run_at=NOW + due_in), NOW)

    assert bare(answer) == settled(source=PAUSED, state=state)


@pytest.mark.parametrize("state", [FAILED, CANCELLED, EXPIRED])
def test_a_replayed_job_has_fresh_counters_the_same_fence_and_is_due_at_once(state: JobState) -> None:
    answer = replay(job(state, attempt=8, losses=3), "fixed")

    assert bare(answer) == settled(source=state, state=READY, attempt=0, losses=0, delay=timedelta(0), reason="fixed")


@pytest.mark.parametrize(("decide", "state"), [(cancel, CANCELLED), (pause, PAUSED)])
def test_a_waiting_job_moves_with_the_reason_and_keeps_its_counters(
    decide: Callable[[Job, str], Answer], state: JobState
) -> None:
    assert bare(decide(job(READY), "by hand")) == settled(source=READY, state=state, reason="by hand")


@pytest.mark.parametrize(("decide", "wish"), [(cancel, Wish.CANCEL), (pause, Wish.PAUSE)])
def test_a_wish_for_a_running_job_carries_the_fence_and_the_reason(
    decide: Callable[[Job, str], Answer], wish: Wish
) -> None:
    assert decide(job(), "by hand") == Asked(job_id=UUID(int=1), fence=5, wish=wish, reason="by hand")


def test_taking_back_a_wish_leaves_no_reason() -> None:
    answer = resume(job(wish=Wish.PAUSE, reason="lunch"), NOW)

    assert answer == Asked(job_id=UUID(int=1), fence=5, wish=None, reason=None)


@pytest.mark.parametrize("decide", [cancel, pause, replay, discard])
@pytest.mark.parametrize("state", list(JobState))
def test_no_reason_need_be_given(decide: Callable[[Job], Answer], state: JobState) -> None:
    answer = decide(job(state))

    assert answer is None or answer.reason is None


@pytest.mark.parametrize("decide", [cancel, pause, replay, discard, lambda item: resume(item, NOW)])
@pytest.mark.parametrize(("state", "wish"), SITUATIONS)
def test_the_same_facts_get_the_same_answer(
    decide: Callable[[Job], Answer], state: JobState, wish: Wish | None
) -> None:
    asked = job(state, wish=wish)

    assert decide(asked) == decide(asked)
    assert asked == job(state, wish=wish)


# --- jobs with a fair key


def fair_job(state: JobState, **changes: Any) -> Job:
    return job(state, queue="mail", priority=5, fair="acme", weight=4, **changes)


@pytest.mark.parametrize("state", [FAILED, CANCELLED, EXPIRED])
def test_a_job_with_a_fair_key_that_is_replayed_waits_for_its_turn(state: JobState) -> None:
    answer = replay(fair_job(state))

    assert answer is not None
    assert (answer.state, answer.delay) == (SCHEDULED, timedelta(0))


def test_a_job_with_a_fair_key_that_is_resumed_waits_for_its_turn() -> None:
    answer = resume(fair_job(PAUSED), NOW)

    assert isinstance(answer, Settlement)
    assert (answer.state, answer.delay) == (SCHEDULED, None)


def test_one_that_leaves_its_line_unserved_takes_what_it_paid_with_it() -> None:
    line = Line("mail", 5, "send", "acme")
    for answer in (cancel(fair_job(READY)), pause(fair_job(READY)), expire(fair_job(READY, expires_at=NOW))):
        assert isinstance(answer, Settlement)
        assert answer.leaves == (line, TURN // 4)


@pytest.mark.parametrize("state", [BLOCKED, SCHEDULED, RETRYING])
def test_one_that_does_not_stand_in_line_leaves_none(state: JobState) -> None:
    answer = cancel(fair_job(state))

    assert isinstance(answer, Settlement)
    assert answer.leaves is None


# --- workflows


BEGUN = '{"begun":true}'


@pytest.mark.parametrize(
    ("counts", "wish", "state"),
    [
        ({SUCCEEDED: 2}, None, SUCCEEDED),
        ({SUCCEEDED: 1, FAILED: 1}, None, FAILED),
        ({EXPIRED: 1}, None, FAILED),
        ({SUCCEEDED: 1, CANCELLED: 1}, None, CANCELLED),
        ({CANCELLED: 1, FAILED: 1}, Wish.CANCEL, FAILED),
        ({SUCCEEDED: 1}, Wish.CANCEL, CANCELLED),
    ],
)
def test_a_workflow_ends_as_its_members_did(counts: dict[JobState, int], wish: Wish | None, state: JobState) -> None:
    made = finish(job(BLOCKED, plan=BEGUN, wish=wish, pending=0), Tally(counts=counts))

    assert made is not None
    assert made.state is state


@pytest.mark.parametrize("wish", [None, *Wish])
def test_a_workflow_with_members_that_live_or_one_that_runs_still_does_not_end(wish: Wish | None) -> None:
    """One that runs has not become a workflow yet, or should not have been claimed: its worker settles it."""
    done = Tally(counts={SUCCEEDED: 1})

    assert finish(job(BLOCKED, plan=BEGUN, wish=wish, pending=1), done) is None
    assert finish(job(RUNNING, plan=BEGUN, wish=wish, pending=0), done) is None


def test_a_workflow_that_is_held_ends_only_to_be_cancelled() -> None:
    done = Tally(counts={SUCCEEDED: 1})
    to_be_cancelled = finish(job(PAUSED, plan=BEGUN, pending=0, wish=Wish.CANCEL), done)

    assert finish(job(PAUSED, plan=BEGUN, pending=0), done) is None
    assert to_be_cancelled is not None
    assert to_be_cancelled.state is CANCELLED
