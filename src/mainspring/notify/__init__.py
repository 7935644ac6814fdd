"""Notify: how notifications leave, by webhook and by mail, and how the receiver of a webhook knows that it is ours."""

from mainspring.notify.delivery import Delivery
from mainspring.notify.signature import verify

__all__ = ["Delivery", "verify"]
