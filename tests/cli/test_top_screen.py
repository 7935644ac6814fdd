"""What keys make of the screen of `mainspring top`, and how much fits on it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest

from mainspring import Mainspring
from mainspring.cli.ids import short
from mainspring.cli.top.draw import allot, draw
from mainspring.cli.top.keys import keys_in
from mainspring.cli.top.screen import Panel, Pressed, Screen, chosen, press
from mainspring.cli.top.snapshot import Place, Snapshot, Watch
from mainspring.clock import SystemClock
from mainspring.documents.told import ToldJob
from tests.cli.jobs import Jobs


@pytest.fixture
def app(jobs: Jobs) -> Iterator[Mainspring]:
    with closing(Mainspring()) as app:
        yield app


def pressed(screen: Screen, snapshot: Snapshot, *keys: str) -> Pressed:
    """Return what all *keys* come to, one after the other."""
    came = Pressed(screen)
    for key in keys:
        came = press(came.screen, key, snapshot)
    return came


def look(app: Mainspring, place: Place | None = None) -> Snapshot:
    return Watch(app, SystemClock()).look(place)


def shown(screen: Screen, snapshot: Snapshot, width: int = 80, height: int = 24) -> str:
    return draw(screen, snapshot, (width, height), "here").plain


def test_keys_are_told_apart_and_what_is_none_is_left_out() -> None:
    assert keys_in(b"j\x1b[A\x1b[B\x1bOA\t\r\x1b[Z") == ["j", "up", "down", "up", "tab", "enter", "back tab"]
    assert keys_in(b"\x1b") == ["esc"]
    assert keys_in(b"\x1b[1;5C\x00\x07\x1b[200~q") == ["q"]
    assert keys_in("ä?".encode()) == ["?"]


def test_tab_goes_round_the_panels_in_both_directions(app: Mainspring) -> None:
    snapshot = look(app)

    assert [pressed(Screen(), snapshot, *["tab"] * times).screen.panel for times in range(5)] == [*Panel, Panel.QUEUES]
    assert pressed(Screen(), snapshot, "back tab").screen.panel is Panel.FAILURES


@pytest.mark.parametrize(("width", "height"), [(80, 24), (160, 40), (80, 8)])
def test_there_is_no_panel_of_workers_for_who_is_shown_none(app: Mainspring, width: int, height: int) -> None:
    snapshot = Watch(app, SystemClock(), of_fleet=False).look()

    assert pressed(Screen(), snapshot, "tab").screen.panel is Panel.RUNNING
    drawn = shown(Screen(panel=Panel.FAILURES), snapshot, width, height)
    assert "Failures" in drawn
    assert not re.search(r"(^|Queues) *Workers", drawn, re.MULTILINE)


def test_what_is_chosen_stays_so_wherever_it_goes_in_its_list(app: Mainspring, jobs: Jobs) -> None:
    old, _ = jobs.run(), jobs.run()
    screen = pressed(Screen(Panel.RUNNING), look(app), "down").screen
    jobs.run()

    thing = chosen(screen, look(app))

    assert isinstance(thing, ToldJob)
    assert thing.id == old.id


def test_when_what_is_chosen_has_gone_its_neighbour_is_chosen(app: Mainspring, jobs: Jobs) -> None:
    for _ in range(3):
        jobs.run()
    snapshot = look(app)
    screen = pressed(Screen(Panel.RUNNING), snapshot, "end").screen

    left = replace(snapshot, running=snapshot.running[:2])

    assert chosen(screen, left) is left.running[1]
    assert chosen(screen, replace(snapshot, running=[])) is None


def test_enter_opens_and_escape_goes_back_until_it_leaves(app: Mainspring, jobs: Jobs) -> None:
    job = jobs.run(queue="mail")
    screen = pressed(Screen(), look(app), "enter").screen
    assert screen.place == Place("queue", "mail")

    screen = pressed(screen, look(app, screen.place), "enter").screen
    assert screen.place == Place("job", str(job.id))

    back = pressed(screen, look(app, screen.place), "esc")
    assert (back.screen.place, back.leave) == (Place("queue", "mail"), False)
    assert pressed(back.screen, look(app), "q", "q").leave


def test_a_worker_shows_what_it_runs(app: Mainspring, jobs: Jobs) -> None:
    jobs.run(task="import_rows")
    snapshot = look(app)

    screen = pressed(Screen(Panel.WORKERS), snapshot, "enter").screen

    assert screen.place == Place("worker", str(jobs.session.id))
    assert "host:1234, alive" in shown(screen, snapshot)
    assert "import_rows" in shown(screen, snapshot)


@pytest.mark.parametrize(("answer", "done"), [("y", True), ("Y", True), ("n", False), ("enter", False), ("q", False)])
def test_nothing_is_done_but_after_a_yes(answer: str, done: bool, app: Mainspring, jobs: Jobs) -> None:
    job = jobs.run(task="import_rows")
    snapshot = look(app)

    asked = pressed(Screen(Panel.RUNNING), snapshot, "c")
    came = pressed(asked.screen, snapshot, answer)

    assert asked.deed is None
    assert f"Cancel import_rows {short(job.id)}? y/n" in shown(asked.screen, snapshot)
    assert (came.deed is not None, came.leave, came.screen.asked) == (done, False, None)


def test_what_can_not_be_done_is_said_and_not_asked(app: Mainspring, jobs: Jobs) -> None:
    jobs.fail()
    jobs.run()
    snapshot = look(app)

    said = {
        (panel, key): pressed(Screen(panel), snapshot, key).screen.said
        for panel, key in [
            (Panel.RUNNING, "r"),
            (Panel.FAILURES, "c"),
            (Panel.FAILURES, "p"),
            (Panel.QUEUES, "c"),
            (Panel.WORKERS, "p"),
        ]
    }

    assert list(said.values()) == [
        "A job that is running can't be replayed.",
        "A job that is failed can't be cancelled.",
        "A job that is failed can't be paused.",
        "A queue can't be cancelled.",
        "A worker can't be paused.",
    ]
    empty = pressed(Screen(Panel.FAILURES), replace(snapshot, failures=[]), "r").screen
    assert empty.said == "There is nothing here to be replayed."


@pytest.mark.parametrize("size", [(200, 60), (120, 40), (80, 24), (60, 18), (38, 10), (20, 6), (9, 3), (5, 2), (1, 1)])
@pytest.mark.parametrize("keys", [(), ("?",), ("enter",), ("tab", "enter"), ("tab", "tab", "enter"), ("p",)])
def test_the_screen_is_exactly_as_large_as_the_terminal(
    size: tuple[int, int], keys: tuple[str, ...], app: Mainspring, jobs: Jobs
) -> None:
    for number in range(30):
        jobs.fail(task="charge", queue=f"queue-{number}")
    job = jobs.run(task="import_rows", queue="a-queue")
    jobs.progress(job, 1, 3, "東京 \x1b[2J\n second \u202e line")
    jobs.say(job, *(f"東京 {number} \x1b[2J\n" + "long " * 50 for number in range(50)))
    screen = pressed(Screen(), look(app), *keys).screen

    drawn = draw(screen, look(app, screen.place), size, "somewhere")
    lines = drawn.split("\n", allow_blank=True)

    assert [line.cell_len for line in lines] == [size[0]] * size[1]
    assert "\x1b" not in drawn.plain
    assert "\u202e" not in drawn.plain


@pytest.mark.parametrize("height", [24, 12, 8])
def test_what_is_chosen_is_always_to_be_seen(height: int, app: Mainspring, jobs: Jobs) -> None:
    for number in range(40):
        jobs.add(queue=f"queue-{number:02}")
    snapshot, screen = look(app), Screen()

    for number in range(40):
        assert f"queue-{number:02}" in shown(screen, snapshot, 80, height)
        screen = pressed(screen, snapshot, "j").screen


def test_counts_that_are_old_say_so(app: Mainspring, jobs: Jobs) -> None:
    snapshot = look(app)

    assert "counted" not in shown(Screen(), snapshot)
    assert "counted 9s ago" in shown(Screen(), replace(snapshot, at=snapshot.at + timedelta(seconds=9)))


def test_the_end_of_a_log_is_shown_and_the_rest_by_going_up(app: Mainspring, jobs: Jobs) -> None:
    job = jobs.run()
    jobs.say(job, *(f"line {number}." for number in range(100)))
    snapshot = look(app, Place("job", str(job.id)))
    screen = Screen(path=(Place("job", str(job.id)),))

    assert "line 99." in shown(screen, snapshot)
    assert "line 0." not in shown(screen, snapshot)
    assert "line 0." in shown(pressed(screen, snapshot, "home").screen, snapshot)
    assert "line 99." in shown(pressed(screen, snapshot, "home", "end").screen, snapshot)


def test_an_empty_log_is_told_to_stay_so_once_the_job_has_ended(app: Mainspring, jobs: Jobs) -> None:
    for job, told in ((jobs.run().id, "nothing so far"), (jobs.succeed().id, "It has said nothing.")):
        place = Place("job", str(job))

        assert told in shown(Screen(path=(place,)), look(app, place))


def test_a_job_that_was_pruned_meanwhile_is_told_of(app: Mainspring, jobs: Jobs) -> None:
    place = Place("job", str(jobs.session.id))

    assert "It is not there any more" in shown(Screen(path=(place,)), look(app, place))


@pytest.mark.parametrize(
    ("height", "wants", "shares"),
    [(20, [3, 2, 4], [3, 2, 4]), (9, [9, 2, 9], [4, 2, 3]), (2, [5, 5, 5], [1, 1, 0]), (0, [5], [0])],
)
def test_room_is_shared_evenly_and_none_is_wasted(height: int, wants: list[int], shares: list[int]) -> None:
    assert allot(height, wants) == shares
