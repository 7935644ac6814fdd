"""`mainspring schedules`."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring import Mainspring, after, at, cron, every
from mainspring.cli.ids import short
from mainspring.cli.schedules import history
from mainspring.clock import SystemClock
from mainspring.model.duration import Duration, duration
from mainspring.model.firing import LEAD
from mainspring.model.payload import decode_call
from mainspring.model.schedule import Definition, Misfire, Origin, Overlap
from mainspring.model.session import NewSession
from mainspring.model.tick import Verdict
from mainspring.model.trigger import Trigger
from mainspring.testing import SettableClock
from tests.cli.jobs import IDS, jobs_in
from tests.cli.program import Done, assert_refused, in_process, mainspring
from tests.cli.projects import jobs_at, write
from tests.support.schedules import new_schedule

FAR = datetime(2100, 1, 1, 9, tzinfo=UTC)
LATER = every("1h", FAR)
"""So that no tick comes while a test looks."""


class Past:
    """An app that began some time ago, and lets that time pass as the test says."""

    def __init__(self, url: str, ago: Duration) -> None:
        self.clock = SettableClock(SystemClock().now() - duration(ago))
        self.app = Mainspring(url, clock=self.clock)
        self.schedules = self.app.schedules

    def fire(self, later: Duration = 0) -> None:
        self.clock.advance(later)
        while self.app.client.store.fire("host:1", self.app.client.new_ids).schedules:
            pass


@contextmanager
def past(url: str, ago: Duration = 0) -> Iterator[Past]:
    made = Past(url, ago)
    try:
        yield made
    finally:
        made.app.close()


def run(*arguments: str) -> Done:
    return in_process("schedules", *arguments)


def said(*arguments: str) -> str:
    done = run(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def told(*arguments: str) -> Any:
    return json.loads(said(*arguments, "--json"))


def words(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def ids_at(url: str) -> list[str]:
    return [one["id"] for one in told("list", "--url", url)["schedules"]]


@pytest.fixture
def here(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A SQLite file, which is the database that commands use unless they are told another."""
    monkeypatch.setenv("MAINSPRING_URL", sqlite_url)
    with past(sqlite_url) as made:
        made.schedules.list()
    return sqlite_url


# list


def test_schedules_are_listed_with_their_next_tick_by_their_own_clocks(url: str) -> None:
    with past(url) as made:
        made.schedules.add("b.report", "reports.make", cron("30 9 1 1 *", "Asia/Tokyo"), start=FAR)
        made.schedules.add("a.once", "greet", at(FAR))

    done = mainspring("schedules", "list", "--url", url)

    days = (FAR - SystemClock().now()).days
    head, once, report = words(done.stdout)
    assert head == ["Id", "Trigger", "Task", "Next", "tick", "State"]
    assert once[:-2] == ["a.once", "once", "greet", "Fri", "2100-01-01", "09:00", "UTC", "in"]
    assert once[-1] == "active"
    assert abs(int(once[-2].removesuffix("d")) - days) <= 1
    assert report[:11] == ["b.report", "30", "9", "1", "1", "*", "reports.make", "Sat", "2101-01-01", "09:30", "JST"]


def test_each_state_has_its_word(here: str, terminal: Callable[[int], None]) -> None:
    with past(here, "2h") as made:
        made.schedules.add("active", "greet", LATER)
        made.schedules.add("ended", "greet", at(FAR - timedelta(days=365 * 100)))
        made.schedules.add("expects", "greet", LATER, expect_success_within="1h")
        made.schedules.add("paused", "greet", LATER, expect_success_within="1h")
        made.schedules.pause("paused")
        made.schedules.add("waits", "greet", after("1s"))
        made.schedules.add("late", "greet", every("1h"), expect_success_within="10m")
        made.fire("1m")

    states = {one["id"]: one["state"] for one in told("list")["schedules"]}

    assert states == {
        "active": "active",
        "ended": "ended",
        "expects": "active",
        "late": "overdue",
        "paused": "paused",
        "waits": "waits for its job",
    }
    assert ["waits", "1s", "after", "its", "job", "greet", "waits", "for", "its", "job"] in words(said("list"))
    terminal(80)
    assert ["waits", "1s", "after", "its", "job", "waits", "for"] in words(said("list"))
    assert ["paused", "every", "1h", "paused"] in words(said("list"))


