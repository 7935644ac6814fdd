"""Samples: what workers add, what one node sees a minute, and what is told of it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from mainspring.errors import InvalidValue, StoreError
from mainspring.model.history import SCALES, Sample
from mainspring.store import open_store, samples
from mainspring.store.database import Database
from mainspring.store.sql import SqlStore
from mainspring.tally import Counts
from mainspring.testing import SettableClock
from tests.support.databases import execute, table
from tests.support.factories import claimed_jobs, new_job, new_jobs

MINUTE = timedelta(minutes=1)


def counts(succeeded: int = 0, failed: int = 0, retried: int = 0, waits: tuple[float, ...] = ()) -> Counts:
    made = Counts()
    made.succeeded, made.failed, made.retried = succeeded, failed, retried
    for seconds in waits:
        made.waits.add(seconds)
    return made


def add(store: SqlStore, succeeded: int = 0, failed: int = 0, retried: int = 0) -> None:
    store.add_counts({(None, "default"): counts(succeeded, failed, retried)})


def last(store: SqlStore, over: str = "1h", team: str | None = None, queue: str | None = None) -> Sample:
    return store.history(over, team, queue).samples[-1]


def ended(samples: list[Sample]) -> list[int]:
    return [one.succeeded for one in samples]


def test_without_any_samples_a_history_has_all_its_spans_and_knows_nothing_of_them(store: SqlStore) -> None:
    for over, scale in SCALES.items():
        history = store.history(over)
        starts = [one.since for one in history.samples]

        assert history.samples == [Sample(since=since) for since in starts]
        assert starts == [starts[0] + n * scale.span for n in range(scale.back // scale.span)]
        assert starts[-1] <= store.now() < starts[-1] + scale.span


def test_what_is_added_adds_up_in_every_scale(store: SqlStore) -> None:
    add(store, succeeded=3, failed=1)
    add(store, succeeded=2, retried=4)

    for over in SCALES:
        one = last(store, over)
        assert (one.succeeded, one.failed, one.retried) == (5, 1, 4)


def test_it_belongs_to_the_span_in_which_the_databases_clock_is(store: SqlStore, clock: SettableClock) -> None:
    add(store, succeeded=1)
    clock.advance("59s")
    add(store, succeeded=1)
    clock.advance("1s")
    add(store, succeeded=5)

    assert ended(list(store.history("1h").samples[-3:])) == [0, 2, 5]
    assert ended(list(store.history("24h").samples[-2:])) == [0, 7]

    clock.advance("15m")
    assert ended(list(store.history("24h").samples[-2:])) == [7, 0]


def test_each_team_sees_its_own_and_who_is_of_none_sees_all(store: SqlStore) -> None:
    store.add_counts({(None, "mail"): counts(succeeded=1), ("acme", "mail"): counts(succeeded=2, waits=(4.0,))})
    store.add_counts({("acme", "bulk"): counts(succeeded=4)})
    store.enqueue([*new_jobs(2, queue="mail", team="acme"), new_job(queue="mail")])
    store.sample()

    seen = {
        (team, queue): (one.succeeded, one.ready, one.wait_p50 is not None)
        for team in (None, "default", "acme", "other")
        for queue in (None, "mail")
        for one in [last(store, "1h", team, queue)]
    }
    assert seen == {
        (None, None): (7, 3, True),
        (None, "mail"): (3, 3, True),
        ("default", None): (1, 1, False),
        ("default", "mail"): (1, 1, False),
        ("acme", None): (6, 2, True),
        ("acme", "mail"): (2, 2, True),
        ("other", None): (0, 0, False),
        ("other", "mail"): (0, 0, False),
    }


def test_waits_are_told_as_what_half_and_nearly_all_of_them_do_not_exceed(store: SqlStore) -> None:
    store.add_counts({(None, "default"): counts(waits=(0.002,) * 95)})
    store.add_counts({(None, "default"): counts(waits=(20.0,) * 5)})

    one = last(store)
    assert one.wait_p50 is not None
    assert one.wait_p99 is not None
    assert timedelta(milliseconds=1) < one.wait_p50 < timedelta(milliseconds=5)
    assert timedelta(seconds=10) < one.wait_p99 < timedelta(seconds=30)


def test_places_beyond_so_many_are_counted_by_their_teams_alone(
    store: SqlStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "PLACES", 2)
    store.add_counts(
        {
            (None, "a"): counts(succeeded=1, waits=(0.002,)),
            (None, "b"): counts(failed=1, retried=1, waits=(0.002, 4.0)),
            (None, "c"): counts(succeeded=7),
            ("acme", "a"): counts(retried=9),
            ("acme", "b"): counts(succeeded=1),
        }
    )

    def ended(team: str | None, queue: str | None = None) -> tuple[int, int, int]:
        one = last(store, "1h", team, queue)
        return one.succeeded, one.failed, one.retried

    assert [ended(team) for team in (None, "default", "acme")] == [(9, 1, 10), (8, 1, 1), (1, 0, 9)]
    assert [ended(None, queue) for queue in "abc"] == [(0, 0, 9), (0, 0, 0), (7, 0, 0)]
    assert timedelta(seconds=2) < (last(store).wait_p99 or timedelta(0)) < timedelta(seconds=5)
    assert len(execute(url, f"SELECT DISTINCT team, queue FROM {table(url, 'samples')}")) == 4


def test_many_places_are_added_in_pieces_none_of_which_takes_long(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "PIECE", 2)
    store.enqueue([new_job(queue=queue) for queue in "abcde"])
    pieces = []

    def noted(db: Database, named: Sequence[tuple[tuple[str, str], Counts]]) -> None:
        pieces.append([queue for (_, queue), _ in named])
        add_piece(db, named)

    add_piece = samples._add
    monkeypatch.setattr(samples, "_add", noted)
    store.add_counts({(None, queue): counts(succeeded=1, waits=(0.5,)) for queue in "dbeca"})
    store.sample()

    assert pieces == [["a", "b"], ["c", "d"], ["e"]]
    assert (last(store).succeeded, last(store).ready) == (5, 5)


def test_nothing_is_written_where_nothing_was_counted(store: SqlStore, url: str) -> None:
    store.add_counts({})
    add(store)

    assert execute(url, f"SELECT * FROM {table(url, 'samples')}") == []


def test_how_many_are_ready_and_for_how_long_is_the_most_that_was_seen(store: SqlStore, clock: SettableClock) -> None:
    store.enqueue(new_jobs(3))
    clock.advance("30s")
    store.enqueue([new_job(), new_job(delay=timedelta(hours=1))])
    store.sample()
    clock.advance("1m")
    claimed_jobs(store)
    store.sample()

    before, now = store.history("1h").samples[-2:]
    assert (before.ready, before.oldest) == (4, timedelta(seconds=30))
    assert (now.ready, now.oldest) == (0, timedelta(0))
    assert (last(store, "24h").ready, last(store, "24h").oldest) == (4, timedelta(seconds=30))


def test_no_more_jobs_of_a_queue_are_counted_than_a_look_takes(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "LOOK", 2)
    store.enqueue([*new_jobs(3), new_job(queue="mail")])
    store.sample()

    assert [last(store, queue=queue).ready for queue in ("default", "mail", None)] == [2, 1, 3]


def test_a_job_that_is_ready_ahead_of_its_time_has_not_waited(store: SqlStore) -> None:
    store.enqueue([new_job(delay=timedelta(milliseconds=40))])
    assert store.promote(ahead=timedelta(milliseconds=50)).count == 1
    store.sample()

    assert (last(store).ready, last(store).oldest) == (1, timedelta(0))


def test_queues_that_nobody_looked_at_by_themselves_are_part_of_the_whole_and_not_said_to_be_empty(
    store: SqlStore, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "QUEUES", 2)
    store.enqueue(
        [new_job(queue="b"), *new_jobs(2, queue="d"), *new_jobs(4, queue="e", team="acme"), new_job(queue="f")]
    )
    clock.advance("3s")
    store.sample()

    assert [last(store, queue=queue).ready for queue in "abcdef"] == [0, 1, 0, 2, None, None]
    assert [last(store, team=team).ready for team in (None, "default", "acme")] == [8, 4, 4]
    assert (last(store).oldest, last(store, queue="e").oldest) == (timedelta(seconds=3), None)
    assert last(store, team="acme", queue="e").ready is None


def test_a_queue_is_looked_at_in_a_span_if_it_was_at_some_time_of_it(
    store: SqlStore, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.enqueue([new_job(queue=queue) for queue in "abcd"])
    seen = []
    for queues in (1, 3, 2, 4, 1):
        monkeypatch.setattr(samples, "QUEUES", queues)
        store.sample()
        clock.advance("1m")
        seen.append([last(store, "24h", queue=queue).ready for queue in "abcd"])

    assert seen == [[1, None, None, None], [1, 1, 1, None], [1, 1, 1, None], [1] * 4, [1] * 4]
    assert [last(store, "24h").ready, last(store).ready] == [7, None]


def test_a_minute_in_which_nobody_looked_is_told_from_one_in_which_nothing_was_ready(
    store: SqlStore, clock: SettableClock
) -> None:
    store.sample()
    clock.advance("2m")
    store.sample()

    assert [one.ready for one in store.history("1h").samples[-4:]] == [None, 0, None, 0]


def test_the_next_look_is_due_when_the_next_minute_begins(store: SqlStore, clock: SettableClock) -> None:
    assert store.sample() == MINUTE
    clock.advance("20s")
    assert store.sample() == timedelta(seconds=40)


def test_of_all_nodes_one_looks_in_each_minute(store: SqlStore, url: str, clock: SettableClock) -> None:
    nodes = [open_store(url, clock=clock) for _ in range(4)]
    store.enqueue(new_jobs(2))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda node: node.sample(), nodes * 3))
    seen = last(store).ready
    store.enqueue(new_jobs(5))
    with ThreadPoolExecutor(4) as pool:  # the minute has had its look, so nobody sees these
        list(pool.map(lambda node: node.sample(), nodes))
    for node in nodes:
        node.close()

    assert (seen, last(store).ready) == (2, 2)
    clock.advance("1m")
    store.sample()
    assert last(store).ready == 7


def test_one_who_died_while_he_looked_has_seen_nothing(
    store: SqlStore, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("mainspring.store.samples._levels", die)
        with pytest.raises(KeyboardInterrupt):
            store.sample()

    assert last(store).ready is None
    clock.advance("1m")
    store.sample()
    assert last(store).ready == 0


@pytest.mark.parametrize("over", SCALES)
def test_what_is_older_than_its_history_goes_and_the_rest_stays(
    store: SqlStore, url: str, clock: SettableClock, over: str
) -> None:
    back, span = SCALES[over]

    def rows() -> list[int]:
        tables = [table(url, name) for name in ("samples", "waits", "looks")]
        return [len(execute(url, f"SELECT * FROM {name} WHERE span = {span.total_seconds()}")) for name in tables]

    store.add_counts({(None, "mail"): counts(succeeded=1, waits=(0.5,))})
    store.sample()
    clock.advance(back - span)
    store.sample()
    shown, kept = store.history(over).samples[0], rows()
    clock.advance(3 * span)
    store.sample()

    assert (shown.succeeded, shown.ready, shown.wait_p99 is not None) == (1, 0, True)
    assert (kept, rows()) == ([1, 1, 2], [0, 0, 2])


def test_what_has_been_pruned_stays_so_where_the_rest_takes_too_long_and_what_was_seen_is_kept(
    store: SqlStore, url: str, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "PRUNE_BATCH", 3)
    store.add_counts({(None, queue): counts(succeeded=1, waits=(0.5,)) for queue in "abcdefgh"})
    clock.advance("2h")
    store.enqueue(new_jobs(2))
    run, pruned = store._db.run, []

    def slow(query: str, **given: object) -> object:
        if query == "prune_waits":
            pruned.append(query)
            if len(pruned) > 2:
                raise StoreError("it took too long")
        return run(query, **given)

    with monkeypatch.context() as patch:
        patch.setattr(store._db, "run", slow)
        with pytest.raises(StoreError):
            store.sample()

    left = f"SELECT * FROM {table(url, 'waits')} WHERE span = 60"
    assert (len(execute(url, left)), last(store).ready) == (2, 2)
    clock.advance("1m")
    store.sample()
    assert execute(url, left) == []


def test_what_a_clock_wrote_that_was_set_back_since_does_not_stay_for_ever(
    store: SqlStore, url: str, clock: SettableClock
) -> None:
    now = clock.now()
    clock.jump(now + timedelta(days=365))
    add(store, succeeded=1)
    clock.jump(now)
    store.sample()

    assert execute(url, f"SELECT * FROM {table(url, 'samples')}") == []


def test_a_scale_that_is_not_kept_is_refused(store: SqlStore) -> None:
    with pytest.raises(InvalidValue, match="expected over to be one of 1h, 24h, 7d, got: '2h'"):
        store.history("2h")
