"""Break the code on purpose, one guarantee at a time, and see that the test which is named for it notices.

Run with `make mutants`. Each mutant is a copy of the package with one piece of text replaced; the tests named with
it must pass on the original and fail on the copy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SQLITE, POSTGRES = "store/sqlite/sql", "store/postgres/sql"
SETTLE, CLAIM, CONTROL = (f"tests/conformance/test_{name}.py" for name in ("settle", "claim", "control"))
FIRE, ODDITIES = "tests/conformance/test_fire.py", "tests/conformance/test_fire_oddities.py"
SCHEDULES, LIMITS = "tests/conformance/test_schedules.py", "tests/conformance/test_limits.py"
SESSIONS, REAP, PROMOTE = (f"tests/conformance/test_{name}.py" for name in ("sessions", "reap", "promote"))
ENQUEUE, OPEN, PRUNE = (f"tests/conformance/test_{name}.py" for name in ("enqueue", "open", "prune"))
EXPIRE = "tests/conformance/test_expire.py"
AGEING = "tests/conformance/test_ageing.py"
PAUSES = "tests/conformance/test_queues.py"
FAIRNESS = "tests/conformance/test_fairness.py"
WAKE, DEAD = "tests/conformance/test_wake.py", "tests/conformance/test_dead.py"
TURNS = "tests/races/test_sqlite_turns.py"
RACES, NETWORK = "tests/races/test_claim_races.py", "tests/faults/test_network.py"
CRASHES = "tests/faults/test_crashes.py"
JOIN, KEYS, IDEMPOTENCY = (f"tests/conformance/test_{name}.py" for name in ("join", "keys", "idempotency"))
CALLERS, ENQUEUE_RACES = "tests/app/test_callers.py", "tests/races/test_enqueue_races.py"
JOURNAL, TRANSACTION = "tests/conformance/test_journal.py", "tests/conformance/test_transaction.py"
HEARTBEAT, SETTLER, EXECUTE, QUEUES = (
    f"tests/worker/test_{name}.py" for name in ("heartbeat", "settler", "execute", "queues")
)


@dataclass(frozen=True)
class Mutant:
    """One guarantee removed: *before* becomes *after* wherever it stands in *file*, and *test* must notice."""

    what: str
    file: str
    before: str
    after: str
    test: str


MUTANTS = [
    Mutant(
        "SQLite forgets how far a line was",
        f"{SQLITE}/turns.sql",
        "max(excluded.next, next + excluded.cost)",
        "excluded.next",
        f"{FAIRNESS}::test_one_who_sends_the_next_as_soon_as_one_is_taken_does_not_go_before_all_others[sqlite",
    ),
    Mutant(
        "SQLite saves up the turns of those who are away",
        f"{SQLITE}/turns.sql",
        "max(excluded.next, next + excluded.cost)",
        "next + excluded.cost",
        f"{FAIRNESS}::test_one_who_was_away_has_no_claim_to_what_he_did_not_need[sqlite",
    ),
    Mutant(
        "SQLite gives turns by the order of time",
        f"{SQLITE}/fragments.sql",
        "coalesce(turn, due_us + position)",
        "due_us + position",
        f"{FAIRNESS}::test_one_who_comes_after_a_flood_is_next[sqlite",
    ),
    Mutant(
        "SQLite ranks those with a turn by their due time when a queue is ranked anew",
        f"{SQLITE}/queues.sql",
        "AND (fair IS NULL OR min(rank, run_at + {precedence}) < 9007199254740992)",
        "",
        f"{FAIRNESS}::test_turns_outlive_that_the_queue_is_ranked_anew[sqlite",
    ),
    Mutant(
        "SQLite prunes a line in which somebody stands",
        f"{SQLITE}/turns.sql",
        "AND NOT EXISTS (",
        "AND EXISTS (",
        f"{FAIRNESS}::test_a_line_in_which_somebody_stands_is_not_pruned[sqlite",
    ),
    Mutant(
        "PostgreSQL forgets how far a line was",
        f"{POSTGRES}/turns.sql",
        "greatest(excluded.next, line.next + excluded.cost)",
        "excluded.next",
        f"{FAIRNESS}::test_one_who_sends_the_next_as_soon_as_one_is_taken_does_not_go_before_all_others[postgres",
    ),
    Mutant(
        "PostgreSQL saves up the turns of those who are away",
        f"{POSTGRES}/turns.sql",
        "greatest(excluded.next, line.next + excluded.cost)",
        "line.next + excluded.cost",
        f"{FAIRNESS}::test_one_who_was_away_has_no_claim_to_what_he_did_not_need[postgres",
    ),
    Mutant(
        "PostgreSQL gives turns by the order of time",
        f"{POSTGRES}/fragments.sql",
        "coalesce(turn, due_us + position)",
        "due_us + position",
        f"{FAIRNESS}::test_one_who_comes_after_a_flood_is_next[postgres",
    ),
    Mutant(
        "PostgreSQL ranks those with a turn by their due time when a queue is ranked anew",
        f"{POSTGRES}/queues.sql",
        "AND (placed.fair IS NULL OR least(placed.rank, place) < 9007199254740992)",
        "",
        f"{FAIRNESS}::test_turns_outlive_that_the_queue_is_ranked_anew[postgres",
    ),
    Mutant(
        "PostgreSQL prunes a line in which somebody stands",
        f"{POSTGRES}/turns.sql",
        "AND NOT EXISTS (",
        "AND EXISTS (",
        f"{FAIRNESS}::test_a_line_in_which_somebody_stands_is_not_pruned[postgres",
    ),
    Mutant(
        "nobody notes how far turns have got",
        "store/claim.py",
        "if any(row[-1] is not None for row in claimed):",
        "if False:",
        f"{FAIRNESS}::test_a_job_that_nobody_can_take_does_not_hold_turns_back[sqlite",
    ),
    Mutant(
        "what leaves its line unserved has cost it a turn",
        "store/settle.py",
        "    give_back(tx, _left(settlements, settled))\n",
        "",
        f"{FAIRNESS}::test_a_flood_that_never_had_its_turn_does_not_count[sqlite",
    ),
    Mutant(
        "what is resumed or replayed goes before all who take turns",
        "model/lifecycle.py",
        "return READY if job.fair is None else SCHEDULED",
        "return READY",
        f"{FAIRNESS}::test_what_is_resumed_or_replayed_stands_in_line_anew[sqlite",
    ),
    Mutant(
        "promote gives no turns",
        "store/sweep.py",
        "    line_up(db, [job_id for _, job_id in due if job_id is not None], ahead)\n",
        "",
        f"{FAIRNESS}::test_a_delayed_job_is_given_its_turn_when_it_is_due[sqlite",
    ),
    Mutant(
        "nobody tells the scheduler of a job that waits for its turn",
        "store/enqueue.py",
        "(job.fair is not None and not has_turn)",
        "False",
        "tests/worker/test_fairness.py::test_a_job_with_a_key_of_its_own_starts_at_once[sqlite",
    ),
    Mutant(
        "SQLite claims from a paused queue",
        f"{SQLITE}/fragments.sql",
        "\n  AND NOT EXISTS (SELECT 1 FROM mainspring_pauses WHERE kind = 'queue' AND name = :queue)",
        "",
        f"{PAUSES}::test_nothing_is_claimed_from_a_paused_queue_until_it_is_resumed[sqlite",
    ),
    Mutant(
        "PostgreSQL claims from a paused queue",
        f"{POSTGRES}/claim.sql",
        "\n      AND NOT EXISTS (SELECT FROM mainspring.pauses WHERE kind = 'queue' AND name = :queue)",
        "",
        f"{PAUSES}::test_nothing_is_claimed_from_a_paused_queue_until_it_is_resumed[postgres",
    ),
    Mutant(
        "SQLite claims jobs of a paused task",
        f"{SQLITE}/fragments.sql",
        "\n  AND task NOT IN (SELECT name FROM mainspring_pauses WHERE kind = 'task')",
        "",
        f"{PAUSES}::test_no_job_of_a_paused_task_is_claimed_and_the_others_are[sqlite",
    ),
    Mutant(
        "PostgreSQL claims jobs of a paused task",
        f"{POSTGRES}/claim.sql",
        "\n               WHEN task IN (SELECT name FROM mainspring.pauses WHERE kind = 'task') THEN 0",
        "",
        f"{PAUSES}::test_no_job_of_a_paused_task_is_claimed_and_the_others_are[postgres",
    ),
    Mutant(
        "SQLite claims what has expired",
        f"{SQLITE}/fragments.sql",
        "\n  AND (expires_at IS NULL OR expires_at > :now)",
        "",
        f"{EXPIRE}::test_what_has_expired_is_not_claimed_and_what_has_not_is[sqlite",
    ),
    Mutant(
        "PostgreSQL claims what has expired",
        f"{POSTGRES}/claim.sql",
        "\n               WHEN expires_at <= (SELECT now FROM clock) THEN 0",
        "",
        f"{EXPIRE}::test_what_has_expired_is_not_claimed_and_what_has_not_is[postgres",
    ),
    Mutant(
        "SQLite lets a running job expire",
        f"{SQLITE}/sweep.sql",
        "WHERE state <> 'running' AND expires_at <= :now",
        "WHERE expires_at <= :now",
        f"{EXPIRE}::test_a_running_job_has_started_and_does_not_expire[sqlite",
    ),
    Mutant(
        "a job starts late that was claimed in time",
        "worker/execute.py",
        "if start_by is not None and",
        "if False and",
        "tests/worker/test_expiry.py::test_a_job_that_waits_in_the_workers_memory_for_too_long_expires[sqlite",
    ),
    Mutant(
        "a job starts late in a process that was slow to get ready",
        "worker/executors/child.py",
        "            check_in_time(order.job, order.start_by)",
        "            pass",
        "tests/worker/test_process_executor.py::test_a_job_that_expired_while_its_process_got_ready_goes_back_unstarted",
    ),
    Mutant(
        "nobody ends what has expired",
        "scheduler/promote.py",
        ", store.expire().next_due",
        ", None",
        "tests/worker/test_expiry.py::test_a_job_expires_while_nobody_works_and_one_that_starts_in_time_runs[sqlite",
    ),
    Mutant(
        "SQLite ranks strictly though a queue has ageing on",
        f"{SQLITE}/fragments.sql",
        "coalesce((SELECT -priority * ageing FROM mainspring_queues WHERE name = queue), {strictly})",
        "{strictly}",
        f"{AGEING}::test_a_point_of_priority_is_worth_so_much_waiting_time[sqlite",
    ),
    Mutant(
        "PostgreSQL ranks strictly though a queue has ageing on",
        f"{POSTGRES}/fragments.sql",
        "coalesce((SELECT -priority * {ageing_us} FROM mainspring.queues WHERE name = queue), {strictly})",
        "{strictly}",
        f"{AGEING}::test_a_point_of_priority_is_worth_so_much_waiting_time[postgres",
    ),
    Mutant(
        "a retry is ranked without ageing",
        f"{POSTGRES}/settle.sql",
        "{precedence}",
        "{strictly}",
        f"{AGEING}::test_retries_and_replays_are_ranked_by_it[postgres",
    ),
    Mutant(
        "a replay is ranked without ageing",
        f"{SQLITE}/control.sql",
        "{precedence}",
        "{strictly}",
        f"{AGEING}::test_retries_and_replays_are_ranked_by_it[sqlite",
    ),
    Mutant(
        "to switch ageing on ranks nothing anew",
        "store/queues.py",
        "    rerank(db)\n",
        "",
        f"{AGEING}::test_switching_it_ranks_what_waits_anew_and_back",
    ),
    Mutant(
        "what was ranked by the old setting stays so",
        f"{POSTGRES}/queues.sql",
        ">= 9007199254740992",
        "< 0",
        f"{AGEING}::test_what_was_ranked_by_somebody_who_had_not_seen_the_change_is_found[postgres",
    ),
    Mutant(
        "a resume wakes nobody",
        "store/queues.py",
        "        db.wake({name} if kind is Pausable.QUEUE else _served(sessions.sessions(db)))",
        "        pass",
        f"{PAUSES}::test_the_resume_of_a_task_is_heard_by_all_queues_that_are_served",
    ),
    Mutant(
        "SQLite finishes a job without looking at the fence",
        f"{SQLITE}/settle.sql",
        " AND job.fence = value ->> 0",
        "",
        f"{SETTLE}::test_a_stale_holder_cannot_finish_a_job[sqlite",
    ),
    Mutant(
        "PostgreSQL finishes a job without looking at the fence",
        f"{POSTGRES}/settle.sql",
        " AND job.fence = CAST({told} ->> 0 AS bigint)",
        "",
        f"{SETTLE}::test_a_stale_holder_cannot_finish_a_job[postgres",
    ),
    Mutant(
        "SQLite gives a job back without looking at the fence",
        f"{SQLITE}/settle.sql",
        "\n  AND mainspring_jobs.fence = told.fence",
        "",
        f"{SETTLE}::test_a_stale_holder_cannot_give_a_job_back[sqlite",
    ),
    Mutant(
        "PostgreSQL gives a job back without looking at the fence",
        f"{POSTGRES}/settle.sql",
        " AND job.fence = CAST({told} ->> 0 AS bigint)",
        "",
        f"{SETTLE}::test_a_stale_holder_cannot_give_a_job_back[postgres",
    ),
    Mutant(
        "SQLite settles without looking at the state",
        f"{SQLITE}/settle.sql",
        " AND job.state = :source",
        "",
        f"{SETTLE}::test_a_job_given_back_cannot_be_settled_under_the_same_fence[sqlite",
    ),
    Mutant(
        "PostgreSQL settles without looking at the state",
        f"{POSTGRES}/settle.sql",
        " AND job.state = ending.source",
        "",
        f"{SETTLE}::test_a_job_given_back_cannot_be_settled_under_the_same_fence[postgres",
    ),
    Mutant(
        "PostgreSQL claims without SKIP LOCKED",
        f"{POSTGRES}/claim.sql",
        "FOR UPDATE SKIP LOCKED",
        "FOR UPDATE",
        f"{RACES}::test_a_claim_does_not_wait_for_another_that_is_under_way",
    ),
    Mutant(
        "PostgreSQL claims without locking the rows at all",
        f"{POSTGRES}/claim.sql",
        "    FOR UPDATE SKIP LOCKED\n",
        "",
        f"{RACES}::test_a_claim_does_not_wait_for_another_that_is_under_way",
    ),
    Mutant(
        "PostgreSQL claims without holding on to its session",
        f"{POSTGRES}/claim.sql",
        "    FOR KEY SHARE OF sessions\n",
        "",
        f"{RACES}::test_a_session_is_not_reaped_while_it_claims",
    ),
    Mutant(
        "SQLite begins its write transactions as readers",
        "store/sqlite/writer.py",
        '"BEGIN IMMEDIATE"',
        '"BEGIN"',
        f"{OPEN}::test_a_write_transaction_on_sqlite_is_one_from_the_start",
    ),
    Mutant(
        "SQLite lets a dead session claim",
        f"{SQLITE}/fragments.sql",
        " AND lease_until > :steady AND lease_until <= :steady + lease",
        "",
        f"{CLAIM}::test_a_session_whose_lease_has_ended_gets_nothing[sqlite",
    ),
    Mutant(
        "PostgreSQL lets a dead session claim",
        f"{POSTGRES}/claim.sql",
        " AND lease_until > now",
        "",
        f"{CLAIM}::test_a_session_whose_lease_has_ended_gets_nothing[postgres",
    ),
    Mutant(
        "SQLite revives a lease that has ended",
        f"{SQLITE}/sessions.sql",
        "WHERE id = :session AND lease_until > :steady AND lease_until <= :steady + lease",
        "WHERE id = :session",
        f"{SESSIONS}::test_a_lease_that_has_ended_is_not_revived[sqlite",
    ),
    Mutant(
        "PostgreSQL revives a lease that has ended",
        f"{POSTGRES}/sessions.sql",
        "WHERE id = :session AND lease_until > now",
        "WHERE id = :session",
        f"{SESSIONS}::test_a_lease_that_has_ended_is_not_revived[postgres",
    ),
    Mutant(
        "SQLite keeps leases by the wall clock",
        f"{SQLITE}/sweep.sql",
        ":steady",
        ":now",
        f"{REAP}::test_a_jump_of_the_machines_wall_clock_costs_no_lease_on_sqlite",
    ),
    Mutant(
        "SQLite claims under the same fence again",
        f"{SQLITE}/claim.sql",
        "fence = fence + 1",
        "fence = max(fence, 1)",
        f"{CLAIM}::test_the_fence_grows_with_every_claim[sqlite",
    ),
    Mutant(
        "PostgreSQL claims under the same fence again",
        f"{POSTGRES}/claim.sql",
        "fence = fence + 1",
        "fence = greatest(fence, 1)",
        f"{CLAIM}::test_the_fence_grows_with_every_claim[postgres",
    ),
    Mutant(
        "two unfinished jobs may share a key on SQLite",
        "store/sqlite/migrations/0001_kernel.sql",
        "CREATE UNIQUE INDEX mainspring_jobs_key",
        "CREATE INDEX mainspring_jobs_key",
        f"{ENQUEUE}::test_a_key_stands_for_its_unfinished_job[sqlite",
    ),
    Mutant(
        "two unfinished jobs may share a key on PostgreSQL",
        "store/postgres/migrations/0001_kernel.sql",
        "CREATE UNIQUE INDEX jobs_key",
        "CREATE INDEX jobs_key",
        f"{ENQUEUE}::test_a_key_stands_for_its_unfinished_job[postgres",
    ),
    Mutant(
        "jobs become ready before their time",
        f"{POSTGRES}/sweep.sql",
        " AND run_at <= (SELECT now + CAST(:ahead AS interval) FROM clock)",
        "",
        f"{PROMOTE}::test_a_job_is_promoted_at_its_time_and_not_before[postgres",
    ),
    Mutant(
        "a job that kills its workers is never quarantined",
        "model/lifecycle.py",
        "if losses >= MAX_LOSSES:",
        "if losses < 0:",
        f"{REAP}::test_a_job_that_kills_its_workers_is_quarantined",
    ),
    Mutant(
        "a wish that comes while an attempt ends is forgotten",
        "store/settle.py",
        "    topics = _grant(tx, [row for row in moved if row[3] is not None or row[0] in paused])\n",
        "    topics: set[str] = set()\n",
        f"{SETTLE}::test_a_cancel_that_comes_during_a_failing_attempt_is_not_lost",
    ),
    Mutant(
        "a replay begins with a fence that was used before",
        f"{POSTGRES}/control.sql",
        "\n       fence, new_reason, error, schedule, tick\nFROM gone",
        "\n       0, new_reason, error, schedule, tick\nFROM gone",
        f"{CONTROL}::test_a_dead_job_lives_again_with_fresh_counters_and_a_growing_fence[postgres",
    ),
    Mutant(
        "a lost reply to an enqueue runs a finished job again",
        "store/enqueue.py",
        "known(runner, (job.id for job in jobs)) if runner.in_doubt else set()",
        "set()",
        f"{NETWORK}::test_an_enqueue_whose_reply_is_lost_does_not_run_a_finished_job_again",
    ),
    Mutant(
        "a lost reply to a settle is taken for a lost lease",
        "store/settle.py",
        "    if not runner.in_doubt:\n        return set()\n",
        "    return set()\n",
        f"{NETWORK}::test_a_settle_whose_reply_is_lost_is_not_taken_for_stale",
    ),
    Mutant(
        "a call waits for ever on a dead network",
        "store/postgres/connections.py",
        "timeout=self.patience if timeout is None else timeout",
        "timeout=timeout",
        f"{NETWORK}::test_a_silent_network_ends_in_an_error_and_heals_by_itself",
    ),
    Mutant(
        "statements are prepared behind a pooler",
        "store/postgres/database.py",
        "connection.prepare_threshold = None",
        "pass",
        f"{NETWORK}::test_a_pooler_in_transaction_mode_may_sit_in_between",
    ),
    Mutant(
        "a day that nobody prepared stops all settles",
        "store/postgres/errors.py",
        "return isinstance(error, errors.CheckViolation) and not error.diag.constraint_name",
        "return False",
        f"{PRUNE}::test_jobs_finish_on_days_that_nobody_prepared[postgres",
    ),
    Mutant(
        "a session is closed under a claim of its own",
        "store/sessions.py",
        '    known = tx.run("lock_session", session=session)\n',
        "    known = True\n",
        f"{RACES}::test_a_session_is_not_closed_under_a_claim_of_its_own",
    ),
    Mutant(
        "a node that falls silent keeps its locks",
        "store/postgres/database.py",
        "; SET LOCAL idle_in_transaction_session_timeout = '10s'",
        "",
        f"{NETWORK}::test_a_node_that_falls_silent_in_a_transaction_does_not_stop_the_others",
    ),
    Mutant(
        "a lost reply to a replay replays twice",
        "store/control.py",
        "    dead = [job for job in dead if fences.setdefault(job.id, job.fence) == job.fence]\n",
        "",
        f"{NETWORK}::test_a_replay_whose_reply_is_lost_happens_once",
    ),
    Mutant(
        "SQLite keeps half of what failed beside others",
        "store/sqlite/writer.py",
        """            self._connection.execute("ROLLBACK TO beside")\n""",
        "",
        f"{TURNS}::test_one_that_fails_on_the_way_takes_back_its_own_and_nothing_else",
    ),
    Mutant(
        "SQLite acknowledges before the disk has it",
        "store/sqlite/writer.py",
        "if self._durable or not joining.durable:",
        "if True:",
        f"{TURNS}::test_what_must_be_durable_waits_for_no_commit_that_is_not",
    ),
    Mutant(
        "SQLite does what its caller has given up",
        "store/sqlite/writer.py",
        "self._waiting.remove(wanted)",
        "pass",
        f"{TURNS}::test_one_that_has_waited_for_too_long_is_not_done_later",
    ),
    Mutant(
        "SQLite answers those whose transaction failed for another's sake",
        "store/sqlite/writer.py",
        "self._waiting.extendleft(reversed(tried))",
        "[setattr(wanted, 'done', True) for wanted in tried]",
        f"{TURNS}::test_one_whose_transaction_failed_for_the_sake_of_another_is_done_by_itself",
    ),
    Mutant(
        "SQLite commits without waiting for the disk",
        "store/sqlite/file.py",
        'connection.execute(f"PRAGMA synchronous = {self.synchronous}")',
        'connection.execute("PRAGMA synchronous = OFF")',
        f"{OPEN}::test_sqlite_is_as_durable_as_it_was_asked_to_be",
    ),
    Mutant(
        "a reaper may settle jobs and leave their session",
        "store/sweep.py",
        "db.transact(lambda tx: _reap_batch(tx, session))",
        "db.attempt(lambda tx: _reap_batch(tx, session))",
        f"{REAP}::test_a_reap_that_fails_on_the_way_leaves_everything_as_it_was[postgres",
    ),
    Mutant(
        "a mixed batch may be settled by half",
        "store/settle.py",
        "db.transact(lambda tx: apply(tx, settlements))",
        "db.attempt(lambda tx: apply(tx, settlements))",
        f"{SETTLE}::test_a_mixed_batch_that_fails_on_the_way_leaves_everything_as_it_was[postgres",
    ),
    Mutant(
        "jobs may be cancelled by half",
        "store/control.py",
        "db.transact(lambda tx: decide_and_write(tx, ids, decide))",
        "db.attempt(lambda tx: decide_and_write(tx, ids, decide))",
        f"{CONTROL}::test_a_cancel_that_fails_on_the_way_leaves_everything_as_it_was[postgres",
    ),
    Mutant(
        "a large batch may be stored by half",
        "store/enqueue.py",
        "(db.attempt if alone else db.transact)(work)",
        "db.attempt(work)",
        f"{ENQUEUE}::test_a_large_batch_that_fails_on_the_way_is_not_stored_at_all[postgres",
    ),
    Mutant(
        "SQLite keeps half of what failed",
        "store/sqlite/writer.py",
        'connection.execute("ROLLBACK")',
        'connection.execute("COMMIT")',
        f"{CONTROL}::test_a_replay_that_fails_on_the_way_leaves_everything_as_it_was[sqlite",
    ),
    Mutant(
        "PostgreSQL promotes without SKIP LOCKED",
        f"{POSTGRES}/sweep.sql",
        "AS bigint))\n    FOR UPDATE SKIP LOCKED",
        "AS bigint))\n    FOR UPDATE",
        f"{RACES}::test_a_promotion_does_not_wait_for_a_job_that_somebody_changes",
    ),
    Mutant(
        "PostgreSQL reaps without SKIP LOCKED",
        f"{POSTGRES}/sweep.sql",
        "FOR UPDATE OF sessions SKIP LOCKED",
        "FOR UPDATE OF sessions",
        f"{RACES}::test_a_session_is_not_reaped_while_it_claims",
    ),
    Mutant(
        "SQLite lets a session from before a reboot claim",
        f"{SQLITE}/fragments.sql",
        " AND lease_until <= :steady + lease",
        "",
        f"{CLAIM}::test_a_session_from_before_a_reboot_gets_nothing_on_sqlite",
    ),
    Mutant(
        "SQLite revives a lease from before a reboot",
        f"{SQLITE}/sessions.sql",
        "WHERE id = :session AND lease_until > :steady AND lease_until <= :steady + lease",
        "WHERE id = :session AND lease_until > :steady",
        f"{SESSIONS}::test_a_lease_from_before_a_reboot_is_dead_on_sqlite",
    ),
    Mutant(
        "SQLite shows a session from before a reboot as alive",
        f"{SQLITE}/sessions.sql",
        " AND lease_until <= :steady + lease AS alive",
        " AS alive",
        f"{SESSIONS}::test_a_lease_from_before_a_reboot_is_dead_on_sqlite",
    ),
    Mutant(
        "SQLite never reaps a session from before a reboot",
        f"{SQLITE}/sweep.sql",
        " OR lease_until > :steady + lease",
        "",
        f"{REAP}::test_a_reboot_ends_every_lease_on_sqlite",
    ),
    Mutant(
        "a listener trusts a connection that is silent for ever",
        "store/postgres/wake.py",
        "        self._check_alive(connection)\n",
        "",
        f"{NETWORK}::test_a_listener_notices_a_connection_that_is_dead_and_does_not_say_so",
    ),
    Mutant(
        "a call tries all the connections that broke together",
        "store/postgres/database.py",
        "                    self._connections.drop_idle()\n",
        "",
        f"{NETWORK}::test_when_one_connection_is_found_broken_the_idle_ones_are_not_tried",
    ),
    Mutant(
        "a call that gave up leaves its query running",
        "store/postgres/connections.py",
        "connection.cancel_safe(timeout=1)",
        "pass",
        f"{NETWORK}::test_a_call_that_gave_up_leaves_no_query_running",
    ),
    Mutant(
        "a prune holds up settles behind a slow reader",
        "store/postgres/migrations/0001_kernel.sql",
        "    PERFORM set_config('lock_timeout', '200ms', true);\n",
        "",
        f"{RACES}::test_a_prune_does_not_hold_up_settles_behind_a_slow_reader",
    ),
    Mutant(
        "two that prepare the same days get in each other's way",
        "store/postgres/migrations/0001_kernel.sql",
        "    PERFORM pg_advisory_xact_lock(hashtext('mainspring.open_days'));\n",
        "",
        f"{RACES}::test_two_may_prepare_the_same_days_at_once",
    ),
    Mutant(
        "a settlement is known again by its fence alone",
        "store/settle.py",
        "if settlement.outcome and (settlement.job_id, settlement.fence, settlement.outcome) in past",
        "if (settlement.job_id, settlement.fence) in {attempt[:2] for attempt in past}",
        f"{NETWORK}::test_a_settle_that_comes_too_late_is_not_taken_for_one_whose_reply_was_lost",
    ),
    Mutant(
        "a settlement is known again by its outcome alone",
        "store/settle.py",
        "if settlement.outcome and (settlement.job_id, settlement.fence, settlement.outcome) in past",
        "if (settlement.job_id, settlement.outcome) in {attempt[::2] for attempt in past}",
        f"{NETWORK}::test_a_settle_that_comes_too_late_is_not_taken_for_one_whose_reply_was_lost",
    ),
    Mutant(
        "a worker may borrow the rights of the owner",
        "store/postgres/migrations/0001_kernel.sql",
        "search_path = pg_catalog, pg_temp AS",
        "search_path = pg_catalog AS",
        f"{OPEN}::test_a_worker_can_not_borrow_the_rights_of_the_owner",
    ),
    Mutant(
        "a forked child writes to a log that its parent removes",
        "store/sqlite/file.py",
        "        _check_not_forked(self.path)\n",
        "",
        f"{CRASHES}::test_a_forked_child_can_not_open_the_sqlite_file_that_its_parent_had_open",
    ),
    Mutant(
        "one session that can't be reaped stops the reaper",
        "store/sweep.py",
        "            problems.append(error)\n",
        "            raise\n",
        f"{REAP}::test_a_session_that_cannot_be_reaped_does_not_keep_the_others_from_it",
    ),
    Mutant(
        "the loser of a deadlock gives up",
        "store/postgres/errors.py",
        "(errors.DeadlockDetected, ",
        "(",
        f"{RACES}::test_the_loser_of_a_deadlock_tries_again",
    ),
    Mutant(
        "a write that could not be serialized is given up",
        "store/postgres/errors.py",
        "errors.SerializationFailure, ",
        "",
        f"{RACES}::test_a_write_that_could_not_be_serialized_is_tried_again",
    ),
    Mutant(
        "a prune gives up at the first slow reader",
        "store/postgres/errors.py",
        ", errors.LockNotAvailable)",
        ")",
        f"{RACES}::test_a_prune_does_not_hold_up_settles_behind_a_slow_reader",
    ),
    Mutant(
        "a process opens any number of connections",
        "store/postgres/database.py",
        "limit=_CONNECTIONS",
        "limit=1_000",
        f"{RACES}::test_a_process_opens_no_more_connections_than_its_limit",
    ),
    Mutant(
        "a wake on SQLite is news to everybody",
        "store/sqlite/wake.py",
        "self._topics.intersection(topics)",
        "set(topics)",
        f"{WAKE}::test_a_wake_for_another_queue_is_no_news[sqlite",
    ),
    Mutant(
        "a wake on PostgreSQL is news to everybody",
        "store/postgres/wake.py",
        "self._topics.intersection(notes)",
        "frozenset(notes)",
        f"{WAKE}::test_a_wake_for_another_queue_is_no_news[postgres",
    ),
    Mutant(
        "SQLite claims jobs of tasks it was not asked for",
        f"{SQLITE}/fragments.sql",
        "\n  AND (:tasks IS NULL OR task IN (SELECT value FROM json_each(:tasks)))",
        "",
        f"{CLAIM}::test_a_claim_takes_only_jobs_of_the_tasks_it_names[sqlite",
    ),
    Mutant(
        "PostgreSQL claims jobs of tasks it was not asked for",
        f"{POSTGRES}/claim.sql",
        " THEN 1 ELSE 0 END <> 0",
        " THEN 1 ELSE 1 END <> 0",
        f"{CLAIM}::test_a_claim_takes_only_jobs_of_the_tasks_it_names[postgres",
    ),
    Mutant(
        "SQLite keeps what a lost attempt says",
        f"{SQLITE}/journal.sql",
        " AND job.fence = value ->> 1",
        "",
        f"{JOURNAL}::test_a_lost_attempt_adds_nothing[sqlite",
    ),
    Mutant(
        "PostgreSQL keeps what a lost attempt says",
        f"{POSTGRES}/journal.sql",
        " AND job.fence = told.fence",
        "",
        f"{JOURNAL}::test_a_lost_attempt_adds_nothing[postgres",
    ),
    Mutant(
        "SQLite keeps what a job says that was given back",
        f"{SQLITE}/journal.sql",
        " AND job.state = 'running'",
        "",
        f"{JOURNAL}::test_a_job_that_no_longer_runs_says_nothing_more[sqlite",
    ),
    Mutant(
        "PostgreSQL keeps what a job says that was given back",
        f"{POSTGRES}/journal.sql",
        " AND job.state = told.state",
        "",
        f"{JOURNAL}::test_a_job_that_no_longer_runs_says_nothing_more[postgres",
    ),
    Mutant(
        "PostgreSQL keeps lines of a past attempt with those of the present one",
        f"{POSTGRES}/journal.sql",
        " AND job.fence = said.fence",
        "",
        f"{JOURNAL}::test_the_past_attempt_does_not_spoil_what_the_present_one_says[postgres",
    ),
    Mutant(
        "PostgreSQL keeps a line each time it is recorded",
        f"{POSTGRES}/journal.sql",
        "FROM said)) AND NOT EXISTS (",
        "FROM said)) OR NOT EXISTS (",
        f"{JOURNAL}::test_a_line_is_kept_once_however_often_it_is_recorded[postgres",
    ),
    Mutant(
        "two tries of one record do not see each other",
        f"{POSTGRES}/journal.sql",
        "ORDER BY job.id\nFOR UPDATE OF job;",
        "ORDER BY job.id;",
        f"{JOURNAL}::test_a_second_try_waits_for_a_first_one_that_is_under_way",
    ),
    Mutant(
        "a wish wakes nobody",
        "store/control.py",
        "topics | {WISH} if wishes else topics",
        "topics",
        f"{WAKE}::test_wishes_for_running_jobs_are_heard_at_once",
    ),
    Mutant(
        "a process on SQLite takes its own commits for news",
        "store/sqlite/wake.py",
        "changed = others != self._seen_of_others",
        "changed = True",
        f"{WAKE}::test_what_is_no_news_to_anybody_wakes_nobody[sqlite",
    ),
    Mutant(
        "SQLite: transaction's own commit is news",
        "store/sqlite/writer.py",
        "_look_at_others(this_is_us=True)",
        "_look_at_others()",
        f"{TRANSACTION}::test_a_job_that_ends_wakes_nobody[sqlite",
    ),
    Mutant(
        "a listener hears one topic of many that come at once",
        "store/postgres/wake.py",
        "self._topics.intersection(notes)",
        "self._topics.intersection(notes[:1])",
        f"{WAKE}::test_a_listener_forgets_nothing_that_was_said_at_once[postgres",
    ),
    Mutant(
        "a stale handler's writes are kept",
        "store/transaction.py",
        "if not settled:",
        "if False:",
        f"{TRANSACTION}::test_a_stale_holder_keeps_nothing",
    ),
    Mutant(
        "a handler's rows are committed before its job is settled",
        "worker/attempt.py",
        "self._store().transaction(lambda: settle(self._job, Succeeded(result)), self._within) as connection:\n"
        "                yield connection\n        finally:\n            self._within = None\n"
        "        self.succeeded()\n",
        "self._store()._db.lend(lambda tx: None) as connection:\n"
        "                yield connection\n        finally:\n            self._within = None\n",
        "tests/faults/test_transactions.py::test_each_row_is_there_once_though_workers_are_killed",
    ),
    Mutant(
        "a block on SQLite may commit",
        "store/sqlite/writer.py",
        "        connection.set_authorizer(_leave_transaction_to_us)\n",
        "",
        f"{TRANSACTION}::test_a_block_that_ends_its_transaction_is_told_so[sqlite",
    ),
    Mutant(
        "a block on PostgreSQL may commit",
        "store/postgres/connections.py",
        "        raise StoreError(LEFT_TO_US)\n\n    def rollback",
        "        super().commit()\n\n    def rollback",
        f"{TRANSACTION}::test_a_block_that_ends_its_transaction_is_told_so[postgres",
    ),
    Mutant(
        "nobody notices that a block ended its transaction in SQL",
        "store/postgres/database.py",
        'if session.run("transaction_id") != [(begun,)]:',
        "if False:",
        f"{TRANSACTION}::test_a_block_that_ends_its_transaction_in_sql_is_told_so[postgres",
    ),
    Mutant(
        "a block fails on a day that nobody prepared",
        "store/postgres/database.py",
        "passing = no_partition(error) or ",
        "passing = ",
        f"{TRANSACTION}::test_a_job_ends_in_a_block_on_a_day_that_nobody_prepared[postgres",
    ),
    Mutant(
        "a block on SQLite waits for itself",
        "store/sqlite/writer.py",
        "if self._lent_to == threading.get_ident():",
        "if False:",
        f"{TRANSACTION}::test_a_block_on_sqlite_that_would_wait_for_itself_is_told_so",
    ),
    Mutant(
        "a lost reply to the commit of a block is taken for a failure",
        "store/postgres/errors.py",
        "    if not connection_lost(error):\n        return translate(error, url)\n    return Store",
        "    return translate(error, url)\n    return Store",
        f"{NETWORK}::test_a_transaction_whose_commit_is_not_answered_is_said_to_be_in_doubt",
    ),
    Mutant(
        "SQLite forgets the progress of a finished job",
        f"{SQLITE}/settle.sql",
        "\n       job.progress, ",
        "\n       NULL, ",
        f"{JOURNAL}::test_a_finished_job_keeps_its_progress_and_a_replayed_one_begins_anew[sqlite",
    ),
    Mutant(
        "log lines are never pruned",
        "store/sweep.py",
        '    _prune(db, "prune_logs", age=age)\n',
        "",
        f"{PRUNE}::test_log_lines_go_with_the_day_on_which_they_were_said",
    ),
    Mutant(
        "a worker works to the very end of its lease and beyond",
        "worker/session.py",
        "* (1 - _MARGIN)",
        "* 2",
        f"{HEARTBEAT}::test_the_session_gives_up_before_its_lease_ends_in_the_database",
    ),
    Mutant(
        "a beat counts from when its answer came",
        "worker/heartbeat.py",
        "self._session.renewed(session, sent)",
        "self._session.renewed(session, self._clock.steady())",
        f"{HEARTBEAT}::test_a_beat_that_was_long_under_way_counts_from_when_it_was_sent",
    ),
    Mutant(
        "a stray is given back at first sight",
        "worker/heartbeat.py",
        " if now - since >= _ON_ITS_WAY]",
        "]",
        f"{HEARTBEAT}::test_a_job_that_was_only_on_its_way_is_left_alone",
    ),
    Mutant(
        "strays are never given back",
        "worker/heartbeat.py",
        "        self._give_back_strays(beat.strays)\n",
        "",
        f"{HEARTBEAT}::test_a_job_that_was_claimed_without_our_hearing_of_it_goes_back_after_a_while",
    ),
    Mutant(
        "nobody tells attempts that the lease is over",
        "worker/watch.py",
        "self._session.expire(lease_until)",
        "pass",
        "tests/worker/test_watch.py::test_all_that_is_held_is_told_when_the_lease_ends",
    ),
    Mutant(
        "what can't be written now is given up",
        "worker/settle.py",
        "_PASSING = (StoreUnavailable, StoreFull, StoreReadOnly)",
        "_PASSING = ()",
        f"{SETTLER}::test_what_can_not_be_written_now_is_written_later",
    ),
    Mutant(
        "a worker claims jobs whose code it does not have",
        "worker/claim.py",
        "self._store.claim(session, queue, limit, self._lane.tasks, ",
        "self._store.claim(session, queue, limit, None, ",
        f"{EXECUTE}::test_a_job_whose_task_nobody_knows_stays_ready_and_holds_nobody_up[sqlite",
    ),
    Mutant(
        "a job that is lost unstarted is taken for guilty",
        "model/lifecycle.py",
        "_lose(job, max(1, job.losses), ",
        "_lose(job, job.losses + 1, ",
        f"{REAP}::test_a_job_that_is_lost_again_before_it_has_started_is_not_to_blame",
    ),
    Mutant(
        "queues are served in turn, whatever their weight",
        "worker/queues.py",
        " + got / self._weights[name]",
        " + got",
        f"{QUEUES}::test_busy_queues_are_served_by_weight",
    ),
    Mutant(
        "a cancelled job is tried again",
        "worker/heartbeat.py",
        "held.end(CancelRequested",
        "str(CancelRequested",
        f"{HEARTBEAT}::test_a_wish_reaches_the_attempt",
    ),
    Mutant(
        "a signal that another thread is given is not heard",
        "signals.py",
        "signal.set_wakeup_fd(pythons.fileno(), warn_on_full_buffer=False)",
        "signal.set_wakeup_fd(-1)",
        "tests/unit/test_signals.py::test_a_signal_given_to_another_thread_is_heard",
    ),
    Mutant(
        "a supervised worker takes one request for two",
        "cli/worker.py",
        "again=line is None",
        "again=True",
        "tests/cli/test_supervisor.py::test_a_service_manager",
    ),
    Mutant(
        "a handler swallows the loss of its lease",
        "errors.py",
        "class LeaseLost(Stop):",
        "class LeaseLost(MainspringError):",
        "tests/testing/test_drain.py::test_a_handler_that_goes_on_after_each_failure",
    ),
    Mutant(
        "nothing is ever pruned",
        "scheduler/scheduler.py",
        "self._rank, self._prune]",
        "self._rank]",
        "tests/scheduler/test_prune.py",
    ),
    Mutant(
        "a job is enqueued in a block and not part of it",
        "store/enqueue.py",
        "    check_outside()\n",
        "",
        f"{TRANSACTION}::test_what_would_not_be_part_of_a_block_is_refused_in_it",
    ),
    Mutant(
        "a job that was resumed stays paused",
        "store/settle.py",
        " or row[0] in paused",
        "",
        f"{CONTROL}::test_a_job_that_is_resumed_while_its_attempt_pauses_is_ready",
    ),
    Mutant(
        "jobs pay for processes that can't start",
        "worker/executors/processes.py",
        "        elif process.ready:\n            self._end(process, held, Lost",
        "        elif True:\n            self._end(process, held, Lost",
        "tests/worker/test_process_starts.py::test_no_job_pays_for_processes_that_can_not_start",
    ),
    Mutant(
        "a child that is slow to take its job holds up all others",
        "worker/executors/processes.py",
        "to_speak=process.has_more_to_say",
        "to_speak=False",
        "tests/worker/test_process_starts.py::test_a_job_that_its_process_is_slow_to_take_keeps_no_other_waiting",
    ),
    Mutant(
        "an import may take for ever",
        "worker/executors/processes.py",
        "            process.allow(_time_to_import(held))\n",
        "            pass\n",
        "tests/worker/test_process_executor.py",
    ),
    Mutant(
        "a coroutine ends the loop of all others",
        "worker/executors/coroutines.py",
        "while not self._closing.is_set():\n                self._run_on(loop)",
        "self._run_on(loop)",
        "tests/worker/test_coroutines.py::test_a_coroutine_can_not_end_the_loop_of_all",
    ),
    Mutant(
        "a timeout leaves locks of Python's library locked",
        "worker/executors/interruption.py",
        "frame is None or _is_amid_steps(frame)",
        "frame is None",
        "tests/worker/test_interruption.py::test_a_lock_that_python_takes_for_a_handler_is_not_left_locked",
    ),
    Mutant(
        "an attempt is told once only that its time is up",
        "worker/watch.py",
        "interrupt(watched.stop)",
        "pass",
        "tests/worker/test_watch.py::test_an_attempt_that_can_not_be_interrupted_now_is_told_again",
    ),
    Mutant(
        "a job that can't be reported takes its thread with it",
        "worker/executors/threads.py",
        "except BaseException as error:  # noqa: BLE001 - a job that nobody reports",
        "except ZeroDivisionError as error:  # noqa: BLE001 - a job that nobody reports",
        "tests/worker/test_threads.py::test_a_job_of_which_nobody_can_say_what_it_came_to_has_failed",
    ),
    Mutant(
        "jobs on one thread share context variables",
        "worker/executors/threads.py",
        "self._untouched.copy().run(call, ",
        "call(",
        "tests/worker/test_threads.py::test_context_variables_that_a_job_has_set_are_not_seen_by_the_next",
    ),
    Mutant(
        "a worker whose file is gone goes on",
        "worker/heartbeat.py",
        "            self._gone(error)\n",
        "",
        "tests/cli/test_worker.py::test_a_worker_whose_file_was_deleted_ends",
    ),
    Mutant(
        "a tick that has fired becomes a second job",
        f"{SQLITE}/schedules.sql",
        "WHERE mainspring_ticks.verdict IN (SELECT value FROM json_each(:replaceable))",
        "WHERE TRUE",
        f"{FIRE}::test_a_tick_that_is_on_record_never_becomes_a_second_job[sqlite",
    ),
    Mutant(
        "the same on PostgreSQL",
        f"{POSTGRES}/schedules.sql",
        "WHERE tick.verdict = ANY (ARRAY(SELECT json_array_elements_text(CAST(:replaceable AS json))))",
        "WHERE TRUE",
        f"{FIRE}::test_a_tick_that_is_on_record_never_becomes_a_second_job[postgres",
    ),
    Mutant(
        "a node that dies while it fires loses a tick",
        "store/fire.py",
        "db.transact(lambda tx: _fire(tx, node, new_ids, limit))",
        "db.attempt(lambda tx: _fire(tx, node, new_ids, limit))",
        f"{FIRE}::test_a_node_that_fails_while_it_fires_leaves_everything_as_it_was[postgres",
    ),
    Mutant(
        "two nodes fire the same schedules",
        f"{POSTGRES}/fire.sql",
        "\nFOR UPDATE OF schedules SKIP LOCKED",
        "",
        f"{FIRE}::test_what_one_node_has_in_its_hands_another_leaves_alone",
    ),
    Mutant(
        "a schedule fires before its tick",
        f"{POSTGRES}/fire.sql",
        "WHERE due_at <= (SELECT now FROM clock)",
        "WHERE due_at IS NOT NULL",
        f"{FIRE}::test_a_tick_becomes_one_job_ahead_of_its_time_and_starts_at_it[postgres",
    ),
    Mutant(
        "a job that was made ahead of its tick does not wait for it",
        "store/fire.py",
        "        run_at=firing.starts_at(schedule, tick, now),\n",
        "",
        f"{FIRE}::test_a_tick_becomes_one_job_ahead_of_its_time_and_starts_at_it[sqlite",
    ),
    Mutant(
        "a tick that depends on the jobs before it does not wait for their end",
        "model/firing.py",
        "tick is None or not schedule.definition.ahead or not",
        "tick is None or not",
        "tests/unit/model/test_firing.py::test_a_tick_waits_for_its_time_where_that_decides_what_becomes_of_it",
    ),
    Mutant(
        "more jobs start than a limit allows",
        "model/limits.py",
        "closed = next((want.key for want in wants if not gates[want.key].room), None)",
        "closed = None",
        f"{LIMITS}::test_no_more_start_than_the_limit_allows_and_the_rest_waits[sqlite",
    ),
    Mutant(
        "a job starts though nobody asked whether it may",
        "worker/claim.py",
        "        taken = self._admit(taken)\n",
        "",
        "tests/worker/test_limits.py::test_no_more_run_at_once_than_the_limit_of_their_key_allows[sqlite",
    ),
    Mutant(
        "a slot is never given back",
        "store/settle.py",
        "    return settled, topics | wakes | free(tx, slots)\n",
        "    return settled, topics | wakes\n",
        f"{LIMITS}::test_whatever_ends_an_attempt_gives_its_slots_back[sqlite",
    ),
    Mutant(
        "nobody hears that a slot has become free",
        "store/release.py",
        "    return let_go_on(tx, look(tx, keys))\n",
        "    return set()\n",
        f"{LIMITS}::test_a_settle_gives_its_slot_to_the_most_urgent_that_waits[postgres",
    ),
    Mutant(
        "a stale settle frees the slot of the present holder",
        "store/settle.py",
        "if one.holds and one.job_id in settled for key",
        "if one.holds for key",
        f"{LIMITS}::test_a_stale_settle_frees_no_slot_of_the_one_who_has_the_job_now[postgres",
    ),
    Mutant(
        "a limit that one leaves for another is lost to those that wait for it",
        "store/admit.py",
        " | let_go_on(tx, {key: limit for key, limit in limits.items() if key not in waiting})",
        "",
        f"{LIMITS}::test_a_limit_that_one_leaves_because_of_another_goes_to_the_next[sqlite",
    ),
    Mutant(
        "a token is taken by what may not start",
        "model/limits.py",
        "        if closed is None:\n            for want in wants:",
        "        if True:\n            for want in wants:",
        f"{LIMITS}::test_no_token_is_taken_by_what_may_not_start[sqlite",
    ),
    Mutant(
        "a reaper overlooks the slot that was taken while it waited",
        "store/sweep.py",
        "for job in _with_slots(tx, held)]",
        "for job in held]",
        "tests/races/test_limit_races.py::test_a_slot_that_is_taken_while_its_job_is_being_reaped_is_freed",
    ),
    Mutant(
        "a lost release is never made up for",
        "model/limits.py",
        "return self._now + _EVERY if",
        "return self._now + 1_000_000 * _EVERY if",
        f"{LIMITS}::test_what_a_lost_release_has_left_waiting_goes_on_by_itself[sqlite",
    ),
    Mutant(
        "a tick that is on record counts as a run",
        "model/firing.py",
        "runs=position.runs - count,",
        "runs=position.runs,",
        f"{SCHEDULES}::test_a_tick_that_was_made_ahead_does_not_count_again_by_other_times[sqlite",
    ),
    Mutant(
        "nobody tells a schedule that its job has ended",
        "store/settle.py",
        "topics = _follow(tx, settlements, settled)",
        "topics: set[str] = set()",
        f"{FIRE}::test_a_buffered_tick_fires_when_the_job_before_it_has_ended[sqlite",
    ),
    Mutant(
        "a paused schedule goes on when its job ends",
        f"{SQLITE}/fire.sql",
        "WHEN awaits AND NOT paused THEN",
        "WHEN awaits THEN",
        f"{FIRE}::test_a_paused_schedule_does_not_go_on_when_its_job_ends[sqlite",
    ),
    Mutant(
        "a job that is claimed ahead starts before its time",
        "worker/claim.py",
        "self._start(self._early.keep(taken))",
        "self._start(taken)",
        "tests/worker/test_early.py::test_what_was_claimed_ahead_waits_and_holds_nothing_up[sqlite",
    ),
    Mutant(
        "a time that happens twice fires twice",
        "model/cron.py",
        "    if here.fold:\n",
        "    if False:\n",
        "tests/unit/model/test_cron_oracle.py",
    ),
    Mutant(
        "a job that ends while its schedule fires is not heard of",
        "store/settle.py",
        'tx.run("lock_followed", ended=rows.ended(dict.fromkeys(schedules, False)))',
        "pass",
        f"{ODDITIES}::test_a_job_that_ends_while_its_schedule_fires_is_heard_of",
    ),
    Mutant(
        "a schedule waits for a job that was not made",
        "store/fire.py",
        "    _mend(tx, decided, jobs, now)\n",
        "",
        f"{ODDITIES}::test_a_fixed_delay_whose_tick_is_on_record_goes_on[sqlite",
    ),
    Mutant(
        "two nodes that put one schedule set it back",
        f"{POSTGRES}/schedules.sql",
        "WHERE :replace",
        "WHERE :replace OR TRUE",
        f"{ODDITIES}::test_a_schedule_that_two_nodes_put_at_once_is_not_set_back",
    ),
    Mutant(
        "one schedule that can't be fired stops all",
        "store/fire.py",
        "            failed[one.id] = str(error)\n",
        "            raise\n",
        f"{ODDITIES}::test_a_schedule_that_can_not_be_fired_here_does_not_stop_the_others[sqlite",
    ),
    Mutant(
        "an outage is made up for in one endless transaction",
        "store/fire.py",
        "        if jobs > _MOST_JOBS or clock.steady() > give_up:\n            break\n",
        "",
        f"{ODDITIES}::test_much_to_make_up_for_is_done_in_several_transactions[sqlite",
    ),
    Mutant(
        "a clock that is set back holds up what was due",
        f"{SQLITE}/fragments.sql",
        " OR run_at > :now + :beyond)",
        ")",
        f"{ODDITIES}::test_jobs_that_were_due_before_the_clock_was_set_back_are_claimed[sqlite",
    ),
    Mutant(
        "a change forgets that a job has ended",
        "model/firing.py",
        "        return Decision(position=_standing(before, due_at=now))  # it waits",
        "        return Decision(position=_standing(before, due_at=None))  # it waits",
        f"{ODDITIES}::test_a_fixed_delay_goes_on_whatever_happens_when_its_job_has_ended",
    ),
    Mutant(
        "ticks vanish when the times change",
        "store/schedules.py",
        "    _record(tx, {schedule.id: decision for schedule, decision in changed}, node)\n",
        "",
        f"{ODDITIES}::test_what_was_due_when_the_times_changed_is_on_record[sqlite",
    ),
    Mutant(
        "nobody hears that a schedule was changed",
        "scheduler/scheduler.py",
        "        if FIRE in topics:\n            self._fire.wake()\n",
        "",
        "tests/scheduler/test_fire.py::test_it_looks_at_once_when_it_hears_of_a_change[sqlite",
    ),
    Mutant(
        "something fires after the end",
        "model/firing.py",
        "now if definition.end is None else min(now, definition.end)",
        "now",
        "tests/unit/model/test_firing.py::test_nothing_after_the_end_is_made_up_for",
    ),
    Mutant(
        "a success is forgotten because another job failed",
        "store/settle.py",
        "succeeded.get(settlement.schedule, False) or success",
        "success",
        f"{FIRE}::test_one_success_among_several_ends_counts[sqlite",
    ),
    Mutant(
        "a dead letter that has failed again since it was seen is replayed again",
        "store/dead.py",
        " and job.finished_at == died[job.id]",
        "",
        f"{DEAD}::test_a_letter_that_has_failed_again_since_it_was_seen_is_left_alone[sqlite",
    ),
    Mutant(
        "a discarded letter is replayed as if it were dead still",
        "store/dead.py",
        "job.state is JobState.FAILED and ",
        "",
        f"{DEAD}::test_a_discarded_letter_can_be_replayed_as_any_cancelled_job_but_not_as_a_letter[sqlite",
    ),
    Mutant(
        "what was done to dead letters does not count when the reply is lost",
        "store/dead.py",
        "        return done | before",
        "        return done",
        f"{NETWORK}::test_what_is_done_to_dead_letters_happens_and_counts_once_though_its_reply_is_lost",
    ),
    Mutant(
        "SQLite replays with the old arguments",
        f"{SQLITE}/control.sql",
        "coalesce(decided.payload, done.payload)",
        "done.payload",
        f"{DEAD}::test_a_letter_is_replayed_with_the_payload_that_is_made_of_its_own[sqlite",
    ),
    Mutant(
        "PostgreSQL replays with the old arguments",
        f"{POSTGRES}/control.sql",
        "coalesce(new_payload, payload)",
        "payload",
        f"{DEAD}::test_a_letter_is_replayed_with_the_payload_that_is_made_of_its_own[postgres",
    ),
    Mutant(
        "a dead letter has no fingerprint",
        "model/lifecycle.py",
        "    if failure.fingerprint is None:\n",
        "    if failure is None:\n",
        f"{DEAD}::test_a_failure_without_a_fingerprint_has_one_as_a_dead_letter",
    ),
    Mutant(
        "a replay of many goes on though its canary fails",
        "replay.py",
        "        if self._report.stopped is None:\n            self._send_rest()",
        "        self._send_rest()",
        "tests/app/test_dead.py::test_a_canary_that_fails_keeps_the_rest_from_being_replayed[sqlite-1",
    ),
    Mutant(
        "a replay of many does not wait for its canary",
        "replay.py",
        "        while not self._objects(self._report.replayed) and self._waiting:",
        "        while False:",
        "tests/app/test_dead.py::test_the_rest_waits_until_the_canary_has_finished[sqlite",
    ),
    Mutant(
        "a replay of many does not watch what fails later",
        "replay.py",
        "while (self._ahead or self._waiting) and not self._objects():",
        "while self._ahead or self._waiting:",
        "tests/app/test_dead.py::test_it_stops_by_itself_when_too_many_fail_later[sqlite",
    ),
    Mutant(
        "a replay of many keeps to no rate",
        "replay.py",
        "            sent += missed + self._send(due - missed)",
        "            sent += missed + self._send(due + 500)",
        "tests/app/test_dead.py::test_the_rest_follows_at_the_rate[sqlite",
    ),
    Mutant(
        "old successes hide that everything fails by now",
        "model/dead.py",
        "deque(maxlen=RECENT)",
        "deque()",
        "tests/unit/model/test_dead.py::test_many_successes_do_not_hide_a_new_fault",
    ),
    Mutant(
        "a patch is tried on the letters one after the other",
        "dead.py",
        "            self._try_out(plan.rewrite, letters)",
        "            pass",
        "tests/app/test_dead.py::test_a_patch_that_one_letter_of_many_can_not_take_changes_nothing[sqlite",
    ),
    Mutant(
        "SQLite lets the driver overlook that a job begins the caller's transaction",
        "store/sqlite/callers.py",
        'plain.execute(f"BEGIN {connection.isolation_level}")',
        "pass",
        f"{JOIN}::test_a_rollback_keeps_neither[sqlite",
    ),
    Mutant(
        "SQLite stores a job in whatever file the caller has open",
        "store/sqlite/callers.py",
        "if not file or not _same(Path(file), path):",
        "if False:",
        f"{JOIN}::test_a_connection_to_another_file_is_refused",
    ),
    Mutant(
        "SQLite leaves half a batch in the caller's transaction",
        "store/sqlite/callers.py",
        'plain.execute("ROLLBACK TO mainspring")',
        "pass",
        f"{JOIN}::test_a_batch_that_fails_on_the_way_leaves_the_callers_transaction_as_it_was[sqlite",
    ),
    Mutant(
        "SQLite leaves its own taste on the caller's connection",
        "store/sqlite/callers.py",
        "        connection.text_factory = before\n",
        "        pass\n",
        f"{JOIN}::test_the_callers_taste_is_neither_in_the_way_nor_changed[sqlite",
    ),
    Mutant(
        "PostgreSQL stores a job in whatever database the caller is connected to",
        "store/postgres/database.py",
        "        if (database, began) != self._identity:",
        "        if False:",
        f"{JOIN}::test_a_connection_to_another_database_of_the_server_is_refused",
    ),
    Mutant(
        "PostgreSQL commits the caller's transaction for him",
        "store/postgres/database.py",
        'session.run("identity")  # begins',
        "pass  # begins",
        f"{JOIN}::test_a_rollback_keeps_neither[postgres",
    ),
    Mutant(
        "PostgreSQL fails the caller's transaction with half a batch",
        "store/postgres/database.py",
        "with callers.transaction() if steps else nullcontext():",
        "with nullcontext():",
        f"{JOIN}::test_a_batch_that_fails_on_the_way_leaves_the_callers_transaction_as_it_was[postgres",
    ),
    Mutant(
        "PostgreSQL runs its statements with the caller's adapters",
        "store/postgres/callers.py",
        "AdaptersMap(psycopg.adapters)",
        "AdaptersMap(connection.adapters)",
        f"{JOIN}::test_the_callers_taste_is_neither_in_the_way_nor_changed[postgres",
    ),
    Mutant(
        "PostgreSQL prepares statements in the caller's session",
        "store/postgres/database.py",
        "    def _prepared(self, query: str) -> bool | None:  # noqa: ARG002\n        return False",
        "    def _prepared(self, query: str) -> bool | None:  # noqa: ARG002\n        return True",
        f"{JOIN}::test_the_callers_session_is_left_as_it_was",
    ),
    Mutant(
        "Workers do not hear of what was enqueued in a transaction",
        "store/postgres/database.py",
        "self._waker.wake_later(topics)",
        "pass",
        f"{JOIN}::test_a_store_that_closes_says_first_what_it_was_to_say_later",
    ),
    Mutant(
        "SQLAlchemy is not told that a transaction has begun",
        "store/callers.py",
        'conn.exec_driver_sql("SELECT 1")',
        "pass",
        f"{CALLERS}::test_a_connection_of_sqlalchemy_that_has_done_nothing_else_commits",
    ),
    Mutant(
        "A job that runs gets new arguments",
        "model/lifecycle.py",
        " or job.state is RUNNING or job.task != new.task",
        " or job.task != new.task",
        f"{KEYS}::test_a_running_job_is_never_changed",
    ),
    Mutant(
        "A job gets the arguments of another task",
        "model/lifecycle.py",
        " or job.state is RUNNING or job.task != new.task",
        " or job.state is RUNNING",
        f"{KEYS}::test_a_job_of_another_task_is_never_changed",
    ),
    Mutant(
        "A job that is replaced loses its place",
        f"{SQLITE}/enqueue.sql",
        "coalesce(due_us, rank - {precedence})",
        "coalesce(due_us, :now)",
        f"{KEYS}::test_replace_keeps_a_job_in_its_place_among_those_of_its_priority[sqlite",
    ),
    Mutant(
        "A lost reply to a change makes a second job",
        "store/enqueue.py",
        "repeats | changed_before(tx, changed)",
        "repeats | {}",
        f"{NETWORK}::test_an_enqueue_that_changed_a_job_and_whose_reply_is_lost_makes_no_second_one",
    ),
    Mutant(
        "PostgreSQL judges an idempotency key by what it saw before it waited",
        f"{POSTGRES}/idempotency.sql",
        "ON CONFLICT (key) DO UPDATE SET key = excluded.key\nRETURNING key, job_id;",
        "ON CONFLICT (key) DO NOTHING\nRETURNING key, job_id;",
        f"{ENQUEUE_RACES}::test_a_request_waits_for_another_that_is_not_committed_yet",
    ),
    Mutant(
        "An idempotency key ends with its job",
        "store/sqlite/sql/fragments.sql",
        "done.finished_at + mainspring_idempotency.ttl > :now",
        "FALSE",
        f"{IDEMPOTENCY}::test_it_gets_it_until_its_time_past_the_finish_is_over[sqlite",
    ),
    Mutant(
        "PostgreSQL prunes the idempotency key of a living job",
        "store/postgres/sql/fragments.sql",
        "EXISTS (SELECT FROM mainspring.jobs AS job WHERE job.id = held.job_id)\n    OR ",
        "",
        f"{IDEMPOTENCY}::test_a_key_is_pruned_once_it_counts_no_longer[postgres",
    ),
    Mutant(
        "An idempotency key forgets the job that stands for it by its key",
        "store/enqueue.py",
        "    idempotency.keep(tx,",
        "    _ = (tx,",
        f"{IDEMPOTENCY}::test_a_job_that_stands_for_it_by_its_key_stands_for_it_from_then_on",
    ),
]


def main() -> int:
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    chosen = [mutant for mutant in MUTANTS if wanted.lower() in mutant.what.lower()]
    with tempfile.TemporaryDirectory(prefix="mainspring-mutants-") as folder:
        copy = Path(folder)
        for name in ("src", "tests", "docs", "pyproject.toml"):
            origin = ROOT / name
            (shutil.copytree if origin.is_dir() else shutil.copy)(origin, copy / name)
        say("original: all named tests must pass")
        if not passes(copy, sorted({mutant.test for mutant in chosen})):
            say("the named tests fail without any mutant; nothing is shown")
            return 1
        survivors = [mutant for mutant in chosen if survives(copy, mutant)]
    say(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants caught")
    return 1 if survivors else 0


def survives(copy: Path, mutant: Mutant) -> bool:
    path = copy / "src" / "mainspring" / mutant.file
    original = path.read_text()
    if mutant.before not in original:
        say(f"OUTDATED  {mutant.what}: its text is no longer in {mutant.file}")
        return True
    path.write_text(original.replace(mutant.before, mutant.after))
    try:
        survived = passes(copy, [mutant.test])
    finally:
        path.write_text(original)
    say(f"{'SURVIVED' if survived else 'caught'}  {mutant.what}")
    return survived


def passes(copy: Path, tests: list[str]) -> bool:
    """Run *tests*, each the beginning of one or more ids, against the package in *copy*."""
    files = sorted({test.split("::")[0] for test in tests})
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "--timeout=60",
        "-p",
        "tests.support.chosen",
    ]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(copy / "src"), str(copy)]),
        "MAINSPRING_TEST_SELECT": "\n".join(tests),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run([*command, *files], cwd=copy, env=environment, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"pytest could not run:\n{done.stdout}{done.stderr}")
    return done.returncode == 0


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
