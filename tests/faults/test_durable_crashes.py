"""A worker is killed at every point of a durable job, and each of its steps comes to what was promised."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from mainspring import Mainspring
from mainspring.store import open_store
from tests.faults.workers import Workers
from tests.support.databases import execute
from tests.worker.endings import outcomes

pytestmark = pytest.mark.slow

LEASE = "1500ms"


@pytest.fixture
def points(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where the worker dies, by the module that it runs."""
    monkeypatch.setenv("STORM_URL", url)
    monkeypatch.setenv("STORM_FOLDER", str(tmp_path))
    from tests.faults.durable_tasks import POINTS

    return POINTS


def test_each_step_is_done_once_or_at_least_once_wherever_its_worker_dies(
    url: str, tmp_path: Path, points: list[str]
) -> None:
    open_store(url).close()
    execute(url, "CREATE TABLE effects (text TEXT)")
    app = Mainspring(url)
    command = ["-m", "mainspring", "worker", "--app=tests.faults.durable_tasks:app", f"--lease={LEASE}"]
    environment = {"STORM_URL": url, "STORM_FOLDER": str(tmp_path)}
    workers = Workers(2, [*command, "--concurrency=1", "--log-level=error"], environment)
    with workers.running():
        for point in points:
            job = app.enqueue("order", args=[point])
            assert job.result(timeout="60s") == ["charge", "book written", "ship", "file written"], point
            assert outcomes(job).count("lost") == 1, point
            workers.alive = [worker for worker in workers.alive if worker.poll() is None]
            workers.start()
    app.close()

    written = Counter(text for (text,) in execute(url, "SELECT text FROM effects"))
    assert written == Counter(f"{point}: {name}" for point in points for name in ("book", "file"))
    done = Counter((tmp_path / "ledger").read_text().splitlines())
    again = {f"in {name}" for name in ("charge", "ship")}
    assert done == Counter(
        {
            f"{point}: {name}": 2 if point in again and point.endswith(name) else 1
            for point in points
            for name in ("charge", "ship")
        }
    )
