"""What PostgreSQL's errors mean to a user, and which of them a new connection may cure."""

from __future__ import annotations

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from mainspring.errors import StoreError, StoreFull, StoreReadOnly, StoreUnavailable

# Shutting down, crashed, starting up, idle for too long, out of connections.
_TRANSIENT = ("57P01", "57P02", "57P03", "57P05", "25P03", "25P04", "53300")

# libpq reports what went wrong before a log-in was complete as text only.
_REFUSALS = (
    "authentication failed",
    "does not exist",
    "no password supplied",
    "pg_hba.conf",
    "not permitted to log in",
)
_TURNED_AWAY = ("too many", "remaining connection slots", "starting up", "shutting down", "sslmode", "SSL", "option")

CONFLICTS = (errors.DeadlockDetected, errors.SerializationFailure, errors.LockNotAvailable)
"""Someone else was in the way and nothing was written: run it again."""


def connection_lost(error: psycopg.Error) -> bool:
    """Return whether a new connection may cure *error*."""
    if error.sqlstate is None:
        # No answer from a server: the network, our own deadline, or a log-in that was refused on the way.
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and not _log_in_refused(error)
    return error.sqlstate.startswith("08") or error.sqlstate in _TRANSIENT


def read_only(error: psycopg.Error) -> bool:
    """Return whether the server takes no writes."""
    return error.sqlstate == "25006"


def no_partition(error: psycopg.Error) -> bool:
    """Return whether a row found no partition for its day: a check failed, and none of ours by name."""
    return isinstance(error, errors.CheckViolation) and not error.diag.constraint_name


def translate(error: psycopg.Error, url: str, *, in_doubt: bool = False) -> StoreError:
    """Return our own error for *error*, in one sentence with the way out.

    *in_doubt* says that what was to be done may be done: the server may have committed it before it was lost.
    """
    if in_doubt:
        plain = translate(error, url)
        return type(plain)(f"{plain}; what was to be written may have been written before the server was lost")
    # The details of an error quote rows, and so the arguments of jobs.
    reason = " ".join((error.diag.message_primary or str(error)).split())
    if read_only(error):
        return StoreReadOnly("the server is read-only (a standby?); point the address at the primary")
    if isinstance(error, errors.DiskFull):
        return StoreFull(f"the server's disk is full; free some space there and try again ({reason})")
    if isinstance(error, errors.InsufficientPrivilege):
        return StoreError(f"the database user lacks a right; grant it what docs/operating.md says ({reason})")
    if _log_in_refused(error):
        return StoreUnavailable(f"PostgreSQL refused the log-in; check user, password and database name ({reason})")
    if isinstance(error, errors._WaitTimeout):  # noqa: SLF001 - documented, though not by a public name
        return StoreUnavailable(
            f"PostgreSQL at {location(url)} did not answer in time: overloaded, cut off, or locked by somebody"
        )
    if connection_lost(error):
        if error.sqlstate is None and any(sign in reason for sign in _TURNED_AWAY):
            return StoreUnavailable(f"PostgreSQL at {location(url)} turned us away ({reason})")
        return StoreUnavailable(f"can't reach PostgreSQL at {location(url)}; is it running there? ({reason})")
    if isinstance(error, CONFLICTS):
        return StoreUnavailable(f"others kept what this call needs locked for too long; try again ({reason})")
    return StoreError(f"PostgreSQL failed: {reason}")


def commit_in_doubt(error: psycopg.Error, url: str) -> StoreError:
    """Return our own error for *error*, which came in answer to a commit that can't be repeated."""
    if not connection_lost(error):
        return translate(error, url)
    return StoreUnavailable(
        f"lost PostgreSQL at {location(url)} while it committed, so whether the job is settled is not known; "
        "if it is not, it will be run again"
    )


def location(url: str) -> str:
    """Return where the server is, without the user's password."""
    facts = conninfo_to_dict(url)
    host, port = facts.get("host") or "a local socket", facts.get("port") or 5432
    return f"{host}:{port}, database {facts.get('dbname') or facts.get('user') or 'of the same name as the user'}"


def _log_in_refused(error: psycopg.Error) -> bool:
    return error.sqlstate is None and any(sign in str(error) for sign in _REFUSALS)
