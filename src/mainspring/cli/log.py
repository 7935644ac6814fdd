"""How the commands that stay log: one line for each event, on stderr."""

from __future__ import annotations

import logging

_LINE = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
_LINE_OF_MANY = "%(asctime)s %(levelname)-7s [%(process)d] %(name)s: %(message)s"


def log_to_stderr(level: int, *, one_of_many: bool = False) -> None:
    """Log from *level* on, with the id of the process where it is *one_of_many*.

    An app that has set up logging by itself keeps its handlers; only the level of what Mainspring says is set.
    """
    logging.basicConfig(format=_LINE_OF_MANY if one_of_many else _LINE, datefmt="%Y-%m-%d %H:%M:%S", level=level)
    logging.getLogger("mainspring").setLevel(level)
