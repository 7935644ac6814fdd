"""`mainspring workflows`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest

from mainspring import Mainspring
from mainspring.cli.ids import short
from mainspring.model.job import Job, JobState, NewJob
from mainspring.model.lifecycle import settle
from mainspring.model.links import Edge, IfFailed
from mainspring.model.outcome import Expanded, Outcome, Succeeded
from mainspring.model.workflow import NewWorkflow, Plan, Undo, encode_plan
from mainspring.workflow_handle import WorkflowHandle
from tests.cli.databases import migrated
from tests.cli.jobs import FAILED, Jobs, jobs_in
from tests.cli.program import assert_refused, in_process, mainspring
from tests.support.factories import new_id, new_job

ALSO_FROM_AFAR = True

DONE = Succeeded("1")


def stored(jobs: Jobs, name: str, *members: tuple[str, Sequence[int]], **more: Any) -> tuple[UUID, list[UUID]]:
    """Store a workflow of these tasks, each after those with the numbers given; return its id and those of its jobs."""
    root, ids = new_id(), [new_id() for _ in members]
    undo = [Undo(ids[number], new_job(task=task, workflow=root)) for number, task in more.pop("undo", {}).items()]
    made = [
        new_job(id=one, task=task, workflow=root, parents=tuple(Edge(ids[parent]) for parent in after))
        for one, (task, after) in zip(ids, members, strict=True)
    ]
    plan = encode_plan(Plan(begun=True, output=ids[-1], undo=tuple(undo)))
    new = new_job(id=root, task=name, plan=plan, members=len(ids), **more)
    jobs.store.enqueue_workflow(NewWorkflow(new, tuple(made)))
    return root, ids


def etl(jobs: Jobs, **more: Any) -> tuple[UUID, list[UUID]]:
    return stored(jobs, "etl", ("extract", ()), ("check", ()), ("load", (0, 1)), ("report", (2,)), **more)


def claim(jobs: Jobs, task: str) -> Job:
    (job,) = jobs.store.claim(jobs.session.id, "default", 1, [task])
    return job


def end(jobs: Jobs, task: str, outcome: Outcome = DONE) -> None:
    """Have a job of *task* end, and all that follows from that."""
    jobs.store.settle([settle(claim(jobs, task), outcome)])
    while jobs.store.release().followed:
        pass


def expand(jobs: Jobs, task: str, count: int) -> None:
    """Have a job of *task* become a map over so many values."""
    job = claim(jobs, task)
    members: tuple[NewJob, ...] = tuple(new_job(task=task, workflow=job.id) for _ in range(count))
    jobs.store.settle([settle(job, Expanded(members, encode_plan(Plan(begun=True, gathers=True))))])


@pytest.fixture(autouse=True)
def _at_a_terminal(terminal: Callable[[int], None]) -> None:
    terminal(80)


def shown(*arguments: str) -> str:
    """Return what is shown of a workflow; no line is too long for the terminal."""
    done = in_process("workflows", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    return "\n".join(line.rstrip() for line in lines)


def test_a_workflow_is_shown_with_its_progress_its_picture_and_its_failures(url: str) -> None:
    with jobs_in(url) as jobs:
        root, _ = etl(jobs, key="today")
        end(jobs, "extract")
        end(jobs, "check", FAILED)

    done = mainspring("workflows", "show", short(root), "--url", url)

    facts, picture, failures = done.stdout.split("\n\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert [" ".join(line.split()) for line in facts.splitlines()][:4] == [
        f"Workflow etl, {root}",
        "State failed",
        "Progress 4 of 4 jobs: 1 succeeded, 1 failed, 2 cancelled",
        "Key today",
    ]
    assert [line.rstrip().split("  ")[:1] for line in picture.splitlines() if not line.startswith(" ")] == [
        ["✓ extract"],
        ["✗ check"],
    ]
    assert "  ⊘ load      cancelled  after extract, check" in picture
    assert "    ⊘ report  cancelled" in picture
    assert failures.splitlines()[0] == "Failures"
    assert failures.splitlines()[1].endswith("check: no luck")


def test_a_workflow_whose_jobs_are_at_work_is_under_way(jobs: Jobs) -> None:
    root, _ = etl(jobs)
    claim(jobs, "extract")

    text = shown("show", str(root))

    assert "State     under way\nProgress  0 of 4 jobs: 1 running\n" in text
    assert "▶ extract     running" in text
    assert "\nFailures" not in text
    assert "etl       " in shown("list")
    assert "under way  0 of 4" in shown("list")


def test_a_map_of_many_is_one_line_in_its_workflow_and_by_itself(jobs: Jobs) -> None:
    root, (_, big) = stored(jobs, "etl", ("extract", ()), ("part", ()))
    expand(jobs, "part", 1_200)
    for _ in range(12):
        end(jobs, "part", FAILED)

    assert "▶ part × 1,200: 12 failed, 1,188 ready\n" in f"{shown('show', str(root))}\n"
    alone = shown("show", str(big))
    assert f"Within    workflow {root}" in alone
    assert "▶ part × 1,200: 12 failed, 1,188 ready\n\nFailures\n" in alone
    assert alone.count("part: no luck") == 10
    assert alone.endswith("  and 2 jobs more; --json has them all")


def test_a_long_picture_is_cut_and_lines_that_are_too_long_go_on_below(jobs: Jobs) -> None:
    tasks = [f"{'a_rather_long_name_of_a_task_' * 3}{number}" for number in range(210)]
    root, _ = stored(jobs, "wide", *((task, ()) for task in tasks))

    text = shown("show", str(root))

    assert text.endswith("There are 10 lines more; --json has all jobs.")


def test_a_terminal_without_signs_gets_letters(jobs: Jobs, sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    root, _ = stored(jobs, "etl", ("extract", ()), ("part", (0,)))
    end(jobs, "extract")
    expand(jobs, "part", 30)
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")

    done = mainspring("workflows", "show", str(root), "--url", sqlite_url)

    assert "\n+ extract  succeeded" in done.stdout
    assert "\n  > part x 30: 30 ready" in done.stdout


def test_programs_are_told_of_every_job(jobs: Jobs) -> None:
    root, (extract, check, load, _) = etl(jobs)
    end(jobs, "extract", FAILED)

    told = json.loads(in_process("workflows", "show", str(root), "--json").stdout)

    assert (told["id"], told["task"], told["counts"]) == (str(root), "etl", {"cancelled": 2, "failed": 1, "ready": 1})
    assert [(one["id"], one["state"]) for one in told["jobs"][:2]] == [(str(extract), "failed"), (str(check), "ready")]
    assert told["jobs"][0]["why"] == "no luck"
    assert told["jobs"][2]["parents"] == [str(extract), str(check)]
    assert told["jobs"][2]["id"] == str(load)
    assert told["left_out"] == 0


def test_mermaid_is_printed_alone(jobs: Jobs) -> None:
    root, _ = etl(jobs)

    done = in_process("workflows", "show", str(root), "--mermaid")

    assert done.stdout.startswith('flowchart TD\n    n1["extract<br/>ready"]:::ready\n')
    assert "    n1 --> n3\n    n2 --> n3\n    n3 --> n4\n" in done.stdout
    assert_refused(in_process("workflows", "show", str(root), "--mermaid", "--json"), "--json or --mermaid, got both")


def test_workflows_are_listed_page_by_page(url: str) -> None:
    with jobs_in(url) as jobs:
        roots = [stored(jobs, f"wf{number}", ("extract", ()))[0] for number in range(3)]
        jobs.add()
        end(jobs, "extract", FAILED)

    first = mainspring("workflows", "list", "-n", "2", "--url", url)
    second = in_process("workflows", "list", "--before", short(roots[1]), "--url", url)
    told = json.loads(in_process("workflows", "list", "-n", "2", "--url", url, "--json").stdout)

    header, *rows, more = first.stdout.splitlines()
    assert header.split() == ["Workflow", "Id", "State", "Jobs", "ended", "Enqueued"]
    assert [row.split()[:2] for row in rows] == [["wf2", short(roots[2])], ["wf1", short(roots[1])]]
    assert more == f"There may be more: add --before {short(roots[1])}"
    assert [" ".join(row.split()[2:7]) for row in second.stdout.splitlines()[1:]] == ["failed 1 of 1, 1"]
    assert [one["id"] for one in told["workflows"]] == [str(roots[2]), str(roots[1])]
    assert (told["workflows"][0]["counts"], told["before"]) == ({"ready": 1}, str(roots[1]))


def test_a_database_without_workflows_says_so(sqlite_url: str) -> None:
    done = in_process("workflows", "list", "--url", migrated(sqlite_url))

    assert (done.returncode, done.stdout) == (0, f"No workflows in {sqlite_url}.\n")


def test_a_workflow_is_acted_on_as_a_whole(url: str) -> None:
    with jobs_in(url) as jobs:
        root, _ = etl(jobs)
        told = {}
        for command in ("pause", "resume", "cancel", "replay"):
            told[command] = mainspring("workflows", command, str(root), "--url", url).stdout
        states = {job.state for job in jobs.store.members(root)}

    assert told == {
        "pause": f"{root} paused; 4 of its 4 jobs paused\n",
        "resume": f"{root} under way; 4 of its 4 jobs resumed\n",
        "cancel": f"{root} cancelled; 4 of its 4 jobs cancelled\n",
        "replay": f"{root} under way; 4 of its 4 jobs replayed\n",
    }
    assert states == {JobState.READY, JobState.BLOCKED}


def test_jobs_that_run_are_asked(jobs: Jobs) -> None:
    root, _ = etl(jobs)
    claim(jobs, "extract")

    paused = in_process("workflows", "pause", str(root), "--reason", "too hot").stdout
    resumed = in_process("workflows", "resume", str(root)).stdout
    end(jobs, "check")
    cancelled = in_process("workflows", "cancel", str(root)).stdout
    again = in_process("workflows", "cancel", str(root)).stdout

    assert paused == f"{root} paused; 3 of its 4 jobs paused, 1 asked to stop\n"
    assert resumed == f"{root} under way; 3 of its 4 jobs resumed\n"
    assert cancelled == f"{root} being cancelled; 2 of its 4 jobs cancelled, 1 asked to stop\n"
    assert again == f"{root} being cancelled, so it can't be cancelled\n"


def test_what_has_succeeded_is_not_run_again(jobs: Jobs) -> None:
    root, _ = etl(jobs)
    end(jobs, "extract")
    end(jobs, "check", FAILED)

    assert in_process("workflows", "replay", str(root)).stdout == f"{root} under way; 3 of its 4 jobs replayed\n"
    assert jobs.store.member_counts([root])[root] == {JobState.SUCCEEDED: 1, JobState.READY: 1, JobState.BLOCKED: 2}


def test_a_workflow_that_can_not_be_acted_on_stays_as_it_is_and_says_why(jobs: Jobs) -> None:
    succeeded, _ = stored(jobs, "etl", ("extract", ()))
    end(jobs, "extract")
    keyed, _ = stored(jobs, "etl", ("extract", ()), key="k")
    jobs.store.cancel([keyed])
    jobs.add(key="k")
    undone, _ = stored(jobs, "trip", ("book", ()), ("pay", (0,)), undo={0: "unbook"})
    for task, outcome in (("book", DONE), ("pay", FAILED), ("unbook", DONE)):
        end(jobs, task, outcome)

    assert (
        in_process("workflows", "cancel", str(succeeded)).stdout == f"{succeeded} succeeded, so it can't be cancelled\n"
    )
    told = in_process("workflows", "replay", str(succeeded), str(keyed), str(undone)).stdout
    assert told.splitlines() == [
        f"{succeeded} succeeded, so it can't be replayed",
        f"{keyed} cancelled, because an unfinished job has its key 'k'; let that end first",
        f"{undone} failed, because what its jobs did was undone; start another",
    ]


def test_programs_are_told_what_became_of_each(jobs: Jobs) -> None:
    root, _ = etl(jobs)
    nobody = "01999999-9999-7000-8000-000000000000"

    done = in_process("workflows", "cancel", str(root), short(root), nobody, "--json")

    assert done.returncode == 1
    assert json.loads(done.stdout) == {
        "workflows": [{"id": str(root), "before": "blocked", "state": "cancelled", "counts": {"cancelled": 4}}],
        "missing": [nobody],
    }
    assert done.stderr == f"error: no job has the id {nobody}; it may have been pruned\n"


@pytest.mark.parametrize("command", ["show", "cancel", "pause", "resume", "replay"])
def test_a_job_that_is_no_workflow_is_refused(command: str, jobs: Jobs) -> None:
    job = jobs.add()

    done = in_process("workflows", command, str(job))

    assert_refused(done, f"job {job} of task 'greet' is no workflow", f"`mainspring jobs show {job}`")
    assert jobs.get(job).state is JobState.READY


def test_a_picture_is_had_from_the_handle(jobs: Jobs) -> None:
    root, _ = stored(jobs, "etl", ("extract", ()), ("part", ()))
    expand(jobs, "part", 30)
    app = Mainspring(jobs.url)

    handle = app.job(root)
    assert isinstance(handle, WorkflowHandle)
    picture = handle.picture()
    app.close()

    assert str(picture).splitlines() == ["· extract  ready", "▶ part × 30: 30 ready"]


def test_a_member_names_its_workflow_and_its_parents_and_a_workflow_points_to_its_picture(jobs: Jobs) -> None:
    root, (extract, check, load, _) = etl(jobs)
    late = new_job(task="late", parents=(Edge(extract, IfFailed.RUN), Edge(root, IfFailed.WAIT)))
    jobs.store.enqueue([late])

    def facts(job: UUID) -> str:
        return " ".join(in_process("jobs", "show", str(job)).stdout.split())

    assert f"Workflow etl, {root} After {extract} (extract, ready); if it fails, this one is cancelled" in facts(load)
    assert f"After {check} (check, ready); if it fails, this one is cancelled Waits " in facts(load)
    assert f"After {extract} (extract, ready); if it fails, this one runs all the same" in facts(late.id)
    assert f"After {root} (etl, under way); if it fails, this one waits until it was replayed" in facts(late.id)
    assert f"Made of other jobs; see `mainspring workflows show {root}`" in facts(root)
