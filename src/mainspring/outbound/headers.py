"""The headers of a request, as others may give them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mainspring.errors import OutboundRefused
from mainspring.model.text import shortened

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_MOST_BYTES = 16_384
# These say where a message ends, or how long the connection lasts, or whom it is meant for: ours to tell.
_OURS = {
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}
_METHODS_REFUSED = {"CONNECT", "TRACE"}


def checked_method(method: str) -> str:
    """Return *method* in upper case, refusing what is none and what would make a tunnel."""
    if not isinstance(method, str) or not _TOKEN.fullmatch(method) or method.upper() in _METHODS_REFUSED:
        raise OutboundRefused(f"expected a method such as GET or POST, got: {shortened(method)}")
    return method.upper()


def checked_headers(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return *headers* as they can be sent; no value can begin another header or end the head."""
    for name, value in headers.items():
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise OutboundRefused(f"expected the name of a header, as in X-Request-Id, got: {shortened(name)}")
        if name.lower() in _OURS or name.lower().startswith("proxy-"):
            raise OutboundRefused(f"header {name} is set by the sender alone; leave it out")
        if not isinstance(value, str) or not _VALUE.fullmatch(value):  # not shown: it may be a secret
            raise OutboundRefused(f"expected header {name} to be one line of Latin-1 text without control characters")
    if sum(len(name) + len(value) for name, value in headers.items()) > _MOST_BYTES:
        raise OutboundRefused(f"expected headers of at most {_MOST_BYTES:,} bytes")
    return list(headers.items())
