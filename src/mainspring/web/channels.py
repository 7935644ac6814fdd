"""Channels from forms: whom to tell, and of what."""

from __future__ import annotations

import re

from mainspring.errors import InvalidValue
from mainspring.model.channel import DEFAULT_EVENTS, Email, Webhook
from mainspring.web.forms import Form

_WEB = re.compile(r"https?://[^\x00-\x20]+", re.IGNORECASE)
_BETWEEN = re.compile(r"[\s,;]+")


def webhook(form: Form) -> Webhook:
    """Return the webhook that *form* describes."""
    # Checked here first, for of its address nothing is to be shown, be it wrong: where a chat gives out addresses, the
    # path is the secret.
    if not _WEB.fullmatch(form["url"]):
        raise InvalidValue("expected the address of a webhook to be like https://example.org/path, without blanks")
    return Webhook(form["url"], on=_events(form), secret=form["secret"] or None)


def email(form: Form) -> Email:
    """Return the e-mail that *form* describes."""
    to = [address for address in _BETWEEN.split(form["to"]) if address]
    return Email(to, on=_events(form), subject=form["subject"] or None, text=form["text"] or None)


def _events(form: Form) -> list[str]:
    return form.all("on") or [str(event) for event in DEFAULT_EVENTS]
