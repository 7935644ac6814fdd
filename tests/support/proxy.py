"""A proxy in front of PostgreSQL that can misbehave: swallow replies, fall silent, forget, hang up, or pool."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path

SOCKET = ".s.PGSQL.5432"


class FaultyProxy:
    """Passes bytes both ways, until told otherwise. Sits in *folder*, as the server sits in *server*."""

    def __init__(self, folder: Path, server: Path) -> None:
        self._server = server
        self._flowing = threading.Event()
        self._flowing.set()
        self._swallow: Callable[[bytes], bool] = lambda request: False
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._forgotten: set[socket.socket] = set()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / SOCKET))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def fall_silent(self) -> None:
        """Keep all connections open and pass nothing on, as a dead network does."""
        self._flowing.clear()

    def heal(self) -> None:
        self._swallow = lambda request: False
        self._flowing.set()

    def forget(self) -> None:
        """Keep the connections that there are and drop what comes on them, as a firewall that forgot them does."""
        self._forgotten.update(client for client, _ in self._pairs)

    def lose_reply_to(self, word: bytes) -> None:
        """Pass on the next request that contains *word*, then hang up before its reply: it happened, unheard of."""

        def swallow(request: bytes) -> bool:
            if word not in request:
                return False
            self._swallow = lambda request: False
            return True

        self._swallow = swallow

    def hang_up(self) -> None:
        """Close all connections."""
        for pair in self._pairs:
            for end in pair:
                _close(end)
        self._pairs.clear()

    def close(self) -> None:
        self._listener.close()
        self.heal()
        self.hang_up()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._server / SOCKET))
            except OSError:
                return
            self._pairs.append((client, server))
            deaf = threading.Event()
            threading.Thread(target=self._pass_requests, args=(client, server, deaf), daemon=True).start()
            threading.Thread(target=self._pass_replies, args=(client, server, deaf), daemon=True).start()

    def _pass_requests(self, client: socket.socket, server: socket.socket, deaf: threading.Event) -> None:
        try:
            while data := client.recv(65_536):
                self._flowing.wait()
                if client in self._forgotten:
                    continue
                if self._swallow(data):
                    deaf.set()
                server.sendall(data)
        except OSError:
            pass
        _close(server)

    def _pass_replies(self, client: socket.socket, server: socket.socket, deaf: threading.Event) -> None:
        try:
            while data := server.recv(65_536):
                self._flowing.wait()
                if client in self._forgotten:
                    continue
                # The server answers once it has committed; only then may the client see us hang up.
                if deaf.is_set():
                    break
                client.sendall(data)
        except OSError:
            pass
        _close(client)
        _close(server)


class TransactionPooler:
    """Lends a client a different server connection for every transaction, as pgbouncer in transaction mode does.

    Whatever a client leaves in one session (prepared statements, settings, LISTEN) it will not find in the next,
    and the process id it is told at log-in is made up.
    """

    def __init__(self, folder: Path, server: Path, size: int = 3) -> None:
        self._server = server
        self._size = size
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / SOCKET))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        servers: list[socket.socket] = []
        try:
            start_up = _read_start_up(client)
            welcome = b""
            for _ in range(self._size):
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._server / SOCKET))
                server.sendall(start_up)
                welcome = _read_until_ready(server)
                servers.append(server)
            client.sendall(_with_made_up_process_id(welcome))
            self._relay(client, servers)
        except OSError:
            pass
        for end in (client, *servers):
            _close(end)

    def _relay(self, client: socket.socket, servers: list[socket.socket]) -> None:
        turn = 0
        while True:
            kind, message = _read_message(client)
            if kind == b"X":
                return
            servers[turn].sendall(message)
            if kind in (b"Q", b"S"):
                reply = _read_until_ready(servers[turn])
                client.sendall(reply)
                if reply.endswith(b"I"):  # no transaction is open any more
                    turn = (turn + 1) % len(servers)


def _read_exactly(end: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = end.recv(size - len(data))
        if not part:
            raise OSError("closed")
        data += part
    return data


def _read_start_up(client: socket.socket) -> bytes:
    while True:
        head = _read_exactly(client, 4)
        message = head + _read_exactly(client, struct.unpack("!i", head)[0] - 4)
        if struct.unpack("!i", message[4:8])[0] == 196_608:  # protocol 3.0; others ask for encryption
            return message
        client.sendall(b"N")


def _read_message(end: socket.socket) -> tuple[bytes, bytes]:
    head = _read_exactly(end, 5)
    return head[:1], head + _read_exactly(end, struct.unpack("!i", head[1:])[0] - 4)


def _read_until_ready(server: socket.socket) -> bytes:
    reply = b""
    while True:
        kind, message = _read_message(server)
        reply += message
        if kind == b"Z":
            return reply


def _with_made_up_process_id(welcome: bytes) -> bytes:
    at = welcome.index(b"K\x00\x00\x00") + 5
    return welcome[:at] + struct.pack("!i", 1_234_567) + welcome[at + 4 :]


def _close(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
