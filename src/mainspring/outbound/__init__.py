"""Requests that workers send on somebody's behalf: to public addresses only, unless the operator says otherwise."""

from mainspring.outbound.outbound import Outbound, Reply

__all__ = ["Outbound", "Reply"]
