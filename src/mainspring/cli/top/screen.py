"""What the screen is about, and what each key makes of it. Nothing here knows of a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from mainspring.cli.ids import short
from mainspring.cli.top.snapshot import Place, Snapshot
from mainspring.documents.told import ToldJob
from mainspring.model.job import JobState
from mainspring.model.lifecycle import REPLAYABLE
from mainspring.model.queue import Queue
from mainspring.model.session import Session

Thing = Queue | Session | ToldJob

PAGE = 10


class Panel(StrEnum):
    """A list of the overview."""

    QUEUES = "Queues"
    WORKERS = "Workers"
    RUNNING = "Running"
    FAILURES = "Failures"


@dataclass(frozen=True)
class Deed:
    """What is done to a queue or to a job once the user has said yes."""

    verb: str
    place: Place
    label: str

    def __str__(self) -> str:
        return f"{self.verb} {self.label}"


@dataclass(frozen=True)
class Choice:
    """What is chosen of a list. When it has gone, what has taken its place is."""

    key: str = ""
    index: int = 0


@dataclass(frozen=True)
class Screen:
    """What the user looks at: a panel of the overview, or what was opened there, and what was opened from that."""

    panel: Panel = Panel.QUEUES
    path: tuple[Place, ...] = ()
    choices: Mapping[str, Choice] = field(default_factory=lambda: MappingProxyType({}))
    scroll: int = 0  # lines of a job's log, from its end
    asked: Deed | None = None
    helping: bool = False
    said: str = ""

    @property
    def place(self) -> Place | None:
        """What is open, if anything is."""
        return self.path[-1] if self.path else None

    @property
    def list_name(self) -> str:
        return self.panel if self.place is None else f"{self.place.kind}:{self.place.key}"


@dataclass(frozen=True)
class Pressed:
    """What a key has come to."""

    screen: Screen
    deed: Deed | None = None
    leave: bool = False


def panels(snapshot: Snapshot) -> list[Panel]:
    """Return the lists there are; one that is always empty would tell that no worker is there."""
    return [panel for panel in Panel if panel is not Panel.WORKERS or snapshot.of_fleet]


def things(panel: Panel, snapshot: Snapshot) -> Sequence[Thing]:
    """Return what a panel lists."""
    by_panel: Mapping[Panel, Sequence[Thing]] = {
        Panel.QUEUES: snapshot.queues,
        Panel.WORKERS: snapshot.workers,
        Panel.RUNNING: snapshot.running,
        Panel.FAILURES: snapshot.failures,
    }
    return by_panel[panel]


def listed(screen: Screen, snapshot: Snapshot) -> Sequence[Thing]:
    """Return what the list holds in which the user moves."""
    place = screen.place
    if place is None:
        return things(screen.panel, snapshot)
    if place.kind == "worker":
        return [job for job in snapshot.running if str(job.session) == place.key]
    return snapshot.jobs if place == snapshot.place else ()


def place_of(thing: Thing) -> Place:
    """Return how to open *thing*."""
    if isinstance(thing, Queue):
        return Place("queue", thing.name)
    return Place("worker" if isinstance(thing, Session) else "job", str(thing.id))


def chosen_index(screen: Screen, list_name: str, items: Sequence[Thing]) -> int:
    """Return which of *items* is chosen."""
    choice = screen.choices.get(list_name, Choice())
    keys = [place_of(item).key for item in items]
    return keys.index(choice.key) if choice.key in keys else max(0, min(choice.index, len(items) - 1))


def chosen(screen: Screen, snapshot: Snapshot) -> Thing | None:
    """Return what the keys act on: the job that is open, or what is chosen of the list."""
    if screen.place is not None and screen.place.kind == "job":
        found = snapshot.detail if snapshot.place == screen.place else None
        return None if found is None else found.job
    items = listed(screen, snapshot)
    return items[chosen_index(screen, screen.list_name, items)] if items else None


def press(screen: Screen, key: str, snapshot: Snapshot) -> Pressed:
    """Return what *key* makes of the screen."""
    if screen.asked is not None:
        answered = replace(screen, asked=None, said="" if key in "yY" else "Nothing was changed.")
        return Pressed(answered, deed=screen.asked if key in "yY" else None)
    if screen.helping:
        return Pressed(replace(screen, helping=False))
    screen = replace(screen, said="")
    if key in ("q", "esc"):
        return _back(screen)
    act = _KEYS.get(key)
    return Pressed(screen if act is None else act(screen, snapshot))


def _back(screen: Screen) -> Pressed:
    if not screen.path:
        return Pressed(screen, leave=True)
    return Pressed(replace(screen, path=screen.path[:-1], scroll=0))


def _move(by: int) -> Callable[[Screen, Snapshot], Screen]:
    def move(screen: Screen, snapshot: Snapshot) -> Screen:
        if screen.place is not None and screen.place.kind == "job":
            lines = 0 if snapshot.detail is None else len(snapshot.detail.lines)
            return replace(screen, scroll=max(0, min(screen.scroll - by, lines - 1)))
        items = listed(screen, snapshot)
        if not items:
            return screen
        index = max(0, min(chosen_index(screen, screen.list_name, items) + by, len(items) - 1))
        choice = Choice(place_of(items[index]).key, index)
        return replace(screen, choices=MappingProxyType({**screen.choices, screen.list_name: choice}))

    return move


def _turn(by: int) -> Callable[[Screen, Snapshot], Screen]:
    def turn(screen: Screen, snapshot: Snapshot) -> Screen:
        there = panels(snapshot)
        return replace(screen, path=(), scroll=0, panel=there[(there.index(screen.panel) + by) % len(there)])

    return turn


def _open(screen: Screen, snapshot: Snapshot) -> Screen:
    thing = chosen(screen, snapshot)
    if thing is None or screen.place == place_of(thing):
        return screen
    return replace(screen, path=(*screen.path, place_of(thing)), scroll=0)


def _help(screen: Screen, _: Snapshot) -> Screen:
    return replace(screen, helping=True)


def _pause(screen: Screen, snapshot: Snapshot) -> Screen:
    match thing := _subject(screen, snapshot):
        case Queue():
            return _ask(screen, "resume" if thing.paused else "pause", thing)
        case ToldJob() if not thing.state.final:
            return _ask(screen, "resume" if thing.state is JobState.PAUSED else "pause", thing)
    return _refuse(screen, thing, "paused")


def _cancel(screen: Screen, snapshot: Snapshot) -> Screen:
    thing = _subject(screen, snapshot)
    if isinstance(thing, ToldJob) and not thing.state.final:
        return _ask(screen, "cancel", thing)
    return _refuse(screen, thing, "cancelled")


def _replay(screen: Screen, snapshot: Snapshot) -> Screen:
    thing = _subject(screen, snapshot)
    if isinstance(thing, ToldJob) and thing.state in REPLAYABLE:
        return _ask(screen, "replay", thing)
    return _refuse(screen, thing, "replayed")


def _subject(screen: Screen, snapshot: Snapshot) -> Thing | None:
    """Return what is to be acted on: in an open queue that has no jobs, the queue."""
    thing = chosen(screen, snapshot)
    if thing is None and screen.place is not None and screen.place.kind == "queue":
        return next((queue for queue in snapshot.queues if place_of(queue) == screen.place), None)
    return thing


def _ask(screen: Screen, verb: str, thing: Queue | ToldJob) -> Screen:
    label = f"queue {thing.name}" if isinstance(thing, Queue) else f"{thing.task} {short(thing.id)}"
    return replace(screen, asked=Deed(verb, place_of(thing), label))


def _refuse(screen: Screen, thing: Thing | None, done: str) -> Screen:
    match thing:
        case None:
            return replace(screen, said=f"There is nothing here to be {done}.")
        case ToldJob():
            what = f"A job that is {thing.state}"
        case Queue():
            what = "A queue"
        case Session():
            what = "A worker"
    return replace(screen, said=f"{what} can't be {done}.")


_KEYS: Mapping[str, Callable[[Screen, Snapshot], Screen]] = {
    "up": _move(-1),
    "k": _move(-1),
    "down": _move(1),
    "j": _move(1),
    "page up": _move(-PAGE),
    "page down": _move(PAGE),
    "home": _move(-1_000_000),
    "g": _move(-1_000_000),
    "end": _move(1_000_000),
    "G": _move(1_000_000),
    "tab": _turn(1),
    "right": _turn(1),
    "back tab": _turn(-1),
    "left": _turn(-1),
    "enter": _open,
    "p": _pause,
    "c": _cancel,
    "r": _replay,
    "?": _help,
}
