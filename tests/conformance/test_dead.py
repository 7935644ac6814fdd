"""Dead letters: grouped, listed, replayed and discarded."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from mainspring.errors import InvalidPayload, StoreError
from mainspring.model.dead import Letter, Meant
from mainspring.model.failure import Failure
from mainspring.model.job import Job, JobState
from mainspring.model.lifecycle import MAX_LOSSES, settle
from mainspring.model.outcome import Cancelled, Failed, Lost, Succeeded
from mainspring.store.protocol import LetterFilter
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.databases import execute, table
from tests.support.factories import claimed_job, new_id, new_job, new_jobs, opened_session, stored
from tests.support.refusal import refusing

ALL = LetterFilter()


def failure(mark: str = "a1", message: str = "boom", kind: str = "ValueError") -> Failure:
    return Failure(type=kind, message=message, fingerprint=mark)


def dead_job(store: SqlStore, why: Failure | None = None, **changes: str) -> Job:
    job = claimed_job(store, None, **changes)
    store.settle([settle(job, Failed(why or failure()))])
    return stored(store, job.id)


def letter(job: Job) -> Letter:
    assert job.finished_at is not None
    return Letter(job.id, job.finished_at)


def fail_again(store: SqlStore, job: Job) -> Job:
    (claimed,) = store.claim(opened_session(store), job.queue, 1)
    store.settle([settle(claimed, Failed(failure()))])
    return stored(store, job.id)


def ids(jobs: list[Job]) -> list[UUID]:
    return [job.id for job in jobs]


def test_failed_jobs_are_grouped_by_cause_the_one_seen_last_first(store: SqlStore, clock: SettableClock) -> None:
    first = dead_job(store, failure("b2", "no host 1", "OSError"), task="send")
    clock.advance("1m")
    lone = dead_job(store, failure("a1"))
    clock.advance("1m")
    last = dead_job(store, failure("b2", "no host 2", "OSError"), task="send")

    one, two = store.dead_groups()

    assert (one.fingerprint, one.task, one.type, one.message, one.count) == ("b2", "send", "OSError", "no host 2", 2)
    assert (one.first_seen, one.last_seen, one.sample) == (first.finished_at, last.finished_at, last.id)
    assert (two.fingerprint, two.count, two.sample) == ("a1", 1, lone.id)


def test_only_failed_jobs_are_dead_letters(store: SqlStore) -> None:
    store.settle([settle(claimed_job(store), Succeeded("1"))])
    store.settle([settle(claimed_job(store), Cancelled())])
    store.cancel([store.enqueue([new_job()])[0]])

    assert (store.dead_groups(), store.dead_page(ALL), store.dead_count(ALL)) == ([], [], 0)


def test_groups_and_pages_are_of_a_queue_or_a_task_when_asked(store: SqlStore) -> None:
    mail, other = dead_job(store, queue="mail", task="send"), dead_job(store, task="send")
    third = dead_job(store, failure("c3"), task="third")

    (group,) = store.dead_groups(LetterFilter(queue="mail"))
    assert (group.count, group.sample) == (1, mail.id)
    assert [group.count for group in store.dead_groups(LetterFilter(task="send"))] == [2]
    assert ids(store.dead_page(LetterFilter(queue="mail"))) == [mail.id]
    assert ids(store.dead_page(LetterFilter(group="a1", task="send"))) == [other.id, mail.id]
    assert store.dead_count(LetterFilter(group="c3")) == 1
    assert store.dead_letters(LetterFilter(task="third")) == [letter(third)]
    assert store.dead_count(LetterFilter(group="c3", queue="mail")) == 0


def test_a_look_at_dead_letters_goes_no_further_than_asked_whosever_they_are(store: SqlStore) -> None:
    for _ in range(3):
        dead_job(store, team="acme")
    dead_job(store)

    assert [store.dead_among(5, team) for team in (None, "acme", "default")] == [(4, False), (3, False), (1, False)]
    assert store.dead_among(4) == (4, True)
    of_acme, of_default = (store.dead_among(3, team) for team in ("acme", "default"))
    assert of_acme.letters + of_default.letters == 3
    assert (of_acme.more, of_default.more) == (True, True)


def test_no_more_groups_come_than_asked_for(store: SqlStore, clock: SettableClock) -> None:
    for mark in ("a1", "b2", "c3"):
        dead_job(store, failure(mark))
        clock.advance("1s")

    assert [group.fingerprint for group in store.dead_groups(limit=2)] == ["c3", "b2"]
    assert store.dead_groups(limit=0) == []


def test_who_means_those_that_he_knows_of_means_none_that_died_since(store: SqlStore, clock: SettableClock) -> None:
    assert store.dead_meant(ALL) == Meant(0, None)
    known = [dead_job(store, queue="mail"), dead_job(store)]
    clock.advance("1s")
    known.append(dead_job(store, failure("b2")))

    meant = store.dead_meant(ALL)
    clock.advance("0.000001s")
    later = dead_job(store)
    match = LetterFilter(finished_until=meant.finished_until)

    assert meant.letters == 3
    assert store.dead_letters(match) == [letter(job) for job in known]
    assert store.dead_count(match) == 3
    assert later.id not in ids(store.dead_page(match))
    assert {group.fingerprint: group.count for group in store.dead_groups(match)} == {"a1": 2, "b2": 1}
    assert store.dead_meant(LetterFilter(queue="mail")).letters == 1


def test_dead_letters_come_in_pages_both_ways(store: SqlStore) -> None:
    jobs = [dead_job(store) for _ in range(5)]

    newest = store.dead_page(LetterFilter(group="a1"), limit=2)
    older = store.dead_page(LetterFilter(group="a1"), before=newest[-1].id, limit=9)
    assert newest + older == jobs[::-1]
    oldest = store.dead_letters(ALL, limit=2)
    assert oldest + store.dead_letters(ALL, after=oldest[-1].id) == [letter(job) for job in jobs]


def test_fingerprints_are_found_by_their_beginning(store: SqlStore) -> None:
    for mark in ("ab1", "ab2", "b%_"):
        dead_job(store, failure(mark))

    assert store.dead_fingerprints("ab") == ["ab1", "ab2"]
    assert store.dead_fingerprints("ab", limit=1) == ["ab1"]
    assert store.dead_fingerprints("b%") == ["b%_"]
    assert store.dead_fingerprints("%") == store.dead_fingerprints("_") == []


def test_a_failure_without_a_fingerprint_has_one_as_a_dead_letter(store: SqlStore) -> None:
    one = dead_job(store, Failure(type="E", message="code 1"))
    dead_job(store, Failure(type="E", message="code 2"))

    (group,) = store.dead_groups()

    assert group.count == 2
    assert one.failure is not None
    assert one.failure.fingerprint == group.fingerprint


def test_jobs_that_cost_their_workers_life_are_one_group_of_their_task(store: SqlStore) -> None:
    for worker in ("one", "two"):
        job = claimed_job(store)
        lost = Lost(f"worker {worker} died")
        for _ in range(MAX_LOSSES - 1):
            store.settle([settle(job, lost)])
            (job,) = store.claim(opened_session(store), "default", 1)
        store.settle([settle(job, lost)])

    (group,) = store.dead_groups()

    assert (group.type, group.count) == ("WorkerLost", 2)


def test_a_replayed_letter_lives_again_and_is_dead_no_more(store: SqlStore, clock: SettableClock) -> None:
    job = dead_job(store)
    clock.advance("1m")

    assert store.replay_letters([letter(job)], "mended") == {job.id}

    alive = stored(store, job.id)
    assert (alive.state, alive.reason, alive.attempt, alive.payload) == (JobState.READY, "mended", 0, job.payload)
    assert store.dead_groups() == []
    assert [past.outcome for past in store.attempts(job.id)] == ["failed"]


def test_a_letter_is_replayed_with_the_payload_that_is_made_of_its_own(store: SqlStore) -> None:
    one, two = dead_job(store, payload='{"args":[1],"kwargs":{}}'), dead_job(store, payload='{"args":[2],"kwargs":{}}')

    store.replay_letters([letter(one), letter(two)], None, lambda job: job.payload.replace("[", "[0,"))

    claimed = store.claim(opened_session(store), "default", 2)
    assert {job.id: job.payload for job in claimed} == {
        one.id: '{"args":[0,1],"kwargs":{}}',
        two.id: '{"args":[0,2],"kwargs":{}}',
    }


def test_a_payload_that_can_not_be_made_leaves_all_letters_dead(store: SqlStore) -> None:
    jobs = [dead_job(store) for _ in range(2)]

    def refuse(job: Job) -> str:
        raise InvalidPayload("no")

    with pytest.raises(InvalidPayload):
        store.replay_letters([letter(job) for job in jobs], None, refuse)

    assert store.dead_count(ALL) == 2
    assert store.counts() == {}


def test_a_letter_that_has_failed_again_since_it_was_seen_is_left_alone(store: SqlStore, clock: SettableClock) -> None:
    seen = dead_job(store)
    clock.advance("1s")
    store.replay_letters([letter(seen)])
    again = fail_again(store, seen)

    assert store.replay_letters([letter(seen)]) == set()
    assert store.discard_letters([letter(seen)]) == set()
    assert stored(store, seen.id) == again
    assert store.replay_letters([letter(again)]) == {seen.id}


def test_a_letter_is_replayed_once_by_two_who_saw_it(store: SqlStore) -> None:
    job = dead_job(store)

    assert store.replay_letters([letter(job)]) == {job.id}
    assert store.replay_letters([letter(job)]) == set()
    assert store.counts() == {"default": {JobState.READY: 1}}


def test_a_letter_whose_key_is_taken_stays_dead(store: SqlStore) -> None:
    one, two = dead_job(store, key="k"), dead_job(store)
    store.enqueue([new_job(key="k")])

    assert store.replay_letters([letter(one), letter(two)]) == {two.id}
    assert stored(store, one.id) == one


def test_a_discarded_letter_stays_in_history_as_cancelled(store: SqlStore, clock: SettableClock) -> None:
    job, other = dead_job(store), dead_job(store)
    clock.advance("1d")

    assert store.discard_letters([letter(job)], "a typo") == {job.id}

    after = stored(store, job.id)
    assert (after.state, after.reason, after.failure) == (JobState.CANCELLED, "a typo", job.failure)
    assert (after.finished_at, after.outcome, after.attempt) == (job.finished_at, "failed", job.attempt)
    assert ids(store.dead_page(ALL)) == [other.id]
    assert [past.outcome for past in store.attempts(job.id)] == ["failed"]


def test_a_discarded_letter_can_be_replayed_as_any_cancelled_job_but_not_as_a_letter(store: SqlStore) -> None:
    job = dead_job(store)
    store.discard_letters([letter(job)])

    assert store.discard_letters([letter(job)]) == store.replay_letters([letter(job)]) == set()
    assert store.replay([job.id]) == {job.id: JobState.READY}


def test_a_discarded_letter_is_pruned_with_its_day(store: SqlStore, clock: SettableClock) -> None:
    job = dead_job(store)
    store.discard_letters([letter(job)])
    clock.advance("3d")

    assert store.prune(timedelta(days=1)) == 1
    assert store.get([job.id]) == {}


def test_what_is_no_letter_is_left_alone(store: SqlStore, clock: SettableClock) -> None:
    job = claimed_job(store)
    store.settle([settle(job, Succeeded("1"))])
    given = [letter(stored(store, job.id)), Letter(new_id(), clock.now())]

    assert store.replay_letters(given) == store.discard_letters(given) == set()
    assert store.replay_letters([]) == store.discard_letters([]) == set()
    assert stored(store, job.id).state is JobState.SUCCEEDED


@pytest.mark.parametrize(("write", "act"), [("DELETE", "replay_letters"), ("UPDATE", "discard_letters")])
def test_what_fails_on_the_way_leaves_the_letters_as_they_were(url: str, store: SqlStore, write: str, act: str) -> None:
    jobs = [dead_job(store) for _ in range(2)]

    with refusing(url, write, "jobs_done"), pytest.raises(StoreError, match="refused"):
        getattr(store, act)([letter(job) for job in jobs], "why")

    assert store.dead_page(ALL) == jobs[::-1]
    assert store.counts() == {}


def test_workers_hear_of_what_was_replayed(real_store: SqlStore) -> None:
    job = dead_job(real_store)
    listener = real_store.listen(["default"])

    real_store.replay_letters([letter(job)])

    assert listener.wait(5) == {"default"}
    listener.close()


def test_only_failed_jobs_carry_a_fingerprint(url: str, store: SqlStore) -> None:
    """The others must have no entry in the index, nor anything to write for it."""
    discarded = dead_job(store)
    store.discard_letters([letter(discarded)])
    dead_job(store)
    store.enqueue(new_jobs(2))
    store.settle([settle(job, Succeeded("1")) for job in store.claim(opened_session(store), "default", 2)])

    found = execute(url, f"SELECT state, fingerprint FROM {table(url, 'jobs_done')} ORDER BY state")

    assert found == [("cancelled", None), ("failed", "a1"), ("succeeded", None), ("succeeded", None)]


def test_every_day_of_history_has_the_index_of_dead_letters_once(postgres_url: str) -> None:
    found = execute(
        postgres_url,
        "SELECT tablename, count(*) FROM pg_indexes WHERE schemaname = 'mainspring'"
        " AND tablename ~ '^jobs_done_' AND indexdef LIKE '%(fingerprint, id) INCLUDE (finished_at, queue, task, team)"
        " WHERE (state = ''failed''::text)' GROUP BY tablename",
    )

    assert [count for _, count in found] == [1] * 8
    attached = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'mainspring.jobs_done_dead'::regclass"
    assert execute(postgres_url, attached) == [(8,)]
