"""Notify: whoever wants to know is told of what really happened, once, and in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from mainspring.errors import LeaseLost
from mainspring.model.channel import Email, Webhook, encode_channels
from mainspring.model.failure import Failure
from mainspring.model.job import NOTIFY_QUEUE as QUEUE
from mainspring.model.job import Job, JobState
from mainspring.model.lifecycle import settle
from mainspring.model.notice import EMAIL, WEBHOOK
from mainspring.model.outcome import Cancelled, Expanded, Failed, Outcome, Snoozed, Succeeded
from mainspring.model.retry import Retry
from mainspring.model.schedule import Misfire
from mainspring.model.trigger import every
from mainspring.store import open_store
from mainspring.store import settle as settling
from mainspring.store.database import Row, Runner
from mainspring.store.protocol import LetterFilter
from mainspring.store.settle import apply
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.databases import execute, table
from tests.support.factories import (
    FAILURE,
    SUCCESS,
    claimed_job,
    claimed_jobs,
    end,
    new_id,
    new_job,
    new_workflow,
    opened_session,
    state_of,
    stored,
    work_off,
)
from tests.support.notices import HOOK, events, notice_of, notifications, telling
from tests.support.refusal import refusing
from tests.support.schedules import fire, new_schedule

BOOM = Failure(type="ValueError", message="boom", traceback="line 1\nline 2")
TWICE = Retry(max_attempts=2)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


# --- what is told


def test_a_failure_is_told_by_a_job_of_the_same_team(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store, team="acme", notify=telling(), payload='{"args":["private"],"kwargs":{}}', trace="00-1")
    clock.advance("2s")

    store.settle([settle(job, Failed(BOOM, retryable=False))])

    (told,) = notifications(store)
    assert (told.task, told.queue, told.team, told.state) == (WEBHOOK, QUEUE, "acme", JobState.SCHEDULED)
    assert notice_of(told) == {
        "event": "failure",
        "team": "acme",
        "at": clock.now().isoformat(timespec="milliseconds"),
        "job_id": str(job.id),
        "task": "greet",
        "queue": "default",
        "state": "failed",
        "attempt": 1,
        "schedule": None,
        "tick": None,
        "workflow": None,
        "created_at": job.created_at.isoformat(timespec="milliseconds"),
        "started_at": (clock.now() - 2 * SECOND).isoformat(timespec="milliseconds"),
        "retry_in_seconds": None,
        "reason": None,
        "error": {"type": "ValueError", "message": "boom"},
    }
    assert "private" not in told.payload


def test_where_to_and_by_which_secret_stands_in_no_payload(store: SqlStore) -> None:
    hook = Webhook("https://example.org/services/T0/B1/token", secret="canary")
    job = claimed_job(store, notify=telling(hook))

    store.settle([settle(job, FAILURE)])

    (told,) = notifications(store)
    assert "canary" not in told.payload
    assert "token" not in told.payload
    assert told.notify == encode_channels([hook])


def test_long_messages_are_cut(store: SqlStore) -> None:
    job = claimed_job(store, notify=telling())

    store.settle([settle(job, Failed(Failure(type="E", message="x" * 9_000), retryable=False))])

    assert len(notice_of(notifications(store)[0])["error"]["message"]) < 2_100


@pytest.mark.parametrize(
    ("outcome", "retry", "expected"),
    [
        (SUCCESS, TWICE, ["success"]),
        (Failed(BOOM), TWICE, ["retry"]),
        (Failed(BOOM, retryable=False), TWICE, ["failure"]),
        (Cancelled("no more"), TWICE, []),
        (Snoozed(SECOND), TWICE, []),
        (Expanded((), "{}"), TWICE, ["success"]),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_each_end_of_an_attempt_is_an_event_or_none(
    store: SqlStore, outcome: Outcome, retry: Retry, expected: list[str]
) -> None:
    job = claimed_job(store, notify=telling())

    store.settle([settle(job, outcome, retry)])

    assert events(store) == expected


def test_only_events_that_were_asked_for_are_told(store: SqlStore) -> None:
    channels = telling(Webhook("https://a.example", on="success"), Email("ops@example.org", on=["failure", "retry"]))
    job = claimed_job(store, notify=channels)

    store.settle([settle(job, FAILURE)])

    assert [(one.task, notice_of(one)["event"]) for one in notifications(store)] == [(EMAIL, "failure")]


def test_a_lost_job_is_a_retry_and_one_that_was_lost_too_often_a_failure(store: SqlStore, clock: SettableClock) -> None:
    job = new_job(notify=telling())
    store.enqueue([job])
    for _ in range(3):
        (held,) = store.claim(opened_session(store), "default", 1)
        if held.losses:
            store.charge(held)
        clock.advance("16s")
        store.reap()

    assert events(store) == ["failure", "retry", "retry"]
    assert state_of(store, job) is JobState.FAILED


def test_a_job_that_expires_has_failed_as_far_as_people_care(store: SqlStore, clock: SettableClock) -> None:
    store.enqueue([new_job(notify=telling(), expires=SECOND)])
    clock.advance("2s")

    store.expire()

    (told,) = notifications(store)
    assert (notice_of(told)["event"], notice_of(told)["state"]) == ("failure", "expired")
    assert "had not started" in notice_of(told)["reason"]


def test_a_person_who_cancels_knows(store: SqlStore) -> None:
    job = new_job(notify=telling())
    store.enqueue([job])
    letter = claimed_job(store, notify=telling(Webhook("https://a.example", on="success")), queue="other")
    store.settle([settle(letter, FAILURE)])

    store.cancel([job.id])
    store.discard_letters(store.dead_letters(LetterFilter()))

    assert state_of(store, job) is state_of(store, letter) is JobState.CANCELLED
    assert events(store) == []


def test_a_retry_that_a_person_has_cancelled_meanwhile_is_no_news(store: SqlStore) -> None:
    job = claimed_job(store, notify=telling())
    store.cancel([job.id])

    store.settle([settle(job, Failed(BOOM), TWICE)])

    assert state_of(store, job) is JobState.CANCELLED
    assert events(store) == []


def test_those_who_wait_for_the_queue_are_woken(real_store: SqlStore) -> None:
    job = claimed_job(real_store, notify=telling())
    listener = real_store.listen({QUEUE})

    real_store.settle([settle(job, FAILURE)])

    assert listener.wait(10) == {QUEUE}
    listener.close()


def test_what_tells_people_is_told_of_by_nobody(store: SqlStore) -> None:
    store.put_rule("default", "all", HOOK)
    end(store, _enqueued(store), FAILURE)
    (told,) = notifications(store)

    session = opened_session(store)
    (held,) = store.claim(session, QUEUE, 1)
    store.settle([settle(held, FAILURE)])

    assert state_of(store, told) is JobState.FAILED
    assert len(notifications(store)) == 1


def test_who_can_not_be_read_is_not_told_and_the_job_ends_all_the_same(store: SqlStore) -> None:
    job = claimed_job(store, notify='[{"kind":"pigeon"}]')

    assert store.settle([settle(job, FAILURE)]) == {job.id}
    assert events(store) == []


# --- only what really happened, and once


def test_nobody_is_told_of_a_settlement_that_came_too_late(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store, notify=telling(Webhook("https://a.example", on="success")))
    clock.advance("1h")
    store.reap()
    (again,) = store.claim(opened_session(store), "default", 1)

    assert store.settle([settle(job, SUCCESS)]) == set()
    assert events(store) == []

    store.settle([settle(again, SUCCESS)])
    assert events(store) == ["success"]


def test_nobody_is_told_of_a_transaction_that_is_rolled_back(store: SqlStore) -> None:
    job = claimed_job(store, notify=telling())

    with pytest.raises(ZeroDivisionError), store.transaction(lambda: settle(job, SUCCESS)):
        raise ZeroDivisionError

    assert events(store) == []
    with store.transaction(lambda: settle(job, SUCCESS)):
        pass
    assert events(store) == ["success"]


def test_nobody_is_told_by_a_transaction_whose_job_is_lost(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store, notify=telling(Webhook("https://a.example", on="success")))
    clock.advance("1h")
    store.reap()

    with pytest.raises(LeaseLost), store.transaction(lambda: settle(job, SUCCESS)):
        pass

    assert events(store) == []


def test_a_job_does_not_end_if_those_can_not_be_told_who_want_to_be(store: SqlStore, url: str) -> None:
    job = claimed_job(store, notify=telling())

    with refusing(url, "INSERT", "jobs", f"NEW.queue = '{QUEUE}'"), pytest.raises(Exception, match="refused"):
        store.settle([settle(job, FAILURE)])

    assert state_of(store, job) is JobState.RUNNING
    store.settle([settle(job, FAILURE)])
    assert events(store) == ["failure"]


class InDoubt:
    """A runner as it is when an earlier try of the same call lost its reply."""

    in_doubt = True

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def run(self, query: str, /, **parameters: object) -> list[Row]:
        return self._runner.run(query, **parameters)


@pytest.mark.parametrize("outcome", [SUCCESS, FAILURE, Failed(BOOM)], ids=lambda outcome: outcome.name)
def test_a_settle_that_is_done_again_because_its_reply_was_lost_tells_nobody_twice(
    store: SqlStore, clock: SettableClock, outcome: Outcome
) -> None:
    job = claimed_job(store, notify=telling())
    settlement = settle(job, outcome, TWICE)

    first, _ = store._db.transact(lambda tx: apply(tx, [settlement]))
    clock.advance("1s")
    again, _ = store._db.transact(lambda tx: apply(InDoubt(tx), [settlement]))

    assert first == again == {job.id}
    assert len(notifications(store)) == 1


def test_a_job_that_is_given_twice_is_told_of_once(store: SqlStore) -> None:
    job = claimed_job(store, notify=telling())

    store.settle([settle(job, FAILURE), settle(job, FAILURE)])

    assert events(store) == ["failure"]


def test_one_place_is_told_once_whoever_names_it(store: SqlStore) -> None:
    store.put_rule("default", "all", Webhook(HOOK.url, on="failure", secret="other"))
    job = claimed_job(store, notify=telling(HOOK, HOOK))

    store.settle([settle(job, FAILURE)])

    (told,) = notifications(store)
    assert told.notify == telling(HOOK)


def test_each_of_many_is_told_of_under_an_id_of_its_own(store: SqlStore) -> None:
    store.enqueue([new_job(notify=telling(HOOK, Email("ops@example.org", on="success"))) for _ in range(50)])

    store.settle([settle(job, SUCCESS) for job in claimed_jobs(store).values()])

    assert len({job.id for job in notifications(store)}) == 100


# --- what teams want


def _enqueued(store: SqlStore, **changes: Any) -> Any:
    job = new_job(**changes)
    store.enqueue([job])
    return job


def test_a_rule_holds_for_all_jobs_of_its_team_and_for_no_others(store: SqlStore) -> None:
    store.put_rule("acme", "ops", Email("ops@acme.example", on="failure"))
    store.put_rule("default", "ops", Email("ops@default.example", on="failure"))
    session = opened_session(store)
    jobs = {team: claimed_job(store, session, team=team) for team in ("acme", "beta", None)}

    store.settle([settle(job, FAILURE) for job in jobs.values()])

    told = {(one.team, msgspec.json.decode(one.payload)["kwargs"]["to"]) for one in notifications(store)}
    assert told == {("acme", "ops@acme.example"), (None, "ops@default.example")}


def test_a_rule_of_another_process_holds_from_its_next_look_on(url: str, store: SqlStore, clock: SettableClock) -> None:
    other = open_store(url, clock=clock)
    store.settle([settle(claimed_job(store), FAILURE)])  # so that it takes for granted that there are none
    other.put_rule("default", "ops", HOOK)
    other.close()

    store._ruled.look_again()
    store.settle([settle(claimed_job(store), FAILURE)])

    assert events(store) == ["failure"]


def test_a_rule_that_is_removed_holds_no_more(store: SqlStore) -> None:
    store.put_rule("default", "ops", HOOK)

    assert store.remove_rule("default", "ops")
    assert not store.remove_rule("default", "ops")
    store.settle([settle(claimed_job(store), FAILURE)])

    assert events(store) == []


def test_what_the_sweeps_settle_is_told_by_rules_too(store: SqlStore, clock: SettableClock) -> None:
    store.put_rule("default", "ops", HOOK)
    claimed_job(store)
    clock.advance("1h")

    store.reap()

    assert events(store) == ["retry"]


def test_a_plain_job_is_settled_by_one_statement_as_long_as_there_are_no_rules(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.settle([settle(claimed_job(store), SUCCESS)])
    job = claimed_job(store)
    monkeypatch.setattr(settling, "_settle_in_transaction", lambda *_, **__: pytest.fail("a transaction"))
    monkeypatch.setattr(store._db, "read", lambda *_, **__: pytest.fail("a look"))

    assert store.settle([settle(job, SUCCESS)]) == {job.id}


def test_rules_are_listed_by_team_and_id(store: SqlStore, clock: SettableClock) -> None:
    first = store.put_rule("acme", "b", HOOK)
    clock.advance("1m")
    store.put_rule("acme", "a", Email("ops@example.org"))
    store.put_rule("beta", "a", HOOK)

    again = store.put_rule("acme", "b", Webhook("https://other.example"))

    assert [(one.team, one.id) for one in store.rules()] == [("acme", "a"), ("acme", "b"), ("beta", "a")]
    assert [one.id for one in store.rules("acme")] == ["a", "b"]
    assert store.rules("acme", "b") == [again]
    assert (again.created_at, again.changed_at) == (first.created_at, first.created_at + MINUTE)


@pytest.mark.parametrize(
    ("leads_to", "kept"),
    [
        ("https://example.org/hook", True),
        ("https://example.org/another", True),
        ("https://EXAMPLE.org/hook", True),
        ("https://evil.example/hook", False),
        ("https://example.org:8443/hook", False),
        ("http://example.org/hook", False),
        ("https://example.org.evil.example/hook", False),
    ],
)
def test_a_rule_that_leads_to_another_host_loses_its_secret(store: SqlStore, leads_to: str, kept: bool) -> None:
    store.put_rule("default", "ops", Webhook("https://example.org/hook", secret="canary"))

    store.put_rule("default", "ops", Webhook(leads_to))

    (rule,) = store.rules("default", "ops")
    assert isinstance(rule.channel, Webhook)
    assert rule.channel.secrets == (("canary",) if kept else ())


# --- workflows


def test_a_workflow_is_told_of_as_a_whole(store: SqlStore) -> None:
    store.put_rule("default", "ops", HOOK)
    member, other = new_job(), new_job()
    workflow = new_workflow(member, other)
    workflow = msgspec.structs.replace(workflow, job=msgspec.structs.replace(workflow.job, notify=telling(HOOK)))
    store.enqueue_workflow(workflow)

    work_off(store, {member.id: FAILURE})

    (told,) = notifications(store)
    assert (notice_of(told)["event"], notice_of(told)["job_id"]) == ("failure", str(workflow.job.id))


def test_a_member_that_names_somebody_is_told_of(store: SqlStore) -> None:
    member = new_job(notify=telling(Email("ops@example.org", on="success")))
    workflow = new_workflow(member)
    store.enqueue_workflow(workflow)

    work_off(store)

    (told,) = notifications(store)
    assert notice_of(told)["workflow"] == str(workflow.job.id)


# --- recoveries


def replayed(store: SqlStore, job: Job, outcome: Outcome = SUCCESS) -> None:
    store.replay([job.id])
    end(store, job, outcome)


def test_the_success_of_a_job_that_had_failed_is_a_recovery(store: SqlStore) -> None:
    job = claimed_job(store, notify=telling(Webhook("https://a.example")))
    store.settle([settle(job, FAILURE)])

    replayed(store, job)

    assert events(store) == ["failure", "recovered"]


def test_a_recovery_stands_for_the_success_that_it_is(store: SqlStore) -> None:
    job = claimed_job(store, notify=telling())
    store.settle([settle(job, FAILURE)])

    replayed(store, job)

    assert events(store) == ["failure", "recovered"]


def test_a_success_without_trouble_is_no_recovery(store: SqlStore) -> None:
    store.settle([settle(claimed_job(store, notify=telling(Webhook("https://a.example"))), SUCCESS)])

    assert events(store) == []


@pytest.mark.parametrize(("on", "expected"), [(("retry", "recovered"), ["recovered", "retry"]), (("recovered",), [])])
def test_a_retry_is_trouble_for_those_who_were_told_of_it(
    store: SqlStore, clock: SettableClock, on: Sequence[str], expected: list[str]
) -> None:
    job = claimed_job(store, notify=telling(Webhook("https://a.example", on=on)))
    store.settle([settle(job, Failed(BOOM), TWICE)])
    clock.advance("1h")
    store.promote()

    end(store, job)

    assert events(store) == expected


def test_a_recovery_is_told_to_those_who_were_told_of_the_trouble(store: SqlStore) -> None:
    old, new = Webhook("https://old.example"), Webhook("https://new.example")
    job = claimed_job(store, notify=telling(old))
    store.settle([settle(job, FAILURE)])
    store.put_rule("default", "late", new)

    replayed(store, job)

    told = {(one.notify, notice_of(one)["event"]) for one in notifications(store)}
    assert told == {(telling(old), "failure"), (telling(old), "recovered")}


def run_schedule(store: SqlStore, clock: SettableClock, *outcomes: Outcome) -> None:
    """Let a schedule of every minute fire once for each of *outcomes*, which its job comes to."""
    for outcome in outcomes:
        clock.advance("1m")
        fire(store)
        store.promote()
        for job in claimed_jobs(store).values():
            store.settle([settle(job, outcome)])


def test_the_first_success_of_a_schedule_after_failures_is_its_recovery(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(notify=telling(Webhook("https://a.example")))])

    run_schedule(store, clock, SUCCESS, FAILURE, FAILURE, SUCCESS, SUCCESS)

    assert events(store) == ["failure", "failure", "recovered"]
    assert {notice_of(job)["schedule"] for job in notifications(store)} == {"s"}


def test_of_successes_that_come_together_the_first_is_the_recovery(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(notify=telling(Webhook("https://a.example")), misfire=Misfire.CATCH_UP)])
    run_schedule(store, clock, FAILURE)
    clock.advance("3m")
    fire(store)
    store.promote()

    store.settle([settle(job, SUCCESS) for job in claimed_jobs(store).values()])

    assert events(store) == ["failure", "recovered"]


def test_a_schedule_recovers_though_its_last_jobs_were_pruned(store: SqlStore, clock: SettableClock) -> None:
    channel = telling(Webhook("https://a.example"))
    store.put_schedules([new_schedule(trigger=every("7d"), notify=channel)])
    clock.advance("5d")
    for outcome in (FAILURE, SUCCESS):
        clock.advance("2d")
        fire(store)
        store.promote()
        for job in claimed_jobs(store).values():
            store.settle([settle(job, outcome)])
        clock.advance("5d")
        store.prune(timedelta(days=2))

    assert events(store) == ["failure", "recovered"]


def test_what_is_kept_of_troubles_is_pruned_in_the_end(store: SqlStore, url: str, clock: SettableClock) -> None:
    store.settle([settle(claimed_job(store, notify=telling()), FAILURE)])
    clock.advance("399d")
    store.prune(timedelta(days=30))
    kept = execute(url, f"SELECT count(*) FROM {table(url, 'troubles')}")
    clock.advance("2d")

    store.prune(timedelta(days=30))

    assert kept == [(1,)]
    assert execute(url, f"SELECT count(*) FROM {table(url, 'troubles')}") == [(0,)]


# --- schedules


def test_ticks_that_nobody_fired_are_missed_and_what_stands_for_them_is_late(
    store: SqlStore, clock: SettableClock
) -> None:
    start = clock.now()
    store.put_schedules([new_schedule(notify=telling())])
    clock.advance("5m30s")
    clock.advance("1m")

    fire(store)

    missed = notice_of(notifications(store)[0])
    assert events(store) == ["missed"]
    assert (missed["schedule"], missed["ticks"]) == ("s", 5)
    assert missed["tick"] == (start + MINUTE).isoformat(timespec="milliseconds")
    assert missed["until"] == (start + 5 * MINUTE).isoformat(timespec="milliseconds")


def test_ticks_that_are_made_up_for_together_are_one_notice(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(notify=telling(), misfire=Misfire.CATCH_UP)])
    clock.advance("10m")

    fire(store)

    (late,) = notifications(store)
    assert (notice_of(late)["event"], notice_of(late)["ticks"]) == ("late", 9)


def test_ticks_on_time_are_no_news(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(notify=telling())])
    clock.advance("1m")

    fire(store)

    assert events(store) == []


def test_rules_hear_of_the_schedules_of_their_team(store: SqlStore, clock: SettableClock) -> None:
    store.put_rule("acme", "ops", Email("ops@acme.example", on="missed"))
    store.put_schedules([new_schedule("@acme/a", team="acme"), new_schedule("b")])
    clock.advance("1h")

    fire(store)

    assert [(one.team, notice_of(one)["schedule"]) for one in notifications(store)] == [("acme", "a")]


def test_a_success_that_has_not_come_in_time_is_told_once_and_so_is_the_next(
    store: SqlStore, clock: SettableClock
) -> None:
    store.put_schedules([new_schedule(notify=telling(HOOK), expect_success_within=30 * SECOND)])
    clock.advance("1m")
    fire(store)
    clock.advance("30s")

    store.find_overdue()
    store.find_overdue()

    (late,) = notifications(store)
    assert (notice_of(late)["event"], notice_of(late)["schedule"]) == ("late", "s")
    assert notice_of(late)["expected_by"] == clock.now().isoformat(timespec="milliseconds")

    (job,) = claimed_jobs(store).values()
    store.settle([settle(job, Succeeded("1"))])
    assert events(store) == ["late", "recovered"]


def test_the_jobs_of_a_schedule_tell_whom_it_names(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(notify=telling())])

    run_schedule(store, clock, FAILURE)

    (told,) = notifications(store)
    facts = notice_of(told)
    assert (facts["schedule"], facts["tick"]) == ("s", clock.now().isoformat(timespec="milliseconds"))
    assert stored(store, told.id).schedule is None


def test_a_notice_has_an_id_that_only_its_settlement_has(store: SqlStore) -> None:
    ids = {new_id()}
    job = claimed_job(store, notify=telling())
    for _ in range(3):
        store.settle([settle(job, FAILURE)])
        store.replay([job.id])
        (job,) = claimed_jobs(store).values()
    ids |= {told.id for told in notifications(store)}

    assert len(ids) == 4
