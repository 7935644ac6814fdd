"""A worker that is started again whenever its code changes, for development."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from mainspring.cli.apps import shown_path
from mainspring.cli.supervisor import Child, Supervisor, how_it_ended

_LOOK = 0.5
_ELSEWHERE = frozenset({"node_modules", "site-packages", "venv"})

log = logging.getLogger("mainspring.supervisor")


class Watched:
    """Files, and how they were when they were last looked at."""

    def __init__(self) -> None:
        self._seen: dict[str, int | None] = {}

    def add(self, files: Iterable[str]) -> bool:
        """Watch *files* from now on; return whether there was one that was not watched before."""
        new = {file: _changed_at(file) for file in files if file not in self._seen}
        self._seen |= new
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
    while True:
        watched.look()  # what has changed before it begins is no news
        child = supervisor.spawn()
        if child is None:
            return
        changed = _change_during(child, watched)
        if changed:
            log.info("%s has changed: starting again when what has started has ended", shown_path(changed))
            child.signal(signal.SIGTERM)
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
    while child.line.hear(_LOOK):
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
