"""A server's app from afar: `Client(url, token)` has the names of `Mainspring`, and `AsyncClient` the same to await."""

from __future__ import annotations

from mainspring.remote.client import AsyncClient, AsyncRemoteJob, Client, RemoteJob

__all__ = ["AsyncClient", "AsyncRemoteJob", "Client", "RemoteJob"]
