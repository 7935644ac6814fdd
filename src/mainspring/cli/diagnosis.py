"""What there is to say about a database: facts, remarks, and problems with the way out."""

from __future__ import annotations

import os
import stat
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from mainspring.cli.output import without_passwords
from mainspring.errors import SchemaMissing, SchemaNewer, SchemaOutdated, StoreFull, StoreReadOnly
from mainspring.store import open_store
from mainspring.store.database import Probe
from mainspring.store.migrate import load_migrations
from mainspring.store.open import sqlite_file, sqlite_prepared
from mainspring.store.sql import SqlStore

SAMPLES = 5
"""One commit may meet a busy moment of the disk; the median of a few does not."""

_WORTH_A_REMARK = timedelta(seconds=1)


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What was found. A fact that could not be found out is None."""

    kind: str
    location: str
    schema_needed: int
    schema_version: int | None = None
    version: str | None = None
    durability: str | None = None
    commit: timedelta | None = None
    clock_difference: timedelta | None = None
    schema_problem: str | None = None
    write_problems: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that is wrong, each with the way out."""
        return (self.schema_problem, *self.write_problems) if self.schema_problem else self.write_problems


def diagnose(url: str) -> Diagnosis:
    """Look at the database at *url* without making or changing any of its tables."""
    file = sqlite_file(url)
    if file and (unopened := _from_outside(file)):
        return unopened
    if file and not sqlite_prepared(file):
        return Diagnosis(
            kind="sqlite",
            location=str(file),
            schema_needed=_known_version(),
            schema_version=0,
            schema_problem=_schema_problem(0, _known_version()),
        )
    with closing(open_store(url, prepared=False)) as store:
        found = store.version()
        known = _known_version()
        diagnosis = Diagnosis(
            kind="sqlite" if file else "postgresql",
            location=str(file) if file else without_passwords(url),
            schema_version=found,
            schema_needed=known,
            schema_problem=_schema_problem(found, known),
        )
        # A probe writes to our own table, so it must be there and be one that we know.
        return _probed(diagnosis, store) if 0 < found <= known else diagnosis


def with_probes(diagnosis: Diagnosis, probes: list[Probe]) -> Diagnosis:
    """Return *diagnosis* with what *probes* have found."""
    last = probes[-1]
    difference = _median([probe.clock_difference for probe in probes])
    return replace(
        diagnosis,
        kind=last.kind,
        version=last.version.removeprefix("PostgreSQL "),
        location=last.location,
        durability=last.durability,
        commit=_median([probe.commit for probe in probes]),
        clock_difference=difference,
        write_problems=last.problems,
        remarks=(_clock_remark(difference),) if abs(difference) > _WORTH_A_REMARK else (),
    )


def _probed(diagnosis: Diagnosis, store: SqlStore) -> Diagnosis:
    try:
        store.page(limit=1)
        return with_probes(diagnosis, [store.probe() for _ in range(SAMPLES)])
    except (StoreReadOnly, StoreFull) as error:
        return replace(diagnosis, write_problems=(str(error),))


def _median(lengths: list[timedelta]) -> timedelta:
    return sorted(lengths)[len(lengths) // 2]


def _clock_remark(difference: timedelta) -> str:
    side = "ahead of" if difference > timedelta(0) else "behind"
    return (
        f"the database's clock is {abs(difference).total_seconds():,.1f} s {side} this machine's; "
        "jobs are due by the database's clock, so nothing breaks"
    )


def _schema_problem(found: int, known: int) -> str | None:
    if found == known:
        return None
    if found == 0:
        return str(SchemaMissing())
    return str(SchemaNewer(found, known) if found > known else SchemaOutdated(found, known))


def _known_version() -> int:
    # Both dialects have the same numbers.
    return load_migrations("mainspring.store.sqlite")[-1].number


def _from_outside(file: Path) -> Diagnosis | None:
    """Return what shows without opening *file*, if opening it would make something; None if it would not.

    Opening makes a missing file, fills an empty one, and leaves the companions of a read-only one behind.
    """
    remark, problem = None, None
    kind = _kind(file)
    if kind is not None and not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        problem = f"{file} is no regular file; name another"
    elif os.path.islink(file) and kind is None:
        problem = f"{file} is a link to nothing; make what it points to, or name another file"
    elif len(os.fsencode(file.name)) > 250:
        problem = f"the name {file.name[:20]}… is too long for a file; name another"
    elif kind is None:
        folder = next(parent for parent in file.parents if os.path.exists(parent))
        if folder not in file.parents[:2]:
            problem = f"can't make the folder of {file}: there is no {file.parents[1]}; make it, or name another file"
        elif _writable(folder):
            remark = "there is no such file yet; it is made on first use"
        else:
            problem = f"can't make {file}: {folder} is read-only or no folder; change its permissions or name another"
    elif not (os.access(file, os.R_OK | os.W_OK) and _writable(file.parent)):
        problem = f"can't write to {file}: the file or its folder is read-only; change its permissions"
    elif not os.path.getsize(file):
        remark = "the file is empty; its tables are made on first use"
    if not (remark or problem):
        return None
    return Diagnosis(
        kind="sqlite",
        location=str(file),
        schema_needed=_known_version(),
        write_problems=(problem,) if problem else (),
        remarks=(remark,) if remark else (),
    )


def _kind(file: Path) -> int | None:
    """Return the mode bits of what *file* leads to; None when that is nothing."""
    try:
        return os.stat(file).st_mode
    except OSError:
        return None


def _writable(folder: Path) -> bool:
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)
