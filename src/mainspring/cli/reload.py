"""A worker that is started again whenever its code changes, for development."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from mainspring.cli.apps import shown_path
from mainspring.cli.supervisor import Child, Supervisor
from mainspring.clock import SystemClock, microseconds
from mainspring.model.exit_code import how_it_ended

_LOOK = 0.5
_PAUSE = 5.0
_ELSEWHERE = frozenset({"node_modules", "site-packages", "venv"})

log = logging.getLogger("mainspring.supervisor")


class Watched:
    """Files, and how they were when they were last looked at."""

    def __init__(self) -> None:
        self._seen: dict[str, int | None] = {}
        self._began = math.inf

    def begin(self) -> None:
        """Take what is there for known. What is written from now on is a change, also of files yet to be added."""
        self.look()
        self._began = microseconds(SystemClock().now()) * 1000

    def add(self, files: Iterable[str]) -> bool:
        """Watch *files* from now on; return whether there was one that was not watched before."""
        new = {file: _changed_at(file) for file in files if file not in self._seen}
        self._seen |= {file: None if at is not None and at > self._began else at for file, at in new.items()}
        return bool(new)

    def look(self) -> str | None:
        """Return a file that has changed since the last look, if one has."""
        changed = [file for file, before in self._seen.items() if _changed_at(file) != before]
        self._seen.update((file, _changed_at(file)) for file in changed)
        return changed[0] if changed else None


def run_reloading(command: list[str], folders: Iterable[Path]) -> int:
    """Run the worker that *command* starts until signalled, anew after every change of what it has imported."""
    supervisor = Supervisor(command, speak=True)
    return supervisor.run(partial(_keep_fresh, folders=[*folders], watched=Watched()))


def _keep_fresh(supervisor: Supervisor, folders: list[Path], watched: Watched) -> None:
    while not supervisor.stopping.is_set():
        # Before the worker reads its files, for it names them only a while after.
        watched.begin()
        try:
            child = supervisor.spawn()
        except OSError as error:
            log.warning("no worker process could be started (%s); trying again in %g s", error.strerror, _PAUSE)
            supervisor.stopping.wait(_PAUSE)
            continue
        if child is not None:
            _one_life(supervisor, child, folders, watched)


def _one_life(supervisor: Supervisor, child: Child, folders: list[Path], watched: Watched) -> None:
    """Return when *child* has ended and there is reason to start another."""
    changed = _change_during(child, watched)
    if changed:
        log.info("%s has changed: starting again when what has started has ended", shown_path(changed))
        child.stop()
    code = supervisor.ended(child)
    if not changed and not supervisor.stopping.is_set():
        log.warning("the worker %s; waiting for its code to change", how_it_ended(code))
        _wait_for_change(supervisor, folders, watched)


def _wait_for_change(supervisor: Supervisor, folders: list[Path], watched: Watched) -> None:
    """Return when a file of *folders* has changed or was made, or the supervisor stops.

    All of them are watched: a module that could not be imported was not named by the worker.
    """
    watched.add(_python_files(folders))
    while not supervisor.stopping.wait(_LOOK):
        if watched.look() or watched.add(_python_files(folders)):
            return


def _change_during(child: Child, watched: Watched) -> str | None:
    """Return the file that changes while *child* lives; None once it has ended."""
    while child.hear():
        watched.add(child.line.files)
        changed = watched.look()
        if changed:
            return changed
    return None


def _python_files(places: Iterable[Path]) -> Iterator[str]:
    for place in places:
        for parent, folders, files in os.walk(place):
            folders[:] = [name for name in folders if not name.startswith((".", "__")) and name not in _ELSEWHERE]
            yield from (os.path.join(parent, name) for name in files if name.endswith(".py"))


def _changed_at(file: str) -> int | None:
    try:
        return os.stat(file).st_mtime_ns
    except OSError:
        return None
