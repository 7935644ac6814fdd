"""Named queries from .sql files.

A file holds queries, each under a line `-- name: claim`. A query may be several statements, run in order in one
transaction. `fragments.sql` holds what several share: `{live}` in a query stands for the fragment of that name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files

AMBIENT = frozenset({"now", "steady"})
"""Parameters that the dialect supplies by itself, so that callers can't disagree about the time."""

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*\n?|\s+--.*$", re.MULTILINE)
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")
_FRAGMENT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Query:
    """A named query in the style of its .sql file, with `:name` for parameters."""

    name: str
    statements: tuple[str, ...]
    parameters: frozenset[str]


def load_queries(package: str) -> Mapping[str, Query]:
    """Return all queries of the `sql` folder of *package*."""
    texts = {file.name: file.read_text() for file in files(package).joinpath("sql").iterdir()}
    fragments = dict(_named(texts.pop("fragments.sql")))
    return {name: _query(name, _filled(body, fragments)) for text in texts.values() for name, body in _named(text)}


def _filled(body: str, fragments: Mapping[str, str]) -> str:
    """Return *body* with its fragments in place, which may stand for fragments themselves."""
    while _FRAGMENT.search(body):
        body = _FRAGMENT.sub(lambda match: fragments[match[1]], body)
    return body


def to_percent_style(statement: str) -> str:
    """Return *statement* with `%(name)s` in place of `:name`."""
    return _PARAMETER.sub(r"%(\1)s", statement.replace("%", "%%"))


def split_statements(script: str) -> list[str]:
    """Return the statements of *script*, which end with a semicolon at the end of a line."""
    return [part for part in (part.strip() for part in re.split(r";[ ]*(?:\n|$)", script)) if part]


def _named(text: str) -> Iterator[tuple[str, str]]:
    names = list(_NAME.finditer(text))
    ends = [match.start() for match in names[1:]] + [len(text)]
    for match, end in zip(names, ends, strict=True):
        yield match[1], _COMMENT.sub("", text[match.end() : end]).strip()


def _query(name: str, body: str) -> Query:
    return Query(name, tuple(split_statements(body)), frozenset(_PARAMETER.findall(body)))
