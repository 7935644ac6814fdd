"""A receiver of requests on loopback, which counts who connects and answers as it is told."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

Answer = Callable[[socket.socket, bytes], None]


@dataclass
class Receiver:
    """*requests* are what came, whole; *connections* counts also those that said nothing."""

    port: int
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def answering(status: str = "200 OK", headers: str = "", body: bytes = b"") -> Answer:
    """Answer every request with the same."""
    head = f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode()
    return lambda peer, request: peer.sendall(head + body)


@contextlib.contextmanager
def receiving(answer: Answer | None = None, host: str = "127.0.0.1") -> Iterator[Receiver]:
    """Listen on a port of its own while the block lasts."""
    answer = answer or answering()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    peers: list[socket.socket] = []
    threads: list[threading.Thread] = []
    with socket.create_server((host, 0), family=family) as listener:
        receiver = Receiver(listener.getsockname()[1])

        def serve(peer: socket.socket) -> None:
            with peer, contextlib.suppress(OSError):
                request = whole_request(peer)
                receiver.requests.append(request)
                answer(peer, request)

        def accept() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                receiver.connections += 1
                peers.append(peer)
                threads.append(threading.Thread(target=serve, args=(peer,)))
                threads[-1].start()

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield receiver
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for peer in peers:
                with contextlib.suppress(OSError):
                    peer.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()


def whole_request(peer: socket.socket) -> bytes:
    """Read one request, its body too."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = peer.recv(65_536)
        if not part:
            return data
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    length = int(lengths[0].split(b":")[1]) if lengths else 0
    while len(body) < length:
        part = peer.recv(65_536)
        if not part:
            break
        body += part
    return head + b"\r\n\r\n" + body
