"""Metrics: how an app's jobs, queues and workers are, in the words of Prometheus."""

from mainspring.metrics.render import render
from mainspring.metrics.serve import MetricsServer, configured_token, serve

__all__ = ["MetricsServer", "configured_token", "render", "serve"]
