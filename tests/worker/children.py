"""Tasks that run in child processes, and what can be seen of those from outside."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mainspring import Mainspring, Retry
from mainspring.errors import JobFailed
from mainspring.job_handle import JobHandle
from mainspring.model.failure import Failure
from mainspring.task_handle import Policies, TaskHandle
from tests.support.waiting import until

LONG = "60s"
ONCE = Retry(max_attempts=1)


def in_process(app: Mainspring, handler: Callable[..., Any], **policies: Any) -> TaskHandle[..., Any]:
    given: Policies = {"executor": "process", "retry": ONCE, **policies}  # type: ignore[typeddict-item]
    made: TaskHandle[..., Any] = app.task(**given)(handler)
    return made


def failure(job: JobHandle[Any]) -> Failure:
    """Return why *job* failed, having waited for it."""
    with pytest.raises(JobFailed):
        job.result(timeout=LONG)
    found = job.snapshot.failure
    assert found is not None
    return found


def imported_in_children(folder: Path, monkeypatch: pytest.MonkeyPatch, then: str) -> Callable[..., Any]:
    """Return a handler in a module of its own, which does *then* when it is imported, except here."""
    (folder / "troublesome.py").write_text(
        f"import os, sys\nfrom tests.worker.process_tasks import write\n"
        f"def handler(): ...\n"
        f"if os.getpid() != {os.getpid()}:\n    {then}\n"
    )
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "troublesome", raising=False)
    handler: Callable[..., Any] = importlib.import_module("troublesome").handler
    return handler


def endless_to_import(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return a handler that is never found; that a child looks for it is written in *folder*."""
    return imported_in_children(folder, monkeypatch, "write(sys.path[0], 'importing', '')\n    while True: pass")


def read(file: Path) -> str:
    until(file.exists)
    return file.read_text()


def state_of(pid: int) -> str:
    """Return a letter for what process *pid* does; nothing when there is no such process."""
    return subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()


def is_dead(pid: int) -> bool:
    # Where nobody collects orphans, a dead one stays on the list.
    return state_of(pid)[:1] in ("", "Z")
