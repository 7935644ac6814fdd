"""Render: all metrics of an app as text, for whoever scrapes them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, proxy

from mainspring.client import Client
from mainspring.clock import SystemClock
from mainspring.errors import MainspringError
from mainspring.metrics.look import Look

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from mainspring.app import Mainspring

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_registries: WeakKeyDictionary[Client, CollectorRegistry] = WeakKeyDictionary()
_lock = threading.Lock()


def render(app: Mainspring) -> bytes:
    """Return the metrics of the whole fleet, whatever team *app* is bound to, and of its workers in this process."""
    registry = registry_of(app)
    from prometheus_client import generate_latest

    return generate_latest(registry)


def registry_of(app: Mainspring) -> CollectorRegistry:
    """Return what collects for *app*: always the same, for it knows what it saw last. Asks no database."""
    try:
        from prometheus_client import CollectorRegistry
    except ImportError:
        raise MainspringError("metrics need prometheus-client; run `pip install 'mainspring[server]'`") from None
    from mainspring.metrics.collect import AppCollector

    home = app.client.home
    with _lock:
        if home not in _registries:
            registry = CollectorRegistry()
            # By a proxy, or else the client would keep itself alive by what is kept here.
            registry.register(AppCollector(Look(proxy(home), SystemClock()), home.tally, app.tasks))
            _registries[home] = registry
        return _registries[home]
