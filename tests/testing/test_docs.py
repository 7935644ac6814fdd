"""The example in the documentation is a test that passes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import mainspring.testing

DOCUMENT = Path(__file__).parents[2] / "docs" / "testing.md"


def test_the_example_passes_as_it_stands(tmp_path: Path) -> None:
    for block in re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL):
        (name,) = re.findall(r"\A# (\w+\.py)\n", block)
        (tmp_path / name).write_text(block)

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=tmp_path, capture_output=True, text=True
    )

    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "3 passed" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix) == ["shop.py", "test_shop.py"]


def test_everything_that_is_public_is_described() -> None:
    described = set(re.findall(r"`(?:await\s+)?(\w+)(?:`|\()", DOCUMENT.read_text()))

    assert set(mainspring.testing.__all__) - {"EnqueuedCall"} <= described
