"""A server to be asked from afar."""

from __future__ import annotations

from tests.api.conftest import app, server

__all__ = ["app", "server"]
