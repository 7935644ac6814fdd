"""The target of a request, read from its URL by one strict parser: what two might read differently is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mainspring.errors import OutboundRefused
from mainspring.model.ports import PORTS_FOR_REQUESTS, takes_requests
from mainspring.outbound.addresses import Address, literal

_LONGEST = 8_192
_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>/[^?#]*)?(?P<query>\?[^#]*)?(?:#.*)?"
)
_AUTHORITY = re.compile(r"(?:\[(?P<inner>[^\[\]]*)\]|(?P<host>[^:\[\]]*))(?::(?P<port>[0-9]{0,5}))?")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes: *host* in lower case, without brackets and last dot; *address* if it is one."""

    scheme: str
    host: str
    port: int
    path: str
    address: Address | None

    @property
    def origin(self) -> str:
        """What may be shown of it: paths and queries of webhooks often are a secret."""
        return f"{self.scheme}://{self.authority}"

    @property
    def authority(self) -> str:
        """The host as the request names it, with its port unless that is the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def target_of(url: str) -> Target:
    """Return where *url* leads."""
    if not isinstance(url, str) or len(url) > _LONGEST:
        raise OutboundRefused(f"expected a URL of at most {_LONGEST:,} characters, got {_kind(url)}")
    if not url.isascii() or not url.isprintable() or any(mark in url for mark in ' \\"<>^`{|}'):
        raise OutboundRefused(
            "expected a URL of plain ASCII; percent-encode other characters, and write a host name as punycode (xn--…)"
        )
    found = _URL.fullmatch(url)
    scheme = found["scheme"].lower() if found else ""
    if found is None or scheme not in _PORTS:
        raise OutboundRefused("expected a URL that begins with http:// or https://")
    if "@" in found["authority"]:
        raise OutboundRefused("expected a URL without a user name and password; send them in a header")
    authority = _AUTHORITY.fullmatch(found["authority"])
    if authority is None or int(authority["port"] or 1) not in range(1, 65_536):
        raise OutboundRefused("expected a URL with a host name and, at most, a port: http://example.com:8080/path")
    port = int(authority["port"] or _PORTS[scheme])
    if not takes_requests(port):
        raise OutboundRefused(f"requests to port {port} are not allowed; use {PORTS_FOR_REQUESTS}")
    host = (authority["inner"] if authority["host"] is None else authority["host"]).lower().removesuffix(".")
    return Target(
        scheme=scheme,
        host=host,
        port=port,
        path=f"{found['path'] or '/'}{found['query'] or ''}",
        address=_address(host, bracketed=authority["host"] is None),
    )


def _address(host: str, *, bracketed: bool) -> Address | None:
    try:
        if bracketed != (":" in host):
            raise ValueError("brackets are for IPv6 addresses")  # noqa: TRY301 - one answer for all that is no host
        return literal(host)
    except ValueError:
        raise OutboundRefused(
            "expected a URL whose host is a name, an IPv4 address of four decimal numbers or an IPv6 one in brackets"
        ) from None


def _kind(url: object) -> str:
    return f"{len(url):,}" if isinstance(url, str) else f"a value of type {type(url).__name__}"
