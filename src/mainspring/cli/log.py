"""How the commands that stay log: one line for each event, on stderr."""

from __future__ import annotations

import logging
from textwrap import indent
from types import TracebackType

from mainspring.cli.output import printable

_LINE = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
_LINE_OF_MANY = "%(asctime)s %(levelname)-7s [%(process)d] %(name)s: %(message)s"

_ErrorInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


def log_to_stderr(level: int, *, one_of_many: bool = False) -> None:
    """Log from *level* on, with the id of the process where it is *one_of_many*.

    An app that has set up logging by itself keeps its handlers; only the level of what Mainspring says is set.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter(_LINE_OF_MANY if one_of_many else _LINE, datefmt="%Y-%m-%d %H:%M:%S"))
    logging.basicConfig(handlers=[handler], level=level)
    logging.getLogger("mainspring").setLevel(level)


class _Formatter(logging.Formatter):
    """Writes what jobs say, whatever that is, so that it can neither steer the terminal nor pass for a line of ours."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return printable(super().formatMessage(record)).replace("\n", "\\n")

    def formatException(self, ei: _ErrorInfo) -> str:  # noqa: N802 - logging's name
        return indent(printable(super().formatException(ei)), "    ")