def test_a_tick_that_nobody_fired_was_due_some_time_ago(here: str) -> None:
    with past(here, "3h") as made:
        made.schedules.add("s", "greet", at(made.clock.now() + timedelta(seconds=1)))

    assert words(said("list"))[1][-3:] == ["3h", "ago", "active"]


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_the_list_fits_and_nothing_of_an_id_is_lost(columns: int, here: str, terminal: Callable[[int], None]) -> None:
    terminal(columns)
    with past(here) as made:
        made.schedules.add("x" * 100, "y" * 100, cron("*/5 8-18 1,15 * mon-fri", "Europe/Berlin"))
        made.schedules.add("w", "w", after("5m"))

    out = said("list")

    assert max(map(len, out.splitlines())) <= columns
    assert out.count("x") >= 100
    assert out.count("y") == (100 if columns >= 100 else 0)
    assert "\x1b" not in out


def test_programs_get_iso_instants(url: str) -> None:
    with past(url) as made:
        made.schedules.add("s", "greet", every("90m", FAR), args=[1], kwargs={"a": None}, jitter="10s")

    (one,) = told("list", "--url", url)["schedules"]

    assert one["next_tick"] == "2100-01-01T09:00:00+00:00"
    assert one["trigger"] == {
        "text": "every 1h30m from 2100-01-01 09:00:00+00:00",
        "kind": "every",
        "length": "1h30m",
        "start": "2100-01-01T09:00:00Z",
    }
    assert (one["args"], one["kwargs"], one["jitter"]) == ([1], {"a": None}, "10s")
    assert (one["team"], one["origin"], one["overlap"], one["paused"]) == (None, "call", "allow", False)


def test_an_empty_database_says_how_to_begin_and_a_missing_one_is_not_made(here: str, tmp_path: Path) -> None:
    assert "mainspring schedules add" in said("list")
    assert_refused(run("list", "--url", f"sqlite:///{tmp_path}/none.db"), "there is no database")
    assert_refused(run("lint", "--url", f"sqlite:///{tmp_path}/none.db"), "there is no database")
    assert not (tmp_path / "none.db").exists()


# show


def test_one_schedule_is_shown_with_all_that_it_says(here: str) -> None:
    with past(here) as made:
        made.schedules.add(
            "s",
            "greet",
            cron("0 9 * * *", "Asia/Tokyo"),
            args=["Ada"],
            kwargs={"loud": True},
            queue="mail",
            priority=7,
            overlap="skip",
            misfire="skip",
            jitter="10m",
            start=FAR,
            end=FAR + timedelta(days=9),
            max_runs=5,
            expect_success_within="3h",
            notes="Ask Ada.",
        )

    facts = dict(line.split(maxsplit=1) for line in said("show", "s").splitlines() if line and "Next" not in line)

    assert facts["Arguments"].strip() == '"Ada", loud=true'
    assert facts["Queue"].strip() == "mail, priority 7"
    assert facts["Trigger"].strip() == "cron 0 9 * * * (Asia/Tokyo)"
    assert facts["Overlap"].strip() == "skip"
    assert facts["Misfire"].strip() == "skip, up to 10s late"
    assert facts["Runs"].strip() == "0 of 5"
    assert facts["Success"].strip() == "expected within 3h, by Sat 2100-01-02 12:00 JST"
    assert facts["Start"].strip() == "Fri 2100-01-01 18:00 JST"
    assert facts["End"].strip() == "Sun 2100-01-10 18:00 JST"
    assert facts["Jitter"].startswith("10m; it always fires")
    assert facts["Notes"].strip() == "Ask Ada."
    assert facts["No"].strip() == "tick has come yet."
    assert "Sat 2100-01-02 09:00 JST (in" in said("show", "s")
    assert ", Sat 2100-01-02 00:00 UTC" in said("show", "s")


