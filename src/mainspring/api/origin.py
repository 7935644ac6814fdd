"""Where a request comes from that shows no token: this machine itself, and no page of another site."""

from __future__ import annotations

import ipaddress
import re

from starlette.datastructures import Headers

from mainspring.api.problems import Problem

_HOST = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9.-]+))(?::[0-9]{1,5})?")


def check_origin(headers: Headers) -> None:
    """Refuse what a browser may have been made to send.

    A page elsewhere can have it ask any address: by a form, or by a name that it first looked up as the page's own and
    then as 127.0.0.1. The first shows in Sec-Fetch-Site and Origin, the second in Host.
    """
    host = headers.get("host", "")
    if not is_loopback(host):
        raise Problem(
            403,
            "foreign-host",
            f"expected a Host that names this machine, such as localhost, without a token, got: {host!r}",
        )
    site, origin = headers.get("sec-fetch-site", "none"), headers.get("origin")
    if site not in ("none", "same-origin") or origin not in (None, f"http://{host}"):
        raise Problem(403, "foreign-origin", "expected no request of a page from elsewhere without a token")


def is_loopback(host: str) -> bool:
    """Return whether *host*, as a Host header has it, names this machine."""
    parts = _HOST.fullmatch(host)
    if parts is None:
        return False
    if parts["name"] is not None and parts["name"].lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(parts["six"] or parts["name"]).is_loopback
    except ValueError:
        return False
