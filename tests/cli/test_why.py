"""`mainspring why`."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

from mainspring.model.session import NewSession
from tests.cli.jobs import IDS, jobs_in
from tests.cli.program import in_process, mainspring


def test_each_reason_is_told_with_its_code(url: str, terminal: Callable[[int], None]) -> None:
    with jobs_in(url) as jobs:
        job = jobs.add(task="send")
        jobs.store.pause([job], "lunch")

    terminal(80)
    done = mainspring("why", str(job), "--url", url)
    told = json.loads(in_process("why", str(job), "--json", "--url", url).stdout)

    assert (done.returncode, done.stderr) == (0, "")
    assert "paused" in done.stdout
    assert f"it was paused (lunch) resume it with `mainspring jobs resume {job}`" in " ".join(done.stdout.split())
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert told["state"] == "paused"
    assert [reason["code"] for reason in told["reasons"]] == ["paused", "no_worker"]
    assert told["reasons"][0] == {
        "code": "paused",
        "sentence": "it was paused (lunch)",
        "estimate_seconds": None,
        "lift": f"resume it with `mainspring jobs resume {job}`",
    }


def test_how_long_it_may_last_is_told(url: str) -> None:
    with jobs_in(url) as jobs:
        job = jobs.add(delay=10_800)

    done = in_process("why", str(job), "--url", url)
    (due, _) = json.loads(in_process("why", str(job), "--json", "--url", url).stdout)["reasons"]

    assert "(about 3h) it is made ready by itself at that time" in " ".join(done.stdout.split())
    assert due["code"] == "not_due"
    assert 0 < due["estimate_seconds"] <= 10_800


def test_a_job_that_nothing_keeps_from_running_says_so(url: str) -> None:
    with jobs_in(url) as jobs:
        serving = NewSession(id=IDS.next(), name="w", lease=timedelta(hours=1), queues=["default"], tasks=["greet"])
        jobs.store.open_session(serving)
        ready, running = jobs.add(), jobs.run(queue="mail")

    assert in_process("why", str(ready), "--url", url).stdout.startswith("Nothing keeps it from running: ")
    assert in_process("why", str(running.id), "--url", url).stdout == "It is running.\n"


def test_a_running_job_that_was_asked_to_stop_says_so(url: str) -> None:
    with jobs_in(url) as jobs:
        paused, cancelled = jobs.run(), jobs.run(queue="mail")
        jobs.store.pause([paused.id], "lunch")
        jobs.store.cancel([cancelled.id])

    assert " ".join(in_process("why", str(paused.id), "--url", url).stdout.split()) == (
        "It was asked to pause (lunch): it stands still, or stops as soon as its handler looks. "
        f"Let it go on with `mainspring jobs resume {paused.id}`."
    )
    assert in_process("why", str(cancelled.id), "--url", url).stdout == (
        "It was asked to cancel, and ends as soon as its handler looks.\n"
    )


def test_a_job_that_has_finished_says_so(url: str) -> None:
    with jobs_in(url) as jobs:
        job = jobs.add(task="send")
        jobs.store.cancel([job])

    assert in_process("why", str(job), "--url", url).stdout == "It has finished: cancelled.\n"


def test_an_unknown_job_is_told(url: str) -> None:
    with jobs_in(url):
        pass

    assert in_process("why", str(IDS.next()), "--url", url).returncode == 1
