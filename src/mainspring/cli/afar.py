"""A server in place of a database: the same commands, asked of its API."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING

from mainspring.cli.output import without_passwords
from mainspring.errors import MainspringError, ServerRefused, ServerUnavailable

if TYPE_CHECKING:
    from mainspring.remote import Client

TOKEN = "MAINSPRING_TOKEN"  # noqa: S105 - where it is, and there alone: all users of a machine can list arguments


def is_server(url: str) -> bool:
    """Return whether *url* is the address of a server, which is asked by HTTP."""
    return url.strip().lower().startswith(("http://", "https://"))


@contextmanager
def server_at(url: str, team: str | None) -> Iterator[Client]:
    """Lend a client of the server at *url*, for a *team* if one is named; what goes wrong is told with the way out."""
    try:
        from mainspring.remote import Client
    except ModuleNotFoundError as error:
        raise MainspringError(
            f"to ask a server needs {error.name}, which is not installed; add mainspring[server]"
        ) from None
    token = os.environ.get(TOKEN) or None
    try:
        with Client(url.strip(), token, team) as client:
            yield client
    except ServerUnavailable as error:
        error.args = (f"{error}; see whether it runs at {without_passwords(url)}, or name another by --url",)
        raise
    except ServerRefused as error:
        error.args = (f"{error}{_way_out(error.status, token is not None, team)}",)
        raise


def _way_out(status: int, shown: bool, team: str | None) -> str:
    if status == HTTPStatus.UNAUTHORIZED:
        return f"; set {TOKEN} to {'another' if shown else 'one'}, such as `mainspring tokens create` prints"
    if status == HTTPStatus.FORBIDDEN:
        return f"; set {TOKEN} to a token that grants it{'' if team is None else ', or name another --team'}"
    return ""
