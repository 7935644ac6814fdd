"""Schedules as a program has them: defined in code, made while it runs, and looked at."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest

from mainspring import (
    Context,
    InvalidPayload,
    InvalidValue,
    JobState,
    Mainspring,
    Misfire,
    Overlap,
    ScheduleNotFound,
    TaskNotFound,
    after,
    at,
    cron,
    every,
)
from mainspring.model.schedule import Origin
from mainspring.model.tick import Verdict
from mainspring.service import person
from mainspring.testing import SettableClock, drain, isolated
from tests.support.databases import execute, table
from tests.support.waiting import until

MINUTE = timedelta(minutes=1)
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001


def work() -> None: ...


@pytest.fixture
def app(url: str, clock: SettableClock) -> Mainspring:
    return Mainspring(url, clock=clock)


def test_who_paused_a_schedule_and_why_is_kept_until_it_is_resumed(app: Mainspring) -> None:
    @app.task
    def work() -> None: ...

    app.schedules.add("s", work, every("1h"))
    first = app.schedules.pause("s", reason="it floods the log", by="ada")
    again = app.schedules.pause("s", by="bob")

    assert (first.paused_by, first.reason) == ("ada", "it floods the log")
    assert (again.paused_by, again.reason, again.paused_at) == ("bob", None, first.paused_at)
    assert app.schedules.pause("s").paused_by == person()
    with pytest.raises(InvalidValue, match="expected reason to be text, got: 5"):
        app.schedules.pause("s", reason=5)  # type: ignore[arg-type]
    resumed = app.schedules.resume("s")
    assert (resumed.paused, resumed.paused_by, resumed.reason, resumed.paused_at) == (False, None, None, None)
    app.close()


def test_a_schedule_in_code_runs_at_its_times(app: Mainspring, clock: SettableClock) -> None:
    ticks: list[datetime | None] = []

    @app.schedule(cron("0 9 * * mon-fri", tz="Europe/Berlin"), id="digest", kwargs={"greeting": "hello"})
    @app.task
    def digest(ctx: Context, greeting: str) -> str:
        ticks.append(ctx.tick)
        return greeting

    clock.jump(datetime(2026, 1, 2, 12, tzinfo=UTC))  # a Friday
    assert drain(app) == []
    clock.jump(datetime(2026, 1, 5, 8, tzinfo=UTC))
    (job,) = drain(app)

    assert (job.result(), ticks) == ("hello", [datetime(2026, 1, 5, 8, tzinfo=UTC)])
    assert app.schedules.get("digest").origin is Origin.CODE
    app.close()


def test_a_schedule_has_the_name_of_its_task_unless_given_and_a_task_may_have_several(app: Mainspring) -> None:
    @app.schedule(every("1h"))
    @app.schedule(every("1d"), id="daily")
    @app.task(queue="mail", priority=7)
    def digest() -> None: ...

    app.schedules.sync()

    hourly, daily = app.schedules.get("digest"), app.schedules.get("daily")
    assert {(one.definition.queue, one.definition.priority) for one in (hourly, daily)} == {("mail", 7)}
    assert [one.id for one in app.schedules.list()] == ["daily", "digest"]
    app.close()


def test_a_worker_stores_the_schedules_of_its_app_as_it_starts(url: str) -> None:
    app = Mainspring(url)

    @app.schedule(every("100ms"))
    @app.task
    def tick() -> None: ...

    with app.worker():
        until(lambda: any(job.state is JobState.SUCCEEDED for job in app.jobs()))

    assert app.schedules.history("tick")[0].verdict is Verdict.FIRED
    app.close()


def test_a_changed_schedule_is_updated_and_one_that_is_gone_is_told_of(
    url: str, clock: SettableClock, caplog: pytest.LogCaptureFixture
) -> None:
    before, now = Mainspring(url, clock=clock), Mainspring(url, clock=clock)
    for app, length in ((before, "1h"), (now, "2h")):
        app.schedule(every(length), id="kept")(app.task(work))
    before.schedule(every("1h"), id="gone")(before.task(name="other")(work))
    before.schedules.sync()

    with caplog.at_level(logging.WARNING, logger="mainspring.scheduler"):
        now.schedules.sync()

    assert str(now.schedules.get("kept").definition.trigger) == "every 2h"
    assert "1 schedule defined in code once, but not in this program: gone" in caplog.text
    assert now.schedules.get("gone").tick_at is not None
    before.close()
    now.close()


def test_a_schedule_is_made_while_the_program_runs(app: Mainspring, clock: SettableClock) -> None:
    @app.task
    def import_file(path: str) -> str:
        return path

    made = app.schedules.add("t7", import_file, every("15m"), kwargs={"path": "t7.csv"}, notes="from the tenant")
    clock.advance("15m")

    assert (made.id, made.definition.task, made.definition.notes) == ("t7", "import_file", "from the tenant")
    assert [job.result() for job in drain(app)] == ["t7.csv"]
    app.close()


def test_the_bulk_call_takes_what_new_has_made(app: Mainspring) -> None:
    @app.task
    def work(number: int) -> None: ...

    added = app.schedules.add_many(app.schedules.new(f"s{n}", work, every("1h"), args=[n]) for n in range(1_200))

    assert (added, len(app.schedules.list())) == (1_200, 1_200)
    app.close()


def test_one_that_can_not_be_read_hides_no_other(app: Mainspring, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.schedules._PAGE", 2)
    task = app.task(work)
    app.schedules.add_many(app.schedules.new(name, task, every("1h")) for name in "abcde")
    newer = "replace(definition, 'every', 'newer')"
    execute(url, f"UPDATE {table(url, 'schedules')} SET definition = {newer} WHERE id = 'b'")

    assert [one.id for one in app.schedules.list()] == ["a", "c", "d", "e"]
    app.close()


def test_arguments_are_checked_before_anything_is_stored(app: Mainspring) -> None:
    @app.task
    def work(number: int) -> None: ...

    with pytest.raises(InvalidPayload):
        app.schedules.add("s", work, every("1h"), args=["three"])
    with pytest.raises(InvalidPayload):
        app.schedules.add("s", work, every("1h"))
    with pytest.raises(TaskNotFound, match="did you mean 'work'"):
        app.schedules.add("s", "wrok", every("1h"), args=[3])

    assert app.schedules.list() == []
    app.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"overlap": "skp"},
            "expected overlap to be one of allow, skip, buffer_one, cancel_other, got: 'skp', did you",
        ),
        ({"misfire": 3}, "expected misfire to be one of coalesce, skip, catch_up, got: 3"),
        ({"jiter": "1m"}, "no setting is named 'jiter', did you mean 'jitter'?"),
        ({"jitter": "soon"}, "expected jitter to be a duration"),
        ({"max_runs": 0}, "expected max_runs to be a whole number from 1 on, got: 0"),
        ({"start": NAIVE}, "expected start to have a time zone"),
        ({"expect_success_within": 0}, "expected expect_success_within to be longer than 0"),
        ({"team": "ops"}, "no setting is named 'team'"),
        ({"notes": "x" * 2_001}, "expected notes to be text of at most 2,000 characters"),
    ],
)
def test_what_makes_no_sense_is_refused(app: Mainspring, options: dict[str, object], message: str) -> None:
    @app.task
    def work() -> None: ...

    with pytest.raises(InvalidValue, match=message.replace("?", r"\?")):
        app.schedules.add("s", work, every("1h"), **options)  # type: ignore[arg-type]
    app.close()


def test_other_mistakes_are_told_kindly(app: Mainspring) -> None:
    @app.task
    def work() -> None: ...

    with pytest.raises(InvalidValue, match=r"expected a trigger such as every\('15m'\) or cron"):
        app.schedules.add("s", work, "0 9 * * *")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="expected a task or the name of one, got: 3"):
        app.schedules.add("s", 3, every("1h"))  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match=r"expected @app\.schedule to stand above @app\.task"):
        app.schedule(every("1h"))(lambda: None)  # type: ignore[type-var]
    app.schedule(every("1h"))(work)
    with pytest.raises(InvalidValue, match="a schedule with the id 'work' is defined already"):
        app.schedule(every("2h"))(work)
    app.close()


def test_an_unknown_schedule_is_named_with_the_nearest(app: Mainspring) -> None:
    @app.task
    def work() -> None: ...

    app.schedules.add("digest", work, every("1h"))

    for call in (
        app.schedules.get,
        app.schedules.pause,
        app.schedules.resume,
        app.schedules.remove,
        app.schedules.trigger,
        app.schedules.preview,
        app.schedules.history,
    ):
        with pytest.raises(ScheduleNotFound, match=r"no schedule has the id 'digset', did you mean 'digest'\?"):
            call("digset")
    app.close()


def test_pause_resume_trigger_and_remove(app: Mainspring, clock: SettableClock) -> None:
    @app.task
    def work() -> None: ...

    app.schedules.add("s", work, every("1m"))
    assert app.schedules.pause("s").paused
    clock.advance("10m30s")
    assert drain(app) == []
    job = app.schedules.trigger("s")
    assert drain(app) == [job]
    assert not app.schedules.resume("s").paused
    clock.advance("30s")
    assert len(drain(app)) == 1
    app.schedules.remove("s")

    told = [tick.verdict for tick in app.schedules.history("s")]
    assert told == [Verdict.FIRED, Verdict.TRIGGERED, Verdict.SKIPPED]
    app.close()


def test_those_that_fire_next_are_told_to_each_team_by_its_own_names(app: Mainspring, clock: SettableClock) -> None:
    app.task(work)
    for name, length in (("b", "1h"), ("a", "2h"), ("c", "1m")):
        app.schedules.add(name, "work", every(length))
    app.within("acme").schedules.add("theirs", "work", every("30m"))
    app.schedules.pause("c")

    assert [one.id for one in app.schedules.coming()] == ["@acme/theirs", "b", "a"]
    assert [one.id for one in app.schedules.coming(1)] == ["@acme/theirs"]
    assert [one.id for one in app.within("acme").schedules.coming()] == ["theirs"]
    assert [one.id for one in app.within("default").schedules.coming()] == ["b", "a"]
    with pytest.raises(InvalidValue, match="limit"):
        app.schedules.coming(-1)
    app.close()


def test_a_preview_heeds_start_and_end(app: Mainspring, clock: SettableClock) -> None:
    @app.task
    def work() -> None: ...

    start = clock.now() + 10 * MINUTE
    app.schedules.add("s", work, every("1m"), start=start, end=start + 2 * MINUTE)

    assert [one.at for one in app.schedules.preview("s")] == [start, start + MINUTE, start + 2 * MINUTE]
    assert len(app.schedules.preview("s", n=2)) == 2
    app.close()


def test_a_backfill_runs_what_did_not(app: Mainspring, clock: SettableClock) -> None:
    ticks: list[datetime | None] = []

    @app.task
    def work(ctx: Context) -> None:
        ticks.append(ctx.tick)

    start = clock.now()
    app.schedules.add("s", work, cron("* * * * *"))

    jobs = app.schedules.backfill("s", start - 3 * MINUTE, start)
    drain(app)

    assert len(jobs) == 3
    assert ticks == [start - 3 * MINUTE, start - 2 * MINUTE, start - MINUTE]
    app.close()


def test_a_preview_ends_with_the_schedule(app: Mainspring, clock: SettableClock) -> None:
    @app.task
    def work() -> None: ...

    app.schedules.add("twice", work, every("1m"), max_runs=2)
    app.schedules.add("after", work, after("10m"))
    assert len(app.schedules.preview("twice")) == 2
    assert [one.at for one in app.schedules.preview("after")] == [clock.now() + 10 * MINUTE]

    clock.advance("1m")
    drain(app)
    assert len(app.schedules.preview("twice")) == 1
    clock.advance("1m")
    drain(app)
    assert app.schedules.preview("twice") == []
    app.close()


def test_a_backfill_keeps_to_the_past_and_to_the_schedule(app: Mainspring, clock: SettableClock) -> None:
    @app.task
    def work() -> None: ...

    now = clock.now()
    app.schedules.add("s", work, every("1m"), start=now - 3 * MINUTE)

    assert len(app.schedules.backfill("s", now - 10 * MINUTE, now + 10 * MINUTE)) == 4
    app.close()


def test_a_backfill_that_can_not_be_is_refused(app: Mainspring, clock: SettableClock) -> None:
    @app.task
    def work() -> None: ...

    app.schedules.add("fast", work, every("1s"))
    app.schedules.add("after", work, after("1s"))
    now = clock.now()

    with pytest.raises(InvalidValue, match="expected at most 10,000 ticks to backfill at once"):
        app.schedules.backfill("fast", now - timedelta(days=1), now)
    with pytest.raises(InvalidValue, match="schedule 'after' has no ticks of its own in the past"):
        app.schedules.backfill("after", now - timedelta(days=1), now)
    with pytest.raises(InvalidValue, match="expected start to have a time zone"):
        app.schedules.backfill("fast", NAIVE, now)
    app.close()


def test_a_fixed_delay_and_a_single_time_end_to_end(app: Mainspring, clock: SettableClock) -> None:
    @app.task
    def work() -> None: ...

    app.schedules.add("again", work, after("10m"))
    app.schedules.add("once", work, at(clock.now() + 5 * MINUTE))

    ran = []
    for _ in range(6):
        clock.advance("5m")
        ran.append(len(drain(app)))

    assert ran == [1, 1, 0, 1, 0, 1]
    assert app.schedules.get("once").ended
    app.close()


def test_policies_are_given_by_name_or_by_member(app: Mainspring) -> None:
    @app.task
    def work() -> None: ...

    by_name = app.schedules.add("a", work, every("1h"), overlap="SKIP", misfire="catch_up", priority="high")
    by_member = app.schedules.add("b", work, every("1h"), overlap=Overlap.SKIP, misfire=Misfire.CATCH_UP, priority=10)

    assert by_name.definition == by_member.definition
    app.close()


def test_schedules_work_in_an_isolated_test(sqlite_url: str) -> None:
    app = Mainspring(sqlite_url)

    @app.schedule(every("1d"))
    @app.task
    def daily() -> str:
        return "done"

    with isolated(app) as clock:
        drain(app)
        clock.advance("3d")
        assert [job.result() for job in drain(app)] == ["done"]
    app.close()
