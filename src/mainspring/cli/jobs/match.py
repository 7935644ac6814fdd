"""Which jobs the options of a command mean."""

from __future__ import annotations

from msgspec.structs import asdict

from mainspring.cli.values import job_state, past
from mainspring.client import Match
from mainspring.store.protocol import JobFilter

OPTIONS = "--state, --queue, --task, --key, --since, --until, --finished-since, --finished-until or --error"


def matching(  # noqa: PLR0913 - one parameter for each option
    *,
    state: str | None,
    queue: str | None,
    task: str | None,
    key: str | None,
    since: str | None,
    until: str | None,
    finished_since: str | None,
    finished_until: str | None,
    error: str | None,
) -> JobFilter:
    """Return the filter that the options say, by the texts that were typed."""
    return JobFilter(
        state=None if state is None else job_state(state),
        queue=queue,
        task=task,
        key=key,
        since=None if since is None else past(since, "--since"),
        until=None if until is None else past(until, "--until"),
        finished_since=None if finished_since is None else past(finished_since, "--finished-since"),
        finished_until=None if finished_until is None else past(finished_until, "--finished-until"),
        error=error,
    )


def chosen_by(match: JobFilter) -> Match:
    """Return what *match* asks for, as the app is asked."""
    given: Match = {name: value for name, value in asdict(match).items() if value is not None}  # type: ignore[assignment]
    return given
