"""Which programs a worker runs for jobs: those that its operator names, and those in folders that he names."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from mainspring.errors import CommandRefused, InvalidValue, did_you_mean
from mainspring.model.text import shortened

log = logging.getLogger("mainspring.worker")


class Programs:
    """An allow-list. Names are looked for in this process's own PATH, never in what a job brings along."""

    def __init__(self, allowed: Iterable[str]) -> None:
        if isinstance(allowed, str):
            raise InvalidValue(f"expected commands to be a list of names and folders, got: {shortened(allowed)}")
        if sys.platform != "linux":
            raise InvalidValue("commands run on Linux only, where all that comes of one can be found and ended")
        entries = list(allowed)
        self._folders = [_folder(entry) for entry in entries if os.sep in str(entry)]
        self._names = [_name(entry) for entry in entries if os.sep not in str(entry)]
        # Relative parts would mean whatever folder the worker was started in.
        self.path = os.pathsep.join(part for part in os.get_exec_path() if part.startswith(os.sep))
        for name in self._names:
            if shutil.which(name, path=self.path) is None:
                log.warning("the command %s is allowed, and there is no such program on this worker's PATH", name)

    def find(self, program: str) -> str:
        """Return the file of the *program* that a job wants to run; of one in a folder, with all links followed."""
        if os.sep in program:
            return self._within_folders(program)
        if program not in self._names:
            raise CommandRefused(
                f"this worker does not allow the command {shortened(program)}{did_you_mean(program, self._names)}; "
                "its operator can, with --allow-command"
            )
        found = shutil.which(program, path=self.path)
        if found is None:
            raise CommandRefused(f"the command {shortened(program)} is allowed here, and not installed")
        return found

    def _within_folders(self, program: str) -> str:
        # A link that leads out of the folder would make its owner the operator.
        real = os.path.realpath(program)
        if not os.path.isabs(program) or not any(_lies_in(real, folder) for folder in self._folders):
            raise CommandRefused(
                f"this worker does not allow the command {shortened(program)}: it is in none of the folders that its "
                "operator has named with --allow-command"
            )
        if not Path(real).is_file() or not os.access(real, os.X_OK):
            raise CommandRefused(f"the command {shortened(program)} is no file that can be executed")
        return real


def _folder(entry: str) -> str:
    real = os.path.realpath(entry)
    if not os.path.isabs(entry) or not Path(real).is_dir():
        raise InvalidValue(
            f"expected a command to be allowed by its name or by the path of the folder that it is in, "
            f"got: {shortened(entry)}, which is no folder"
        )
    return real


def _name(entry: str) -> str:
    if not isinstance(entry, str) or entry in ("", ".", ".."):
        raise InvalidValue(f"expected a command to be allowed by its name or its folder, got: {shortened(entry)}")
    return entry


def _lies_in(path: str, folder: str) -> bool:
    return os.path.commonpath([path, folder]) == folder and path != folder
