"""What is sealed, and for what: its context says where it belongs, so that it can be opened nowhere else."""

from __future__ import annotations

from uuid import UUID

import msgspec

_BEGINNING = '{ "sealed":"'
_END = '"}'
_encoder = msgspec.json.Encoder()


def closed(sealed: str) -> str:
    """Return the JSON document that stands for a sealed one.

    With a space that no document has which we have written ourselves: what a handler returns can't be taken for it.
    """
    return f"{_BEGINNING}{sealed}{_END}"


def is_closed(document: str) -> bool:
    """Return whether *document* stands for a sealed one."""
    return document.startswith(_BEGINNING)


def sealed_in(document: str) -> str:
    """Return what is sealed in *document*."""
    return document.removeprefix(_BEGINNING).removesuffix(_END)


def secret_context(team: str, name: str) -> str:
    """Return where the value of a team's secret belongs."""
    return _context("secret", team, name)


def payload_context(job_id: UUID, task: str) -> str:
    """Return where the arguments of a job belong."""
    return _context("payload", str(job_id), task)


def schedule_context(schedule: str, task: str) -> str:
    """Return where the arguments belong with which a schedule makes jobs."""
    return _context("schedule", schedule, task)


def undo_context(workflow: UUID, task: str) -> str:
    """Return where the arguments belong of a job that undoes something of a workflow, and whose id is told later."""
    return _context("undo", str(workflow), task)


def result_context(job_id: UUID, task: str) -> str:
    """Return where the result of a job belongs."""
    return _context("result", str(job_id), task)


def step_context(job_id: UUID, task: str, name: str) -> str:
    """Return where the result of a step belongs."""
    return _context("step", str(job_id), task, name)


def signal_context(job_id: UUID, task: str, name: str) -> str:
    """Return where the value of a signal belongs."""
    return _context("signal", str(job_id), task, name)


def _context(*parts: str) -> str:
    # As JSON, so that no two lists of parts make the same text.
    return _encoder.encode(parts).decode()
