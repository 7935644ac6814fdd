"""Schedules: stored, changed, held, removed, and what is kept of their ticks."""

from __future__ import annotations

from datetime import timedelta

from mainspring.model.job import JobState
from mainspring.model.schedule import Misfire, Origin, Overlap
from mainspring.model.tick import Verdict
from mainspring.model.trigger import after, at, cron, every
from mainspring.store.database import FIRE
from mainspring.store.sql import SqlStore
from mainspring.testing import SettableClock
from tests.support.factories import new_id
from tests.support.schedules import fire, new_schedule, verdicts

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def test_a_schedule_is_kept_as_it_was_given(store: SqlStore, clock: SettableClock) -> None:
    now = clock.now()
    given = new_schedule(
        "@post/s",
        trigger=cron("0 9 * * mon-fri", tz="Europe/Berlin"),
        queue="mail",
        priority=20,
        overlap=Overlap.BUFFER_ONE,
        misfire=Misfire.CATCH_UP,
        grace=6 * HOUR,
        jitter=2 * MINUTE,
        start=now,
        end=now + timedelta(days=365),
        max_runs=100,
        expect_success_within=HOUR,
        notes="the morning mail ☕",
        team="post",
        origin=Origin.CODE,
    )

    store.put_schedules([given])

    kept = store.get_schedules(["@post/s"])["@post/s"]
    assert (kept.id, kept.definition, kept.origin) == (given.id, given.definition, Origin.CODE)
    assert (kept.paused, kept.runs, kept.awaits, kept.overdue) == (False, 0, False, False)
    assert kept.tick_at == given.definition.next_tick(now)
    assert kept.tick_at is not None
    assert kept.due_at is not None
    assert kept.tick_at <= kept.due_at < kept.tick_at + 2 * MINUTE
    assert kept.expected_by == kept.tick_at + HOUR
    assert (kept.created_at, kept.changed_at) == (now, now)


def test_every_kind_of_trigger_is_kept(store: SqlStore, clock: SettableClock) -> None:
    triggers = [at(clock.now() + HOUR), cron("@daily"), every("15m", start=clock.now()), after("30s")]

    store.put_schedules([new_schedule(f"s{number}", trigger=trigger) for number, trigger in enumerate(triggers)])

    assert [schedule.definition.trigger for schedule in store.schedules()] == triggers


def test_schedules_come_in_pages(store: SqlStore) -> None:
    store.put_schedules([new_schedule(f"s{number}") for number in range(5)])

    first = store.schedules(limit=2)
    rest = store.schedules(after=first[-1].id)

    assert [schedule.id for schedule in [*first, *rest]] == ["s0", "s1", "s2", "s3", "s4"]


def test_those_that_fire_next_come_first_and_none_that_does_not(store: SqlStore, clock: SettableClock) -> None:
    given = {"late": "3h", "soon": "1m", "never": "2m", "middle": "1h"}
    store.put_schedules([new_schedule(name, trigger=every(length, clock.now())) for name, length in given.items()])
    store.put_schedules([new_schedule("@acme/theirs", team="acme"), new_schedule("past", trigger=at(clock.now()))])
    fire(store)
    store.pause_schedules(["never"])

    everybodys = [schedule.id for schedule in store.coming_schedules()]
    assert everybodys[-2:] == ["middle", "late"]
    assert set(everybodys[:2]) == {"soon", "@acme/theirs"}
    assert [schedule.id for schedule in store.coming_schedules(team="default")] == ["soon", "middle", "late"]
    assert [schedule.id for schedule in store.coming_schedules(2, team="default")] == ["soon", "middle"]
    assert [schedule.id for schedule in store.coming_schedules(team="acme")] == ["@acme/theirs"]
    assert store.coming_schedules(team="other") == []
    assert store.coming_schedules(0) == []


def test_those_of_one_origin_are_found(store: SqlStore) -> None:
    store.put_schedules([new_schedule("a"), new_schedule("b", origin=Origin.CODE)])

    assert [schedule.id for schedule in store.schedules(origin=Origin.CODE)] == ["b"]
    assert [schedule.id for schedule in store.schedules(origin=Origin.CALL)] == ["a"]


def test_an_unknown_schedule_is_left_out(store: SqlStore) -> None:
    store.put_schedules([new_schedule()])

    assert set(store.get_schedules(["s", "other"])) == {"s"}
    assert store.pause_schedules(["other"]) == store.resume_schedules(["other"], "n") == set()
    assert store.remove_schedules(["other"]) == set()
    assert not store.trigger_schedule("other", new_id(), "n")
    assert store.ticks("other") == []


def test_one_that_is_put_again_is_defined_anew_and_goes_on(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule()])
    clock.advance("1m")
    fire(store)
    made = clock.now() - MINUTE

    clock.advance("10s")
    store.put_schedules([new_schedule(task="other")])

    kept = store.get_schedules(["s"])["s"]
    assert (kept.definition.task, kept.runs, kept.tick_at) == ("other", 1, made + 2 * MINUTE)
    assert (kept.created_at, kept.changed_at) == (made, clock.now())


