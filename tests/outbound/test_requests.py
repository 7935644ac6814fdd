"""What is sent, what comes back, and how long and how much of it at most."""

from __future__ import annotations

import datetime
import gzip
import socket
import ssl
import sys
import threading
from pathlib import Path

import pytest

from mainspring.errors import OutboundFailed, OutboundRefused
from mainspring.outbound import Outbound
from tests.support.receiver import answering, receiving

HERE = Outbound(
    allow=["127.0.0.1", "receiver.example.com", "other.example.com"],
    resolve=lambda host, port, **_: [(0, 0, 0, "", ("127.0.0.1", port))],
)


def test_a_request_is_sent_as_it_was_given_and_its_reply_comes_back() -> None:
    with receiving(answering("201 Created", "X-A: 1\r\nx-a: 2\r\n", b"done")) as receiver:
        reply = HERE.request(
            "post",
            f"http://receiver.example.com:{receiver.port}/a/b?c=%20d#fragment",
            headers={"X-Token": "s3cret", "content-type": "application/json"},
            content=b'{"a": 1}',
        )
    assert (reply.status, reply.body, reply.truncated) == (201, b"done", False)
    assert reply.headers["x-a"] == "1, 2"
    assert reply.seconds >= 0
    head, _, body = receiver.requests[0].partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0] == b"POST /a/b?c=%20d HTTP/1.1"
    assert f"Host: receiver.example.com:{receiver.port}".encode() in lines
    assert {b"X-Token: s3cret", b"content-type: application/json", b"Content-Length: 8"} <= set(lines)
    assert b"Connection: close" in lines
    assert body == b'{"a": 1}'


def test_nothing_is_remembered_between_requests() -> None:
    with receiving(answering(headers="Set-Cookie: a=b\r\n")) as receiver:
        for _ in range(2):
            HERE.request("GET", f"{receiver.url}/")
    assert b"cookie" not in b"".join(receiver.requests).lower()
    assert receiver.connections == 2


def test_a_long_body_is_cut_and_the_rest_never_read() -> None:
    hung_up = threading.Event()

    def endless(peer: socket.socket, _: bytes) -> None:
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")
        try:
            while True:
                peer.sendall(b"x" * 65_536)
        except OSError:
            hung_up.set()

    with receiving(endless) as receiver:
        reply = HERE.request("GET", f"{receiver.url}/", most=1_000)
        assert hung_up.wait(60)
    assert (reply.body, reply.truncated) == (b"x" * 1_000, True)


def test_a_body_of_just_the_most_that_may_come_is_whole() -> None:
    with receiving(answering(body=b"x" * 1_000)) as receiver:
        reply = HERE.request("GET", f"{receiver.url}/", most=1_000)
    assert (len(reply.body), reply.truncated) == (1_000, False)


def test_nothing_is_unpacked() -> None:
    bomb = gzip.compress(b"\0" * 10_000_000)
    with receiving(answering(headers="Content-Encoding: gzip\r\n", body=bomb)) as receiver:
        reply = HERE.request("GET", f"{receiver.url}/")
    assert reply.body == bomb
    assert b"accept-encoding: identity" in receiver.requests[0].lower()


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000,
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000,
        b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100_000,
    ],
)
def test_an_endless_head_is_given_up(head: bytes) -> None:
    with receiving(lambda peer, _: peer.sendall(head)) as receiver, pytest.raises(OutboundFailed):
        HERE.request("GET", f"{receiver.url}/")


@pytest.mark.parametrize(
    "beginning", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"]
)
def test_a_receiver_that_sends_a_byte_now_and_then_does_not_draw_the_request_out(beginning: bytes) -> None:
    over = threading.Event()

    def trickle(peer: socket.socket, _: bytes) -> None:
        peer.sendall(beginning)
        while not over.wait(0.02):
            peer.sendall(b"1")

    with receiving(trickle) as receiver:
        with pytest.raises(OutboundFailed, match="took too long"):
            HERE.request("GET", f"{receiver.url}/", total=0.3)
        over.set()


def test_a_receiver_that_reads_nothing_does_not_draw_the_request_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        with pytest.raises(OutboundFailed, match="took too long"):
            HERE.request("POST", f"http://127.0.0.1:{deaf.getsockname()[1]}/", content=b"x" * 50_000_000, total=0.3)


def test_a_resolver_that_does_not_answer_is_not_waited_for() -> None:
    over = threading.Event()

    def resolve(*_: object, **__: object) -> list[tuple[object, ...]]:
        over.wait()
        return []

    with pytest.raises(OutboundFailed, match="no name server told"):
        Outbound(resolve=resolve).request("GET", "http://example.com/", connect=0.1)  # type: ignore[arg-type]
    over.set()


