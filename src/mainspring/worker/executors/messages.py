"""What a worker and its child processes say to each other: JSON in frames, each with its length in front."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from mainspring.errors import CancelRequested, LeaseLost, TimeExpired, WorkerStopped
from mainspring.model.job import Job
from mainspring.model.journal import LogLine, Progress
from mainspring.model.outcome import (
    Cancelled,
    Expanded,
    Failed,
    Outcome,
    Paused,
    Returned,
    Snoozed,
    Succeeded,
    Suspended,
    TimedOut,
)
from mainspring.worker.executors.references import Reference

_OUTCOMES: dict[str, type[Outcome]] = {
    kind.name: kind for kind in (Succeeded, Failed, TimedOut, Snoozed, Suspended, Expanded, Cancelled, Paused, Returned)
}
_STOPS: dict[str, type[BaseException]] = {
    kind.__name__: kind for kind in (CancelRequested, TimeExpired, WorkerStopped, LeaseLost)
}
_HEAD = 4


class Setup(msgspec.Struct, frozen=True, tag=True):
    """The first message to a child: its database, how many bytes of memory it may use, and what logs are kept."""

    url: str
    memory: int | None
    capture: int | None = None  # the level from which on records of Python's logging are


class Begin(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """An attempt for the child to make, with what it needs to know of the task."""

    job: Job
    handler: Reference
    context: str | None
    timeout: timedelta | None
    start_by: float | None  # on the steady clock, which is the same here and there
    retry_on: list[Reference]
    retry_never: list[Reference]
    secrets: tuple[str, ...] = ()  # the values of those that are among the arguments
    sealed: bool = False  # whether what comes of it is


class Stop(msgspec.Struct, frozen=True, tag=True):
    """The attempt should end, and why."""

    kind: str
    message: str

    @classmethod
    def of(cls, stop: BaseException) -> Stop:
        return cls(type(stop).__name__, str(stop))

    def exception(self) -> BaseException:
        """Return what is raised in the handler."""
        return _STOPS[self.kind](self.message)


class TimeLeft(msgspec.Struct, frozen=True, tag=True):
    """The attempt, which stood still, goes on, and may take so many seconds from now."""

    seconds: float


class Flushed(msgspec.Struct, frozen=True, tag=True):
    """The answer to `Flush`."""


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The child runs, and nothing of the user's has been imported yet. From here on its death may be an attempt's."""


class Begun(msgspec.Struct, frozen=True, tag=True):
    """The handler was found, and is called now."""


class Logged(msgspec.Struct, frozen=True, tag=True):
    """Something to keep, unless the child keeps it together with the handler's own rows; and to log, unless it has."""

    line: LogLine
    keep: bool
    log: bool = True


class Progressed(msgspec.Struct, frozen=True, tag=True):
    progress: Progress


class Flush(msgspec.Struct, frozen=True, tag=True):
    """The child waits until what it has said so far is written."""


class Settled(msgspec.Struct, frozen=True, tag=True):
    """The handler committed the job's success together with its own rows."""


class Ended(msgspec.Struct, frozen=True, tag=True):
    """The attempt is over. After its `last`, a child takes no other."""

    kind: str | None
    content: msgspec.Raw
    last: bool

    @classmethod
    def with_outcome(cls, outcome: Outcome | None, *, last: bool) -> Ended:
        return cls(outcome.name if outcome is not None else None, msgspec.Raw(msgspec.json.encode(outcome)), last)

    @property
    def outcome(self) -> Outcome | None:
        """What the attempt came to; None when it can't be recorded."""
        return None if self.kind is None else msgspec.json.decode(self.content, type=_OUTCOMES[self.kind])


ToChild = Setup | Begin | Stop | TimeLeft | Flushed
FromChild = Ready | Begun | Logged | Progressed | Flush | Settled | Ended

to_child: msgspec.json.Decoder[ToChild] = msgspec.json.Decoder(ToChild)
from_child: msgspec.json.Decoder[FromChild] = msgspec.json.Decoder(FromChild)


def frame(message: ToChild | FromChild) -> bytes:
    """Return *message* as it travels."""
    data = msgspec.json.encode(message)
    return len(data).to_bytes(_HEAD) + data


class Frames:
    """Puts the messages in a stream of bytes together again."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the messages that *data* completes."""
        self._rest += data
        found = []
        while len(self._rest) >= _HEAD:
            end = _HEAD + int.from_bytes(self._rest[:_HEAD])
            if len(self._rest) < end:
                break
            found.append(bytes(self._rest[_HEAD:end]))
            del self._rest[:end]
        return found
