"""`mainspring why`."""

from __future__ import annotations

import json

from tests.cli.jobs import IDS, jobs_in
from tests.cli.program import in_process, mainspring


def test_each_reason_is_told_with_its_code(url: str) -> None:
    with jobs_in(url) as jobs:
        job = jobs.add(task="send")
        jobs.store.pause([job], "lunch")

    done = mainspring("why", str(job), "--url", url)
    told = json.loads(in_process("why", str(job), "--json", "--url", url).stdout)

    assert (done.returncode, done.stderr) == (0, "")
    assert "paused" in done.stdout
    assert "it was paused (lunch); resume it" in " ".join(done.stdout.split())
    assert told["state"] == "paused"
    assert [reason["code"] for reason in told["reasons"]] == ["paused", "no_worker"]


def test_a_job_that_has_finished_says_so(url: str) -> None:
    with jobs_in(url) as jobs:
        job = jobs.add(task="send")
        jobs.store.cancel([job])

    assert in_process("why", str(job), "--url", url).stdout == "It has finished: cancelled.\n"


def test_an_unknown_job_is_told(url: str) -> None:
    with jobs_in(url):
        pass

    assert in_process("why", str(IDS.next()), "--url", url).returncode == 1