def test_a_name_without_an_address_is_a_failure_that_another_try_may_mend() -> None:
    def resolve(*_: object, **__: object) -> list[tuple[object, ...]]:
        raise socket.gaierror(-2, "Name or service not known")

    with pytest.raises(OutboundFailed, match="could not be found"):
        Outbound(resolve=resolve).request("GET", "http://example.com/")  # type: ignore[arg-type]
    with pytest.raises(OutboundFailed, match="has no address"):
        Outbound(resolve=lambda *_, **__: []).request("GET", "http://example.com/")


def test_the_next_address_is_tried_when_the_first_refuses() -> None:
    with receiving() as receiver:
        addresses = [(0, 0, 0, "", (address, receiver.port)) for address in ("127.0.0.2", "127.0.0.1")]
        outbound = Outbound(allow=["127.0.0.0/8"], resolve=lambda *_, **__: addresses)
        assert outbound.request("GET", f"http://example.com:{receiver.port}/").status == 200


@pytest.mark.parametrize(
    "answer",
    [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", b"HTTP/1.1 99999 OK\r\n\r\n"],
)
def test_a_reply_that_is_none_or_breaks_off_is_a_failure(answer: bytes) -> None:
    with receiving(lambda peer, _: peer.sendall(answer)) as receiver, pytest.raises(OutboundFailed):
        HERE.request("GET", f"{receiver.url}/")


def test_nobody_who_listens_is_a_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(OutboundFailed, match="did not answer"):
        HERE.request("GET", f"http://127.0.0.1:{port}/path-that-may-be-secret")


@pytest.mark.parametrize(
    "headers",
    [
        {"X": "a\r\nHost: b"},
        {"X": "a\nb"},
        {"X": "a\0b"},
        {"X": "snow ☃"},
        {"X\r\nY": "a"},
        {"X Y": "a"},
        {"X:": "a"},
        {"": "a"},
        {"X": 5},
        {"Host": "other.example.com"},
        {"content-length": "0"},
        {"Transfer-Encoding": "chunked"},
        {"Connection": "upgrade"},
        {"Proxy-Authorization": "x"},
        {"X": "y" * 20_000},
    ],
)
def test_headers_that_could_change_the_message_are_refused(headers: dict[str, str]) -> None:
    with receiving() as receiver:
        with pytest.raises(OutboundRefused):
            HERE.request("GET", f"{receiver.url}/", headers=headers)
        assert receiver.connections == 0


@pytest.mark.parametrize("method", ["", "GET ", "GET / HTTP/1.1\r\nX: y", "CONNECT", "connect", "TRACE", 5])
def test_methods_that_are_none_or_make_a_tunnel_are_refused(method: str) -> None:
    with pytest.raises(OutboundRefused, match="expected a method"):
        HERE.request(method, "http://receiver.example.com/")


def test_the_certificate_is_checked_for_the_name_though_the_connection_goes_to_an_address(tmp_path: Path) -> None:
    authority, server = certificates(tmp_path)
    named: list[str | None] = []
    server.sni_callback = lambda _, name, __: named.append(name)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def serve() -> None:
            for _ in range(2):
                peer, _address = listener.accept()
                try:
                    with server.wrap_socket(peer, server_side=True) as stream:
                        stream.recv(65_536)
                        answering(body=b"hello")(stream, b"")
                except ssl.SSLError:
                    peer.close()

        thread = threading.Thread(target=serve)
        thread.start()
        outbound = Outbound(
            allow=["receiver.example.com", "other.example.com"],
            resolve=lambda *_, **__: [(0, 0, 0, "", ("127.0.0.1", port))],
            tls=ssl.create_default_context(cafile=str(authority)),
        )
        assert outbound.request("GET", f"https://receiver.example.com:{port}/").body == b"hello"
        with pytest.raises(OutboundFailed, match="certificate is not valid"):
            outbound.request("GET", f"https://other.example.com:{port}/")
        thread.join()
    assert named == ["receiver.example.com", "other.example.com"]


def test_a_worker_without_the_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from mainspring import outbound

    monkeypatch.setitem(sys.modules, "httpcore", None)
    monkeypatch.delitem(sys.modules, "mainspring.outbound.wire", raising=False)
    monkeypatch.delattr(outbound, "wire", raising=False)

    with pytest.raises(OutboundFailed, match=r"run `pip install 'mainspring\[server\]'`"):
        HERE.request("GET", "http://receiver.example.com/")


def certificates(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """Return the certificate to trust, and a server's side that shows it: one of receiver.example.com."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "receiver.example.com")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("receiver.example.com")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, private = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, private)
    return certificate, server
