"""`python -m mainspring` is the same program as `mainspring`."""

from mainspring.cli.main import run

run()