def test_the_last_five_ticks_are_shown(url: str) -> None:
    with past(url, "1h") as made:
        made.schedules.add("s", "greet", every("1m"))
        for _ in range(7):
            made.fire("1m")
        ticks = made.schedules.history("s")

    shown = told("show", "s", "--url", url)["ticks"]

    assert [tick["at"] for tick in shown] == [tick.at.isoformat() for tick in ticks[:5]]
    assert said("show", "s", "--url", url).count(" fired ") == 5


def test_what_a_pause_holds_and_what_is_buffered_is_shown(here: str) -> None:
    with past(here, "1h") as made:
        made.schedules.add("held", "greet", LATER)
        made.schedules.pause("held")
        made.schedules.add("buffers", "greet", every("1m"), overlap="buffer_one")
        made.fire("1m")
        made.fire("1m")

    assert "its ticks from Fri 2100-01-01 09:00 UTC on" in said("show", "held")
    assert "waits for an earlier job to end" in said("show", "buffers")


@pytest.mark.parametrize(
    "arguments",
    [
        ["show"],
        ["pause"],
        ["resume"],
        ["remove", "--yes"],
        ["trigger"],
        ["preview"],
        ["history"],
        ["backfill", "--from", "2026-01-01T00:00Z", "--to", "2026-01-02T00:00Z"],
    ],
)
def test_a_schedule_that_is_not_there_ends_in_1_and_a_good_word(arguments: list[str], here: str) -> None:
    with past(here) as made:
        made.schedules.add("nightly", "greet", LATER)

    done = run(*arguments, "nigtly")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: no schedule has the id 'nigtly', did you mean 'nightly'?\n"
    assert ids_at(here) == ["nightly"]


# add


def added(url: str, *arguments: str) -> Definition:
    """Add a schedule with these arguments, and return what it says."""
    said("add", "s", "greet", "--url", url, *arguments)
    with past(url) as made:
        return made.schedules.get("s").definition


@pytest.mark.parametrize(
    ("arguments", "trigger"),
    [
        (["--cron", "0 9 * * mon-fri"], cron("0 9 * * mon-fri")),
        (["--cron", "@daily", "--tz", "Europe/Berlin"], cron("@daily", "Europe/Berlin")),
        (["--every", "15m"], every("15m")),
        (["--every", "90"], every("90s")),
        (["--every", "15m", "--start", "2100-01-01T10:00+01:00"], every("15m", FAR)),
        (["--after", "30s"], after("30s")),
        (["--at", "2100-01-01T09:00:00Z"], at(FAR)),
    ],
)
def test_a_schedule_is_added_with_its_trigger(arguments: list[str], trigger: Trigger, sqlite_url: str) -> None:
    definition = added(sqlite_url, *arguments)

    assert definition.trigger == trigger
    assert definition.start is None


def test_adding_says_where_the_schedule_stands(url: str) -> None:
    done = mainspring("schedules", "add", "s", "greet", "--at", "2100-01-01T09:00Z", "--url", url)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("s active, next tick Fri 2100-01-01 09:00 UTC (in ")
    assert ids_at(url) == ["s"]
    assert told("add", "t", "greet", "--after", "1m", "--url", url)["id"] == "t"


def test_one_that_will_never_fire_says_so(here: str) -> None:
    assert said("add", "s", "greet", "--at", "2020-01-01T09:00Z") == "s ended: no tick is left\n"


def test_everything_about_a_schedule_can_be_said(sqlite_url: str) -> None:
    definition = added(
        sqlite_url,
        *["Ada", "loud=true", "--kwargs", '{"n": 1}', "--cron", "@daily", "--queue", "mail", "--priority", "high"],
        *["--overlap", "skip", "--misfire", "catch_up", "--grace", "1h", "--jitter", "10s", "--max-runs", "3"],
        *["--start", "2100-01-01T09:00Z", "--end", "2100-01-02T09:00Z", "--expect-success-within", "2h"],
        *["--notes", "Ask Ada."],
    )

    call = decode_call(definition.payload)
    assert (call.args, call.kwargs) == (["Ada"], {"n": 1, "loud": True})
    assert definition == Definition(
        task="greet",
        trigger=cron("@daily"),
        payload=definition.payload,
        queue="mail",
        priority=10,
        overlap=Overlap.SKIP,
        misfire=Misfire.CATCH_UP,
        grace=timedelta(hours=1),
        jitter=timedelta(seconds=10),
        start=FAR,
        end=FAR + timedelta(days=1),
        max_runs=3,
        expect_success_within=timedelta(hours=2),
        notes="Ask Ada.",
    )


