.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: help up test check check-code format bench mutants clean

help:  ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

up: $(INSTALLED)  ## Run a small app that does some work every second on a SQLite file, until Ctrl-C
	@$(BIN)/python examples/quickstart.py

test: $(INSTALLED)  ## Run the whole suite, on SQLite and on a real PostgreSQL
	$(BIN)/pytest -n 2 --dist worksteal

check: check-code  ## Check format, lint, types and layers, and run the fast tests
	$(BIN)/pytest -q -n 2 -m "not slow"

check-code: $(INSTALLED)  ## Check format, lint, types and layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(INSTALLED)  ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(INSTALLED)  ## Measure the store and the worker beside bare SQL, schedules, workflows, and the HTTP API, on both databases
	$(BIN)/python -m benchmarks.store
	$(BIN)/python -m benchmarks.worker
	$(BIN)/python -m benchmarks.schedules
	$(BIN)/python -m benchmarks.workflows
	$(BIN)/python -m benchmarks.api

mutants: $(INSTALLED)  ## Break the code on purpose and see that a test notices
	$(BIN)/python -m tests.mutants

clean:  ## Remove the environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Mainspring needs Python 3.11 or newer, found " + sys.version.split()[0] + "; set PYTHON=/path/to/python3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[all,test]'
	@touch $@
