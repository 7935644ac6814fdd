"""How the commands that stay log: one line for each event, on stderr, for people or for programs."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from textwrap import indent
from types import TracebackType

from mainspring.cli.output import printable
from mainspring.worker.held import ABOUT, about, current

_LINE = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
_LINE_OF_MANY = "%(asctime)s %(levelname)-7s [%(process)d] %(name)s: %(message)s"

_ErrorInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


def log_to_stderr(level: int, form: str = "text", *, one_of_many: bool = False) -> None:
    """Log from *level* on, in the *form* of text or JSON, with the id of the process where it is *one_of_many*.

    An app that has set up logging by itself keeps its handlers; only the level of what Mainspring says is set.
    """
    handler = logging.StreamHandler()
    line = _LINE_OF_MANY if one_of_many else _LINE
    handler.setFormatter(JsonLines() if form == "json" else _Formatter(line, datefmt="%Y-%m-%d %H:%M:%S"))
    logging.basicConfig(handlers=[handler], level=level)
    logging.getLogger("mainspring").setLevel(level)


class _Formatter(logging.Formatter):
    """Writes what jobs say, whatever that is, so that it can neither steer the terminal nor pass for a line of ours."""

    def format(self, record: logging.LogRecord) -> str:
        record.exc_text = None  # which another has made of it, perhaps, in his own way
        return super().format(record)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return printable(super().formatMessage(record)).replace("\n", "\\n")

    def formatException(self, ei: _ErrorInfo) -> str:  # noqa: N802 - logging's name
        return indent(printable(super().formatException(ei)), "    ")

    def formatStack(self, stack_info: str) -> str:  # noqa: N802 - logging's name
        return indent(printable(stack_info), "    ")


class JsonLines(logging.Formatter):
    """Writes one JSON object a line, whatever was said: JSON has no line breaks but escaped ones."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
            **_job_of(record),
        }
        if record.exc_info and record.exc_info[0] is not None:
            told["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            told["stack"] = record.stack_info
        return json.dumps(told, default=str)


def _job_of(record: logging.LogRecord) -> dict[str, object]:
    """Return whose record it is: as it says itself, or of the attempt that runs here."""
    held = current.get()
    known = about(held.job) if held is not None else {}
    return {name: getattr(record, name, known.get(name)) for name in ABOUT if hasattr(record, name) or name in known}