def test_a_schedule_of_a_team_is_called_by_the_team_and_its_id(here: str) -> None:
    document = told("add", "s", "greet", "--every", "1h", "--team", "ops")

    assert (document["id"], document["team"]) == ("s", "ops")
    assert ids_at(here) == ["@ops/s"]
    assert "Team" in said("show", "@ops/s")
    assert_refused(run("add", "@ops/s", "greet", "--every", "1h"), "does not begin with @")
    assert said("trigger", "@ops/s").endswith(" scheduled\n")  # until it is given its turn
    assert said("remove", "@ops/s", "--yes") == "@ops/s removed\n"


def test_an_apps_task_says_what_the_jobs_are_like(sqlite_url: str, folder: Path) -> None:
    write(folder / "tasks.py")

    said("add", "s", "fail", "7", "--every", "1h", "--app", "tasks", "--url", sqlite_url)

    assert told("show", "s", "--url", sqlite_url)["queue"] == "mail"


def test_a_schedule_that_was_there_is_said_to_be_defined_anew(here: str) -> None:
    with past(here) as made:
        task = made.app.task(name="greet")(lambda: None)
        made.app.schedule(LATER, id="in-code")(task)
        made.schedules.sync()

    first, second = said("add", "s", "greet", "--every", "1h"), said("add", "s", "greet", "--every", "2h")

    assert "anew" not in first
    assert second.endswith("; it was there before, and is defined anew\n")
    assert said("add", "in-code", "greet", "--every", "1h").endswith("again when a worker starts\n")


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        ([], ["one of --cron, --every, --after, --at", "got none"]),
        (["--cron", "* * * * *", "--at", "2100-01-01T00:00Z"], ["got --cron and --at"]),
        (["--every", "1h", "--tz", "UTC"], ["--tz with --cron", "got it with --every"]),
        (["--cron", "0 9 * *"], ["5 fields", '"0 9 * *"']),
        (["--cron", "@daly"], ["did you mean '@daily'?"]),
        (["--cron", "@daily", "--tz", "Europe/Berln"], ["did you mean 'Europe/Berlin'?"]),
        (["--every", "soon"], ["--every", "'90s' or '1h30m'", "'soon'"]),
        (["--every", "0.01"], ["at least 0.1 s"]),
        (["--after", "soon"], ["--after", "'soon'"]),
        (["--at", "2100-01-01T09:00"], ["--at", "time zone"]),
        (["--every", "1h", "--start", "now"], ["--start", "'now'"]),
        (["--every", "1h", "--end", "now"], ["--end", "'now'"]),
        (["--every", "1h", "--grace", "x"], ["--grace", "'x'"]),
        (["--every", "1h", "--jitter", "x"], ["--jitter", "'x'"]),
        (["--every", "1h", "--expect-success-within", "x"], ["--expect-success-within", "'x'"]),
        (["--every", "1h", "--max-runs", "0"], ["--max-runs"]),
        (["--every", "1h", "--overlap", "skp"], ["overlap", "did you mean 'skip'?"]),
        (["--every", "1h", "--misfire", "colaesce"], ["misfire", "did you mean 'coalesce'?"]),
        (["--every", "1h", "--priority", "hihg"], ["did you mean 'high'?"]),
        (["--every", "1h", "--kwargs", "[1]"], ["--kwargs", "JSON object"]),
        (["--every", "1h", "--app", "tasks"], ["missing a required argument: 'name'"]),
        (["7", "--every", "1h", "--app", "tasks"], ["argument 'name'", "got `int`: 7"]),
        (["--every", "1h", "--", "--app", "tasks"], ["expected options before --"]),
        (["--every", "1h", "--url", ""], ["sqlite:///mainspring.db"]),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_added(
    arguments: list[str], refused: list[str], folder: Path, here: str
) -> None:
    write(folder / "tasks.py")

    assert_refused(run("add", "s", "greet", *arguments), *refused)
    assert ids_at(here) == []


