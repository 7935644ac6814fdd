"""The guard: no request reaches anything but public addresses, however its URL is written."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from mainspring.errors import InvalidValue, OutboundFailed, OutboundRefused
from mainspring.outbound import Outbound
from mainspring.outbound.addresses import is_public, parsed
from tests.support.receiver import Receiver, answering, receiving

PUBLIC = "93.184.216.34"


@pytest.fixture
def canary() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def resolver(*answers: list[str]) -> Any:
    """Return a resolver that gives the answers one after the other, and then the last for ever."""
    left = list(answers)

    def resolve(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        found = left.pop(0) if len(left) > 1 else left[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]

    return resolve


NOT_PUBLIC = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.42.42",
    "169.254.169.254",
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:93.184.216.34",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::a00:1",
    "100::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:a00:1::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:42::42",
    "fd00:a9fe:a9fe::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fe80::a9fe:a9fe",
    "fe80::1",
    "fec0::1",
    "ff02::1",
]


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_that_is_not_public_is_refused_as_such_and_as_what_a_name_stands_for(address: str) -> None:
    written = f"[{address}]" if ":" in address else address
    with pytest.raises(OutboundRefused, match="not public"):
        Outbound().request("GET", f"http://{written}/")
    with pytest.raises(OutboundRefused, match="not public"):
        Outbound(resolve=resolver([address])).request("GET", "http://example.com/")


@pytest.mark.parametrize(
    "address",
    [
        "93.184.216.34",
        "168.63.129.15",
        "168.63.129.17",
        "8.8.8.8",
        "1.1.1.1",
        "2606:4700::1111",
        "2a00:1450:4001:81b::200e",
    ],
)
def test_a_public_address_is_public(address: str) -> None:
    assert is_public(parsed(address))


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1.",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0X7F.1",
        "0177.0.0.1",
        "017700000001",
        "127.1",
        "127.0.1",
        "127.0.0.01",
        "0",
        "0x",
        "127.0.0.1.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[2002:7f00:0001::]",
        "[fe80::1%25lo]",
        "[::1%lo]",
        "[127.0.0.1]",
        "::1",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "localhost..",
        "sub.localhost",
        "metadata.google.internal",
        "metadata.google.internal.",
        "metadata",
        "printer.local",
        "router.lan",
        "db.corp",
        "user@127.0.0.1",
        "example.com@127.0.0.1",
        "example.com:80@127.0.0.1",
        "127.0.0.1\\@example.com",
        "example.com\\@127.0.0.1",
        "127.0.0.1%2f@example.com",
        "127。0。0。1",
        "①②⑦.0.0.1",
        "ⓛocalhost",
        "exa mple.com",
        "127.0.0.1%00.example.com",
        "127.0.0.1\n.example.com",
        "",
        ".",
        "..",
        "-",
        "[]",
        "[",
        "a[::1]",
        "[::1]a",
    ],
)
def test_no_way_to_write_a_local_host_reaches_it(host: str, canary: Receiver) -> None:
    outbound = Outbound(resolve=resolver(["127.0.0.1"]))

    for url in (f"http://{host}:{canary.port}/", f"http://{host}:{canary.port}@example.com/"):
        with pytest.raises(OutboundRefused):
            outbound.request("GET", url)
        with pytest.raises(OutboundRefused):
            Outbound().request("GET", url)
    assert canary.connections == 0


@pytest.mark.parametrize("host", ["metadata", "db.internal", "printer.local.", "a.localhost", "x.home.arpa"])
def test_a_name_of_a_private_network_is_refused_whatever_its_address(host: str) -> None:
    with pytest.raises(OutboundRefused, match="name of a private network"):
        Outbound(resolve=resolver([PUBLIC])).request("GET", f"http://{host}/")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_x",
        "ftp://example.com/",
        "unix:///run/docker.sock",
        "//example.com/",
        "http:/example.com",
        "http:example.com",
        "example.com",
        "javascript:alert(1)",
        "",
        "http://",
        "http://example.com:99999/",
        "http://example.com:22/",
        "http://example.com:25/",
        "http://example.com:0/",
        "http://example.com:80:80/",
        "http://example.com:+80/",
        "http://example.com:८०/",
        "http://example.com/\r\nHost: x",
        "http://example.com/ HTTP/1.1",
        "http://example.com/" + "a" * 8_192,
        None,
        17,
    ],
)
def test_what_is_no_web_address_is_refused(url: Any) -> None:
    with pytest.raises(OutboundRefused):
        Outbound(resolve=resolver([PUBLIC])).check(url)


@pytest.mark.parametrize("addresses", [[PUBLIC, "127.0.0.1"], ["127.0.0.1", PUBLIC], [PUBLIC, "::1"]])
def test_a_name_with_one_address_that_is_not_public_is_refused_for_all(addresses: list[str], canary: Receiver) -> None:
    with pytest.raises(OutboundRefused, match="not public"):
        Outbound(resolve=resolver(addresses)).request("GET", f"http://example.com:{canary.port}/")
    assert canary.connections == 0


def test_a_name_that_changes_its_address_after_the_check_leads_nowhere_else(
    canary: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached: list[object] = []

    def refuse(address: object, timeout: float | None = None, **_: object) -> socket.socket:
        reached.append(address)
        raise ConnectionRefusedError("nobody is there")

    monkeypatch.setattr(socket, "create_connection", refuse)
    outbound = Outbound(resolve=resolver([PUBLIC], ["127.0.0.1"]))

    with pytest.raises(OutboundFailed):
        outbound.request("GET", f"http://rebinding.example.com:{canary.port}/")

    assert reached == [(PUBLIC, canary.port)]
    monkeypatch.undo()
    with pytest.raises(OutboundRefused, match="not public"):
        outbound.request("GET", f"http://rebinding.example.com:{canary.port}/")
    assert canary.connections == 0


def test_redirects_are_told_and_not_followed(canary: Receiver) -> None:
    for place in ("http://169.254.169.254/latest/", canary.url):
        with receiving(answering("302 Found", f"Location: {place}\r\n")) as receiver:
            reply = Outbound(allow=["127.0.0.1"]).request("GET", f"{receiver.url}/")
            assert (reply.status, reply.headers["location"]) == (302, place)
            assert receiver.connections == 1
    assert canary.connections == 0


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "all_proxy", "https_proxy"])
def test_proxies_of_the_environment_are_not_used(name: str, canary: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, canary.url)
    with receiving() as receiver:
        assert Outbound(allow=["127.0.0.1"]).request("GET", f"{receiver.url}/").status == 200
    assert canary.connections == 0


@pytest.mark.parametrize("allow", ["127.0.0.1", "127.0.0.0/8", " 127.0.0.1/32 "])
def test_the_operator_can_allow_a_network(allow: str, canary: Receiver) -> None:
    outbound = Outbound(allow=[allow], resolve=resolver(["127.0.0.1"]))

    assert outbound.request("GET", f"http://127.0.0.1:{canary.port}/").status == 200
    assert outbound.request("GET", f"http://example.com:{canary.port}/").status == 200
    assert canary.connections == 2


def test_the_operator_says_so_in_the_environment(canary: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OutboundRefused):
        Outbound.configured().request("GET", f"{canary.url}/")
    monkeypatch.setenv("MAINSPRING_OUTBOUND_ALLOW", "hooks.example.internal, 127.0.0.1")
    assert Outbound.configured().request("GET", f"{canary.url}/").status == 200
    assert canary.connections == 1


@pytest.mark.parametrize("allow", ["hooks.example.internal", "*.example.internal", "HOOKS.example.internal."])
def test_the_operator_can_allow_a_name_and_only_that(allow: str, canary: Receiver) -> None:
    outbound = Outbound(allow=[allow], resolve=resolver(["127.0.0.1"]))

    assert outbound.request("GET", f"http://Hooks.example.internal.:{canary.port}/").status == 200
    for other in ("example.com", "evil-hooks.example.internal.evil.com", "example.internal", "xhooks.internal"):
        with pytest.raises(OutboundRefused):
            outbound.request("GET", f"http://{other}:{canary.port}/")
    assert canary.connections == 1


def test_an_allowed_network_does_not_allow_what_wraps_its_addresses(canary: Receiver) -> None:
    outbound = Outbound(allow=["127.0.0.0/8"])
    with pytest.raises(OutboundRefused):
        outbound.request("GET", f"http://[::ffff:127.0.0.1]:{canary.port}/")
    assert canary.connections == 0


@pytest.mark.parametrize("entry", ["", "http://example.com", "10.0.0.0/99", "a b", "example.com:80", "127.1"])
def test_an_allow_list_that_means_nothing_is_refused(entry: str) -> None:
    with pytest.raises(InvalidValue, match="expected what requests may reach"):
        Outbound(allow=[entry])


def test_a_refusal_does_not_tell_the_address_that_it_found() -> None:
    with pytest.raises(OutboundRefused) as caught:
        Outbound(resolve=resolver(["10.11.12.13"])).request("GET", "http://db.example.com/secret-path")
    assert "10.11.12.13" not in str(caught.value)
    assert "secret-path" not in str(caught.value)
