"""Whole programs, as users write them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EMAIL_AND_REPORT = """
import time
from datetime import datetime, timedelta
from mainspring.inprocess import Task, TaskPriority, TaskScheduler, TaskStatus

def send_email(to, subject):
    time.sleep(0.5)
    return f"sent {subject} to {to}"

def generate_report(month):
    time.sleep(1)
    return f"report for {month}"

scheduler = TaskScheduler(num_workers=2)
scheduler.start()
email = Task(name="email", func=send_email, args=("ada@example.com", "Hello"), priority=TaskPriority.HIGH)
report = Task(
    name="report", func=generate_report, kwargs={"month": "May"}, priority=TaskPriority.NORMAL, max_retries=2
)
email_id = scheduler.submit(email)
report_id = scheduler.schedule_at(report, datetime.now() + timedelta(seconds=5))
time.sleep(2)
print(scheduler.get_status(email_id).name, scheduler.get_status(report_id).name)
time.sleep(10)
print(scheduler.get_status(email_id).name, scheduler.get_status(report_id).name)
scheduler.stop()
"""

NEVER_STOPPED = """
import threading
from mainspring.inprocess import Task, TaskScheduler

scheduler = TaskScheduler(num_workers=2)
scheduler.start()
begun = threading.Event()
scheduler.submit(Task("begin", begun.set))
for _ in range(50):
    scheduler.submit(Task("for ever", threading.Event().wait))
begun.wait()
"""


def run(program: str, temporary: Path) -> tuple[int, str, str]:
    environment = os.environ | {"TMPDIR": str(temporary)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_an_email_now_and_a_report_later(tmp_path: Path) -> None:
    assert run(EMAIL_AND_REPORT, tmp_path) == (0, "SUCCEEDED PENDING\nSUCCEEDED SUCCEEDED\n", "")
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_forgets_to_stop_ends_and_leaves_nothing_behind(tmp_path: Path) -> None:
    assert run(NEVER_STOPPED, tmp_path) == (0, "", "")
    assert list(tmp_path.iterdir()) == []
