"""The program as its users run it, in a process of its own, or in this one where that is enough."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from mainspring.cli.main import app

# As root no permission would stop the program. Dropped from the bounding set, these capabilities (to override
# permissions, to search any folder, to act as any owner) are gone after the exec, and root is as bound as anyone.
_POWERLESS = """
import ctypes, os, sys
for capability in (1, 2, 3):
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-m", "mainspring", *sys.argv[1:]])
"""

Done = subprocess.CompletedProcess[str]


def mainspring(*arguments: str, folder: Path | None = None, powerless: bool = False) -> Done:
    """Run `python -m mainspring` in *folder*, and bound by permissions even as root when *powerless*."""
    program = ["-c", _POWERLESS] if powerless else ["-m", "mainspring"]
    return python(*program, *arguments, folder=folder)


def in_process(*arguments: str) -> Done:
    """Run the program in this process, which is quicker."""
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    return Done(arguments, done.exit_code, done.stdout, done.stderr)


def python(*arguments: str, folder: Path | None = None) -> Done:
    """Run this interpreter in a process of its own."""
    return subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=60)


def assert_refused(done: Done, *words: str) -> None:
    """Assert that the program refused in one sentence that says all of *words*."""
    assert (done.returncode, done.stdout) == (2, ""), done
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr
