"""Which hosts and addresses a request may go to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from mainspring.errors import InvalidValue
from mainspring.model.text import shortened

Address = IPv4Address | IPv6Address

# Spelled out, because `is_global` differs between versions of Python.
_NOT_PUBLIC_4 = [
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # carriers' own, and what some clouds give their inner services
        "127.0.0.0/8",
        "168.63.129.16/32",  # public by its number, but in Azure the host of the machine answers
        "169.254.0.0/16",  # link-local, where clouds keep the credentials of their machines
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
]
# All that is handed out for use in public. Beyond it lie loopback, link-local, private and multicast addresses, and
# those that wrap an IPv4 one: mapped, compatible, translated (NAT64).
_PUBLIC_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = [
    IPv6Network(text)
    for text in (
        "2001::/23",  # Teredo, which wraps an IPv4 address, and others with a purpose
        "2001:db8::/32",
        "2002::/16",  # 6to4 wraps one too
        "3fff::/20",
    )
]
_LOCAL_NAMES = (
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "home.arpa",
)
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*")


def is_public(address: Address) -> bool:
    """Return whether *address* is one that anybody in the world could reach."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_4)
    return address in _PUBLIC_6 and not any(address in network for network in _NOT_PUBLIC_6)


def literal(host: str) -> Address | None:
    """Return the address that *host* is, or None if it is a name; refuse what is an address to some programs only.

    `2130706433`, `0x7f.1`, `0177.0.0.1` and `127.1` are 127.0.0.1 to most resolvers.
    """
    if ":" in host:
        if "%" in host:
            raise ValueError("names a network interface")
        return IPv6Address(host)
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        return IPv4Address(host)
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        raise ValueError("is no host name")
    return None


def is_local_name(host: str) -> bool:
    """Return whether *host* is a name that means something within one network only."""
    return "." not in host or any(host.endswith(f".{name}") for name in _LOCAL_NAMES)


class Allowed:
    """What the operator lets requests reach beside public addresses: hosts by name, and networks.

    A name stands for itself, `*.example.internal` for all that end so. Whoever allows a name trusts who answers for it.
    """

    def __init__(self, entries: Iterable[str]) -> None:
        self._names: set[str] = set()
        self._endings: list[str] = []
        self._networks: list[IPv4Network | IPv6Network] = []
        for entry in entries:
            self._add(entry)

    def names(self, host: str) -> bool:
        return host in self._names or any(host.endswith(ending) for ending in self._endings)

    def reaches(self, address: Address) -> bool:
        return any(address in network for network in self._networks)

    def _add(self, entry: str) -> None:
        text = str(entry).strip().lower()
        try:
            self._networks.append(ip_network(text.strip("[]"), strict=False))
            return
        except ValueError:
            pass
        name = text.removeprefix("*.").removesuffix(".")
        try:
            known = literal(name) is None
        except ValueError:
            known = False
        if not known:
            raise InvalidValue(
                "expected what requests may reach to be host names or networks, as in hooks.example.internal, "
                f"*.example.internal or 10.1.0.0/16, got: {shortened(entry)}"
            )
        if text.startswith("*."):
            self._endings.append(f".{name}")
        else:
            self._names.add(name)


def parsed(answer: str) -> Address:
    """Return the address that a resolver's answer is; one with a zone is of this machine's own networks."""
    return ip_address(answer.partition("%")[0])