def test_a_task_that_the_app_does_not_have_is_refused(folder: Path, here: str) -> None:
    write(folder / "tasks.py")

    assert_refused(run("add", "s", "gret", "--every", "1h", "--app", "tasks"), "did you mean 'greet'?")
    assert_refused(run("add", "not an id", "greet", "--every", "1h"), "id of a schedule", "'not an id'")


# pause, resume, remove, trigger


def test_schedules_are_paused_and_resumed(url: str) -> None:
    with past(url) as made:
        for one in ("a", "b", "c"):
            made.schedules.add(one, "greet", LATER)

        assert said("pause", "a", "b", "--url", url) == "a paused\nb paused\n"
        assert [one.id for one in made.schedules.list() if one.paused] == ["a", "b"]

        resumed = said("resume", "b", "--url", url)
        assert resumed.startswith("b active, next tick Fri 2100-01-01 09:00 UTC (in ")
        assert [one.id for one in made.schedules.list() if one.paused] == ["a"]


@pytest.mark.parametrize(("command", "left"), [("pause", ["a"]), ("remove", [])])
def test_those_that_are_missing_keep_nobody_from_the_rest(command: str, left: list[str], here: str) -> None:
    with past(here) as made:
        made.schedules.add("a", "greet", LATER)
        yes = ["--yes"] if command == "remove" else []

        done = run(command, "zzz", "a", *yes)

        assert (done.returncode, done.stdout) == (1, f"a {command}d\n")
        assert "'zzz'" in done.stderr
        assert [one.id for one in made.schedules.list()] == left


def test_programs_are_told_who_is_missing(here: str) -> None:
    with past(here) as made:
        made.schedules.add("a", "greet", LATER)

    paused = json.loads(run("pause", "zzz", "a", "a", "--json").stdout)
    removed = json.loads(run("remove", "zzz", "a", "--yes", "--json").stdout)

    assert ([one["state"] for one in paused["schedules"]], paused["missing"]) == (["paused"], ["zzz"])
    assert removed == {"removed": ["a"], "missing": ["zzz"]}


def test_schedules_are_removed_and_their_history_stays(url: str) -> None:
    with past(url, "1h") as made:
        made.schedules.add("a", "greet", every("1m"))
        made.schedules.add("b", "greet", LATER)
        made.fire("1m")

    assert said("remove", "a", "--yes", "--url", url) == "a removed\n"
    assert ids_at(url) == ["b"]
    assert [tick["verdict"] for tick in told("history", "a", "--url", url)["ticks"]] == ["missed", "fired"]
    assert " fired " in said("history", "a", "--url", url)


def test_one_that_is_defined_in_code_is_said_to_come_back(here: str) -> None:
    with past(here) as made:
        made.app.schedule(LATER)(made.app.task(name="greet")(lambda: None))
        made.schedules.sync()
        assert made.schedules.get("greet").origin is Origin.CODE

    assert said("remove", "greet", "-y") == "greet removed; its code brings it back when a worker starts\n"


def test_without_a_terminal_nothing_is_removed_unasked(here: str) -> None:
    with past(here) as made:
        made.schedules.add("a", "greet", LATER)

    assert_refused(run("remove", "a"), "this would remove 1 schedule", "--yes")
    assert_refused(run("remove", "a", "--json"), "--yes")
    assert ids_at(here) == ["a"]


