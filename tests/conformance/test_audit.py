"""Audit: a chain in which nothing can be changed, removed or put in between without being found."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import timedelta
from unittest.mock import patch

import pytest

from mainspring.errors import InvalidValue, JobNotFound, StoreError
from mainspring.model.audit import BEGINNING, Entry, Head, Verdict, extend
from mainspring.model.job import IfTaken
from mainspring.store import audit
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.databases import execute, table
from tests.support.factories import child_of, new_job, new_jobs

ROWS = 5


def entry(number: int = 1, **given: object) -> Entry:
    return Entry("ada@desk", "queue.pause", f"queue-{number}", **{"team": "acme", **given})  # type: ignore[arg-type]


@pytest.fixture
def chain(store: SqlStore, clock: SettableClock) -> SqlStore:
    for number in range(1, ROWS + 1):
        store.record_audit([entry(number, details={"number": number})])
        clock.advance("1s")
    return store


def test_entries_are_kept_in_order_as_they_were_told(store: SqlStore, clock: SettableClock) -> None:
    store.record_audit([entry(1, details={"reason": "é", "after": None}), entry(2, team=None)])
    clock.advance("1s")
    store.record_audit([Entry("token:abc ci", "job.cancel", None, "default")])

    last, second, first = store.audit()
    assert [one.seq for one in (first, second, last)] == [1, 2, 3]
    assert (first.actor, first.action, first.target, first.team) == ("ada@desk", "queue.pause", "queue-1", "acme")
    assert json.loads(first.details) == {"reason": "é", "after": None}
    assert (second.team, last.team, last.target) == (None, "default", None)
    assert last.at - first.at == timedelta(seconds=1)
    assert store.verify_audit() == Verdict(entries=3)


def test_pages_go_backwards_and_may_be_one_teams(store: SqlStore) -> None:
    for number in range(1, 7):
        store.record_audit([entry(number, team="acme" if number % 2 else "beta")])

    assert [one.seq for one in store.audit(limit=2)] == [6, 5]
    assert [one.seq for one in store.audit(before=5, limit=2)] == [4, 3]
    assert [one.seq for one in store.audit("acme", limit=2)] == [5, 3]
    assert [one.seq for one in store.audit("acme", before=3)] == [1]
    assert store.audit("gamma") == []


def test_an_empty_log_is_whole(store: SqlStore) -> None:
    store.record_audit([])

    assert store.verify_audit() == Verdict(entries=0)


TAMPERED = {
    "at": "at + 1",
    "actor": "'bob@desk'",
    "team": "'beta'",
    "action": "'queue.resume'",
    "target": "NULL",
    "details": "'{}'",
    "hash": "'0'",
    "id": "'00000000-0000-4000-8000-000000000000'",
}


@pytest.mark.parametrize("row", range(1, ROWS + 1))
@pytest.mark.parametrize("column", TAMPERED)
def test_a_changed_entry_is_found(chain: SqlStore, url: str, column: str, row: int) -> None:
    value = TAMPERED[column]
    if column == "at" and not url.startswith("sqlite"):
        value = "at + interval '1 microsecond'"
    execute(url, f"UPDATE {table(url, 'audit')} SET {column} = {value} WHERE seq = {row}")

    verdict = chain.verify_audit()

    assert (verdict.whole, verdict.broken, verdict.entries) == (False, row, row - 1)


@pytest.mark.parametrize("row", range(1, ROWS + 1))
def test_a_removed_entry_is_found(chain: SqlStore, url: str, row: int) -> None:
    execute(url, f"DELETE FROM {table(url, 'audit')} WHERE seq = {row}")

    assert chain.verify_audit().broken == row


@pytest.mark.parametrize("row", range(1, ROWS + 1))
def test_a_removed_entry_is_found_though_the_others_have_moved_up(chain: SqlStore, url: str, row: int) -> None:
    execute(url, f"DELETE FROM {table(url, 'audit')} WHERE seq = {row}")
    for later in range(row + 1, ROWS + 1):
        execute(url, f"UPDATE {table(url, 'audit')} SET seq = seq - 1 WHERE seq = {later}")

    assert chain.verify_audit().broken == row


@pytest.mark.parametrize("row", range(1, ROWS + 1))
def test_an_entry_that_was_written_anew_with_a_fitting_hash_is_found_by_the_next(
    chain: SqlStore, url: str, row: int
) -> None:
    records = {record.seq: record for record in chain.audit()}
    before = Head(row - 1, records[row - 1].hash if row > 1 else BEGINNING)
    old = records[row]
    forged = Entry("mallory", old.action, old.target, old.team, json.loads(old.details))
    ((anew,), _) = extend(before, [(old.id, forged)], old.at)
    execute(url, f"UPDATE {table(url, 'audit')} SET actor = 'mallory', hash = '{anew.hash}' WHERE seq = {row}")

    assert chain.verify_audit().broken == row + 1


@pytest.mark.parametrize("left", range(ROWS))
def test_entries_that_were_cut_off_at_the_end_are_found(chain: SqlStore, url: str, left: int) -> None:
    execute(url, f"DELETE FROM {table(url, 'audit')} WHERE seq > {left}")

    verdict = chain.verify_audit()

    assert verdict.broken == left + 1
    assert verdict.why == f"{ROWS - left} entries are missing at the end"


def test_an_entry_that_was_put_behind_the_end_is_found(chain: SqlStore, url: str) -> None:
    chain.record_audit([entry(6)])
    (end,) = execute(url, f"SELECT entries, hash FROM {table(url, 'audit_head')}")
    chain.record_audit([entry(7)])
    execute(url, f"UPDATE {table(url, 'audit_head')} SET entries = {end[0]}, hash = '{end[1]}'")

    assert not chain.verify_audit().whole


def test_a_lost_end_is_found_and_nothing_is_written_then(chain: SqlStore, url: str) -> None:
    execute(url, f"DELETE FROM {table(url, 'audit_head')}")

    assert not chain.verify_audit().whole
    with pytest.raises(StoreError, match="lost its end"):
        chain.record_audit([entry()])
    assert len(chain.audit()) == ROWS


def test_a_long_chain_is_looked_at_some_at_a_time(chain: SqlStore, url: str) -> None:
    with patch.object(audit, "_PAGE", 2):
        assert chain.verify_audit() == Verdict(entries=ROWS)
        execute(url, f"UPDATE {table(url, 'audit')} SET actor = 'bob' WHERE seq = 4")
        assert chain.verify_audit().broken == 4


def test_what_is_written_during_the_look_does_not_break_it(chain: SqlStore) -> None:
    read = chain._db.read
    left = [1]

    def read_while_others_write(query: str, /, **given: object) -> object:
        found = read(query, **given)
        if query == "walk_audit" and not found and left.pop():
            chain.record_audit([entry()])
        return found

    with patch.object(chain._db, "read", read_while_others_write):
        assert chain.verify_audit().whole


def test_many_who_write_at_once_make_one_chain(store: SqlStore) -> None:
    def write() -> None:
        for number in range(10):
            store.record_audit([entry(number), entry(number)])

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert store.verify_audit() == Verdict(entries=80)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Entry("", "job.cancel"),
        lambda: Entry(None, "job.cancel"),  # type: ignore[arg-type]
        lambda: Entry("ada", "cancel"),
        lambda: Entry("ada", "Job.Cancel"),
        lambda: Entry("ada", "job.cancel", 7),  # type: ignore[arg-type]
        lambda: Entry("ada", "job.cancel", team="No Team"),
        lambda: Entry("ada", "job.cancel", details=[]),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_entry_is_refused(make: Callable[[], Entry]) -> None:
    with pytest.raises(InvalidValue, match="expected"):
        make()


def test_what_is_too_long_or_can_not_be_stored_is_cut_and_kept(store: SqlStore) -> None:
    store.record_audit(
        [Entry("a\0\ud800" + "a" * 1_000, "job.cancel", "t" * 1_000, details={"reason": "é\0" * 9_000, "x": "\0"})]
    )

    (kept,) = store.audit()
    assert kept.actor.startswith("a\\x00\\ud800aaa")
    assert (len(kept.actor), len(kept.target or "")) == (500, 500)
    assert len(kept.details) < 5_000
    assert json.loads(kept.details)["begins"].startswith('{"reason":"é')
    assert store.verify_audit().whole


def test_details_that_are_no_json_are_refused_and_nothing_is_written(store: SqlStore) -> None:
    with pytest.raises(InvalidValue, match="expected details to be JSON"):
        store.record_audit([entry(), entry(details={"x": object()})])

    assert store.audit() == []


def test_jobs_are_on_record_exactly_if_they_are_stored(store: SqlStore) -> None:
    jobs = new_jobs(2)

    store.enqueue(jobs, entries=[entry(1), entry(2)])
    with pytest.raises(JobNotFound):
        store.enqueue([child_of(new_job())], entries=[entry(3)])

    assert store.get([job.id for job in jobs]).keys() == {job.id for job in jobs}
    assert [one.target for one in store.audit()] == ["queue-2", "queue-1"]
    assert store.verify_audit() == Verdict(entries=2)


@pytest.mark.parametrize("if_taken", IfTaken)
def test_where_another_job_stands_for_the_one_that_was_asked_for_that_is_on_record(
    store: SqlStore, if_taken: IfTaken
) -> None:
    first, once = new_job(key="k"), new_job(idempotency_key="i")
    store.enqueue([first, once])
    asked = [new_job(key="k", if_taken=if_taken, priority=9), new_job(idempotency_key="i"), new_job(key="free")]

    stand = store.enqueue(asked, entries=[Entry("ada", "job.enqueue", str(job.id)) for job in asked])

    assert stand == [first.id, once.id, asked[2].id]
    assert [one.target for one in reversed(store.audit())] == [str(job_id) for job_id in stand]


def test_jobs_that_can_not_be_recorded_are_not_stored(store: SqlStore, url: str) -> None:
    execute(url, f"DELETE FROM {table(url, 'audit_head')}")

    with pytest.raises(StoreError, match="has lost its end"):
        store.enqueue(new_jobs(2), entries=[entry()])

    assert store.counts() == {}
