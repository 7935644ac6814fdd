"""What the HTTP API takes in: bulk creates in jobs/s, and single creates by 50 clients in milliseconds.

The server is a process of its own, and so is the client: 50 connections that each send the next request when they have
the answer to the last, or, with a pace, at a given rate in all. Every request shows a token and is on record in the
audit log. Beside it, in the same run, what a request costs that does nothing (`/healthz`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median, quantiles

from rich.console import Console
from rich.table import Table

from benchmarks.report import machine
from benchmarks.worker import postgres, sqlite
from mainspring import Mainspring

CLIENTS = 50
BULK = 1_000
SECONDS = 5.0
PACE = 500
"""Single creates a second, where they do not come as fast as they can."""

_TASKS = """
from mainspring import Mainspring

app = Mainspring()


@app.task
def greet(name: str, greeting: str = "Hello") -> str:
    return f"{greeting}, {name}!"
"""


@contextmanager
def served(url: str) -> Iterator[tuple[str, int, str]]:
    """A server on a database, its host, port, and a token for it."""
    app = Mainspring(url)
    token, _ = app.tokens.create("bench", {"*": "admin"})
    app.close()
    command = [sys.executable, "-m", "benchmarks.api", "--serve", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            host, port = process.stdout.readline().split()
            yield host, int(port), token
        finally:
            process.terminate()


def serve(url: str) -> None:
    """Serve until told to stop, and tell where."""
    import threading

    from mainspring.server import Server
    from mainspring.signals import on_stop_signal

    scope: dict[str, Mainspring] = {}
    exec(_TASKS, scope)
    app, stopped = scope["app"], threading.Event()
    app.client.url = url
    with on_stop_signal(stopped.set):
        server = Server(app, "127.0.0.1", 0)
        server.start()
        print(*server.url.removeprefix("http://").split(":"), flush=True)
        stopped.wait()
        server.stop()


class Connection:
    """A bare client of HTTP/1.1 on one connection: what it costs should be the server's."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def ask(self, request: bytes) -> int:
        """Send *request* and return the status of the answer."""
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await self._reader.readexactly(length)
        return int(head[9:12])


def request(method: str, path: str, token: str, document: object = None) -> bytes:
    body = b"" if document is None else json.dumps(document).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def hammer(host: str, port: int, asked: bytes, clients: int, seconds: float, pace: float = 0) -> list[float]:
    """Return how long each answer took, of *clients* at the same time, in all *pace* a second or as fast as can be."""
    took: list[float] = []
    end = time.perf_counter() + seconds

    async def client(number: int) -> None:
        connection = Connection(*await asyncio.open_connection(host, port))
        due = time.perf_counter() + (number / pace if pace else 0)
        while (now := time.perf_counter()) < end:
            if pace:
                await asyncio.sleep(max(0.0, due - now))
                now, due = time.perf_counter(), due + clients / pace
            status = await connection.ask(asked)
            assert status in (200, 201), status
            took.append(time.perf_counter() - now)

    await asyncio.gather(*(client(number) for number in range(clients)))
    return took


def bulk_rate(host: str, port: int, token: str, clients: int, seconds: float) -> float:
    jobs = [{"task": "greet", "args": [f"Ada {n}"], "kwargs": {"greeting": "Hello"}} for n in range(BULK)]
    begun = time.perf_counter()
    asked = request("POST", "/api/v1/jobs/bulk", token, {"jobs": jobs})
    took = asyncio.run(hammer(host, port, asked, clients, seconds))
    return len(took) * BULK / (time.perf_counter() - begun)


def measure(store: str, rounds: int, table: Table) -> None:
    opened = {"sqlite": sqlite, "postgres": postgres}[store]
    single = {"task": "greet", "args": ["Ada"], "kwargs": {"greeting": "Hello"}}
    with opened() as url, served(url) as (host, port, token):
        asked = request("POST", "/api/v1/jobs", token, single)
        asyncio.run(hammer(host, port, asked, CLIENTS, 1.0))  # to warm up
        for clients in (1, 2):
            rates = [bulk_rate(host, port, token, clients, SECONDS) for _ in range(rounds)]
            table.add_row(store, f"bulk create, {BULK:,} a call, {clients} client(s)", _spread(rates, "jobs/s"))
        for name, one, pace in (
            ("nothing (/healthz), as fast as can be", request("GET", "/healthz", token), 0),
            ("single create, as fast as can be", asked, 0),
            (f"single create, {PACE}/s in all", asked, PACE),
        ):
            found = [asyncio.run(hammer(host, port, one, CLIENTS, SECONDS, pace)) for _ in range(rounds)]
            hundredths = [quantiles(took, n=100) for took in found]
            table.add_row(store, f"{name}, {CLIENTS} clients", _spread([len(took) / SECONDS for took in found], "/s"))
            for percent in (50, 99):
                spread = _spread([one[percent - 1] * 1e3 for one in hundredths], "ms", 1)
                table.add_row(store, f"  p{percent}", spread)


def _spread(values: list[float], unit: str, digits: int = 0) -> str:
    low, high = min(values), max(values)
    return f"{median(values):,.{digits}f} {unit} ({low:,.{digits}f} to {high:,.{digits}f})"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.api", description=__doc__)
    parser.add_argument("--store", choices=["sqlite", "postgres"], action="append", help="only this one")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", metavar="URL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    console = Console(width=max(110, Console().width))
    console.print(machine())
    table = Table()
    for column in ("store", "what", "median (least to most)"):
        table.add_column(column)
    for store in options.store or ["sqlite", "postgres"]:
        measure(store, options.rounds, table)
    console.print(table)


if __name__ == "__main__":
    main()