@pytest.mark.parametrize(("answer", "heard", "left"), [("y", "a removed", []), ("n", "Nothing was changed", ["a"])])
def test_at_a_terminal_the_user_is_asked(answer: str, heard: str, left: list[str], here: str) -> None:
    with past(here) as made:
        made.schedules.add("a", "greet", LATER)
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "mainspring", "schedules", "remove", "a"]

    process = subprocess.Popen(command, stdin=end, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    os.close(end)
    os.write(terminal, f"{answer}\n".encode())
    out, err = process.communicate(timeout=60)
    os.close(terminal)

    assert "Remove 1 schedule? [y/N]" in err
    assert heard in out
    assert ids_at(here) == left


def test_triggering_prints_the_id_of_the_job(url: str) -> None:
    with past(url) as made:
        made.schedules.add("s", "greet", LATER, queue="mail")
        made.schedules.pause("s")

    out = said("trigger", "s", "--url", url)

    (job,) = jobs_at(url)
    assert out == f"{job.id} ready\n"
    again = told("trigger", "s", "--url", url)
    assert (again["state"], again["task"], again["queue"]) == ("ready", "greet", "mail")


# preview


def test_the_next_ticks_are_shown_by_both_clocks_with_remarks_in_colour(
    here: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with past(here) as made:
        start = datetime(2100, 3, 27, tzinfo=UTC)
        made.schedules.add("s", "greet", cron("30 2 * * *", "Europe/Berlin"), start=start)

    monkeypatch.setenv("COLUMNS", "130")
    head, first, second, third = words(said("preview", "s", "-n", "3"))
    monkeypatch.setenv("FORCE_COLOR", "1")

    assert head == ["Europe/Berlin", "UTC", "Remark"]
    assert first[:6] == ["Sat", "2100-03-27", "02:30", "CET", "2100-03-27", "01:30:00"]
    assert second[:6] == ["Sun", "2100-03-28", "03:00", "CEST", "2100-03-28", "01:00:00"]
    assert " ".join(second).endswith("d 02:30 does not exist that day; runs right after the gap")
    assert len(first) == len(third) == 8
    assert "\x1b[33m02:30 does not" in said("preview", "s")


def test_a_schedule_in_utc_is_shown_by_one_clock(url: str) -> None:
    with past(url) as made:
        made.schedules.add("s", "greet", LATER)

    out = words(said("preview", "s", "--url", url))
    ticks = told("preview", "s", "-n", "2", "--url", url)["ticks"]

    assert (out[0], len(out)) == (["UTC"], 21)
    assert out[1][:2] == ["2100-01-01", "09:00:00"]
    assert [tick["at"] for tick in ticks] == ["2100-01-01T09:00:00+00:00", "2100-01-01T10:00:00+00:00"]
    assert ticks[0]["remark"] is None


def test_one_that_has_ended_has_nothing_to_show(here: str) -> None:
    with past(here, "1h") as made:
        made.schedules.add("s", "greet", every("1m"), max_runs=1)
        made.fire("1m")

    assert said("preview", "s") == "s has no tick left.\n"


def test_a_pause_is_told_beside_the_ticks_that_it_holds(here: str) -> None:
    with past(here) as made:
        made.schedules.add("s", "greet", LATER)
        made.schedules.pause("s")

    assert said("preview", "s").splitlines()[-1] == "s is paused: none of these comes before it is resumed."


# backfill

SPAN = ["--from", "2026-01-01T00:00Z", "--to", "2026-01-02T00:00Z"]


def test_past_ticks_become_jobs_once(url: str) -> None:
    with past(url) as made:
        made.schedules.add("s", "greet", every("6h"))

    assert said("backfill", "s", *SPAN, "--yes", "--url", url) == "Enqueued 4 jobs.\n"
    assert len(jobs_at(url)) == 4
    longer = told("backfill", "s", *SPAN[:3], "2026-01-02T00:00:01Z", "--yes", "--url", url)
    assert (longer["ticks"], longer["jobs"]) == (5, [str(jobs_at(url)[-1].id)])
    assert said("backfill", "s", *SPAN, "-y", "--url", url) == "Enqueued 0 jobs; 4 ticks had one already.\n"


def test_how_many_ticks_would_be_backfilled_is_told_first(here: str) -> None:
    with past(here) as made:
        made.schedules.add("Nightly", "greet", cron("0 * * * *", "Asia/Tokyo"))

    done = run("backfill", "Nightly", *SPAN)

    assert_refused(done, "this would backfill 24 ticks of Nightly from Thu 2026-01-01 09:00 JST", "--yes")
    assert jobs_at(here) == []


def test_a_stretch_without_ticks_needs_no_question(here: str) -> None:
    with past(here) as made:
        made.schedules.add("s", "greet", at(FAR))

    assert said("backfill", "s", *SPAN).startswith("s has no past tick from Thu 2026-01-01 00:00 UTC until before")


@pytest.mark.parametrize(
    ("trigger", "span", "refused"),
    [
        (after("1m"), SPAN, ["'s'", "each follows a job's end"]),
        (every("1s"), SPAN, ["at most 10,000 ticks"]),
        (every("1h"), ["--from", SPAN[3], "--to", SPAN[1]], ["expected --to to come after --from"]),
        (every("1h"), ["--from", "x", *SPAN[2:]], ["--from", "'x'"]),
        (every("1h"), [*SPAN[:3], "2026-01-01"], ["--to", "time zone"]),
    ],
)
def test_what_can_not_be_backfilled_is_refused(
    trigger: Trigger, span: list[str], refused: list[str], here: str
) -> None:
    with past(here) as made:
        made.schedules.add("s", "greet", trigger)

    assert_refused(run("backfill", "s", *span, "--yes"), *refused)


# history


def test_the_history_says_what_became_of_ticks(url: str) -> None:
    with past(url, "5h") as made:
        start = made.clock.now().replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        made.schedules.add("s", "greet", every("1m", start), misfire="skip", grace="10s")
        made.clock.jump(start + timedelta(seconds=2))
        made.fire()
        made.fire(71 * 60 + 30)
        (fired,) = [tick.job_id for tick in made.schedules.history("s") if tick.job_id]

    head, missed, first = words(said("history", "s", "--url", url))

    def shown(minutes: int) -> list[str]:
        return f"{start + timedelta(minutes=minutes):%a %Y-%m-%d %H:%M} UTC".split()

    assert head[:5] == ["Tick", "Verdict", "Late", "by", "Node"]
    assert first == [*shown(0), "fired", "2s", "host:1", short(fired)]
    assert missed[:9] == [*shown(1), "missed", "host:1", "71", "ticks", "until"]
    assert missed[9:13] == [*shown(71)[:3], "UTC:"]
    assert " ".join(missed[13:]) == "nobody fired it within 0:00:10"


def test_jitter_does_not_count_as_late(here: str) -> None:
    with past(here, "5h") as made:
        start = made.clock.now() + timedelta(minutes=10)
        made.schedules.add("s", "greet", at(start), jitter="1h")
        due = made.schedules.get("s").due_at
        assert due is not None
        made.clock.jump(due + LEAD + timedelta(seconds=3))
        made.fire()

    assert "3s" in words(said("history", "s"))[1]


def test_ticks_can_be_chosen_by_their_verdict_however_far_back(here: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "_PAGE", 2)
    with past(here, "5h") as made:
        made.schedules.add("s", "greet", every("1m", made.clock.now()), misfire="skip", grace="10s")
        made.fire("5m30s")
        made.fire("31s")
        for _ in range(5):
            made.fire("1m")
        rows = made.schedules.history("s")

    assert [row.verdict for row in rows] == [Verdict.FIRED] * 6 + [Verdict.MISSED]
    missed = told("history", "s", "--verdict", "Missed")["ticks"]
    assert [tick["at"] for tick in missed] == [rows[-1].at.isoformat()]
    assert len(told("history", "s", "-n", "5")["ticks"]) == 5
    assert len(told("history", "s")["ticks"]) == 7
    assert said("history", "s", "--verdict", "skipped") == "No tick of s is recorded as skipped.\n"
    assert_refused(run("history", "s", "--verdict", "mised"), "did you mean 'missed'?")


def test_one_without_ticks_says_so(here: str) -> None:
    with past(here) as made:
        made.schedules.add("s", "greet", LATER)

    assert said("history", "s") == "No tick has come yet.\n"


# lint


def test_all_well_is_told_with_a_heat_map_and_the_busiest_minutes(url: str, terminal: Callable[[int], None]) -> None:
    terminal(80)
    with past(url) as made:
        made.schedules.add("s", "greet", every("1h"))
        made.schedules.add("t", "greet", cron("0 0 * * *"))

    done = mainspring("schedules", "lint", "--url", url)

    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "✓ Nothing is odd about 2 schedules."
    days = {line[:3]: line[4:].split() for line in lines if line[3:4] == " " and len(line.split()) == 25}
    assert sorted(days) == sorted(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
    assert {tuple(cells) for cells in days.values()} == {("░░", *["··"] * 23)}
    assert "up to  ·· 1  ░░ 2" in done.stdout
    assert len(lines[lines.index("Busiest minutes           Ticks  Schedules") + 1 :]) == 5
    assert max(map(len, lines)) <= 80


def test_what_jitter_makes_an_average_is_told_as_one(here: str) -> None:
    with past(here) as made:
        made.schedules.add("s", "greet", cron("0 0 * * *"), jitter="5m")

    assert ["less", "than", "1", "less", "than", "1"] in [row[-6:] for row in words(run("lint").stdout)]


def test_trouble_is_told_in_sentences_and_by_the_exit_code(here: str, folder: Path) -> None:
    write(folder / "tasks.py")
    with past(here, "40d") as made:
        made.schedules.add("paused", "greet", every("1h"))
        made.schedules.pause("paused")
        made.schedules.add("unknown", "gret", LATER)

    assert run("lint").returncode == 0
    done = run("lint", "--app", "tasks")

    assert done.returncode == 1
    assert done.stdout.startswith("✗ unknown enqueues 'gret', which is no task of the app, did you mean 'greet'?")
    assert "! paused is paused" in done.stdout


def test_programs_are_told_the_findings_and_the_busiest_minutes(here: str) -> None:
    midnight = (SystemClock().now() + timedelta(days=2)).replace(hour=0, minute=0, second=0, microsecond=0)
    with past(here) as made:
        made.schedules.add("never", "greet", at(FAR - timedelta(days=365 * 100)))
        made.schedules.add("once", "greet", at(midnight))

    done = run("lint", "--json")

    document = json.loads(done.stdout)
    assert done.returncode == 1
    (finding,) = document["findings"]
    assert (finding["schedule"], finding["code"], finding["trouble"]) == ("never", "never_fires", True)
    assert document["busiest"] == [{"at": midnight.isoformat(), "ticks": 1, "schedules": 1}]
    assert document["not_counted"] == 0


def test_of_many_alike_only_some_are_shown(here: str) -> None:
    with past(here) as made:
        past_instant = at(FAR - timedelta(days=365 * 100))
        made.schedules.add_many(made.schedules.new(f"s{number}", "greet", past_instant) for number in range(13))

    out = run("lint").stdout

    assert out.count("✗") == 10
    assert "and 3 more like that" in out


def test_a_terminal_that_knows_only_ascii_gets_letters_for_shades(here: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    with past(here) as made:
        made.schedules.add("s", "greet", every("1h"))

    done = mainspring("schedules", "lint")

    assert done.stdout.isascii()
    assert "\\u" not in done.stdout
    assert done.stdout.count(" .") == 7 * 24 + 1


def test_no_schedules_make_no_heat_map(here: str) -> None:
    assert said("lint") == "✓ Nothing is odd about 0 schedules.\n"


def test_lint_names_a_task_for_which_no_live_worker_has_a_handler(url: str) -> None:
    with jobs_in(url) as jobs:
        session = NewSession(id=IDS.next(), name="worker", lease=timedelta(hours=1), tasks=["known"])
        jobs.store.open_session(session)
        jobs.store.put_schedules([new_schedule("a", task="known"), new_schedule("b", task="vanished")])

    done = in_process("schedules", "lint", "--url", url, "--json")

    assert done.returncode == 1
    assert [(one["schedule"], one["code"]) for one in json.loads(done.stdout)["findings"]] == [("b", "no_handler")]
