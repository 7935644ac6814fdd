"""A server's app from afar: `Client(url, token)` has the names of `Mainspring`, and `AsyncClient` the same to await."""

from __future__ import annotations

from mainspring.remote.changes import Change, Skipped
from mainspring.remote.client import (
    AsyncClient,
    AsyncRemoteJob,
    AsyncRemoteWorkflow,
    Client,
    RemoteJob,
    RemoteWorkflow,
)

__all__ = [
    "AsyncClient",
    "AsyncRemoteJob",
    "AsyncRemoteWorkflow",
    "Change",
    "Client",
    "RemoteJob",
    "RemoteWorkflow",
    "Skipped",
]