def test_one_that_is_put_again_unchanged_is_not_touched(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule()])
    before = store.get_schedules(["s"])
    clock.advance("1s")

    store.put_schedules([new_schedule()])

    assert store.get_schedules(["s"]) == before


def test_of_two_with_one_id_the_last_stands(store: SqlStore) -> None:
    store.put_schedules([new_schedule(task="first"), new_schedule(task="last")])

    assert store.get_schedules(["s"])["s"].definition.task == "last"


def test_thousands_are_put_in_one_call(store: SqlStore) -> None:
    store.put_schedules([new_schedule(f"s{number}") for number in range(6_000)])

    assert len(store.schedules(limit=10_000)) == 6_000


def test_a_paused_schedule_does_not_fire_and_skips_what_has_passed(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule()])
    start = clock.now()

    assert store.pause_schedules(["s"]) == {"s"}
    clock.advance("5m30s")
    paused = fire(store)
    assert store.resume_schedules(["s"], "somebody") == {"s"}
    clock.advance("30s")
    resumed = fire(store)

    assert (paused.schedules, paused.next_due, resumed.jobs) == (0, None, 1)
    fired, skipped = store.ticks("s")
    assert (skipped.at, skipped.until, skipped.count) == (start + MINUTE, start + 5 * MINUTE, 5)
    assert (skipped.verdict, skipped.reason) == (Verdict.SKIPPED, "the schedule was paused")
    assert skipped.node == "somebody"
    assert (fired.at, fired.verdict) == (start + 6 * MINUTE, Verdict.FIRED)


def test_to_pause_or_resume_twice_changes_nothing(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule()])
    running = store.get_schedules(["s"])

    store.resume_schedules(["s"], "n")
    assert store.get_schedules(["s"]) == running

    store.pause_schedules(["s"])
    paused = store.get_schedules(["s"])
    clock.advance("5m")
    store.pause_schedules(["s"])
    assert store.get_schedules(["s"]) == paused


def test_a_paused_schedule_stays_paused_when_it_is_defined_anew(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule()])
    store.pause_schedules(["s"])

    store.put_schedules([new_schedule(trigger=every("1s"))])
    clock.advance("1h")

    assert store.get_schedules(["s"])["s"].paused
    assert fire(store).schedules == 0


def test_what_was_made_ahead_of_its_tick_runs_though_the_schedule_is_removed(
    store: SqlStore, clock: SettableClock
) -> None:
    store.put_schedules([new_schedule()])
    clock.advance(59.5)
    fire(store)

    store.remove_schedules(["s"])

    assert store.counts() == {"default": {JobState.SCHEDULED: 1}}
    assert verdicts(store) == [Verdict.FIRED]


def test_a_tick_that_was_made_ahead_does_not_count_again_by_other_times(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(max_runs=2)])
    clock.advance(59.5)
    fire(store)
    store.put_schedules([new_schedule(trigger=every("30s"), max_runs=2)])
    for _ in range(4):
        fire(store)
        clock.advance("30s")

    assert verdicts(store) == [Verdict.FIRED, Verdict.FIRED]
    assert store.get_schedules(["s"])["s"].runs == 2


def test_a_removed_schedule_is_gone_and_its_history_stays(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule()])
    clock.advance("1m")
    fire(store)

    assert store.remove_schedules(["s"]) == {"s"}
    clock.advance("1h")

    assert (store.schedules(), fire(store).schedules) == ([], 0)
    assert verdicts(store) == [Verdict.FIRED]


def test_history_comes_in_pages_the_latest_first(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule()])
    start = clock.now()
    for _ in range(5):
        clock.advance("1m")
        fire(store)

    latest = store.ticks("s", limit=2)
    rest = store.ticks("s", before=latest[-1].at)

    assert [tick.at for tick in [*latest, *rest]] == [start + number * MINUTE for number in (5, 4, 3, 2, 1)]


def test_ticks_are_pruned_by_the_day_on_which_they_were_decided(store: SqlStore, clock: SettableClock) -> None:
    store.put_schedules([new_schedule(trigger=cron("0 0 * * *"))])
    for _ in range(3):
        clock.advance(timedelta(days=1))
        fire(store)

    store.prune(timedelta(days=1))

    assert len(store.ticks("s")) == 2


def test_whoever_fires_hears_of_changes(store: SqlStore) -> None:
    listener = store.listen({FIRE})
    listener.wait(0)

    store.put_schedules([new_schedule()])
    heard_of_a_new_one = listener.wait(10)
    store.pause_schedules(["s"])
    store.resume_schedules(["s"], "n")
    heard_of_a_resumed_one = listener.wait(10)
    listener.close()

    assert heard_of_a_new_one == heard_of_a_resumed_one == {FIRE}
