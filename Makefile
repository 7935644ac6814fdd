.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: help up test chromium check check-code format bench screenshots mutants clean

help:  ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

up: $(INSTALLED)  ## Run a little shop to look at, with its dashboard, on a SQLite file, until Ctrl-C
	@$(BIN)/mainspring up --demo --grace 1s --log-level warning

test: $(INSTALLED) chromium  ## Run the whole suite, on SQLite and on a real PostgreSQL, and in a real browser
	$(BIN)/pytest -n 3 --dist worksteal

chromium:  ## Install Debian's Chromium, in which the dashboard is tested, unless it is there
	@if command -v "$${MAINSPRING_TEST_BROWSER:-chromium}" > /dev/null; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ]; then asroot=; else asroot="sudo -n"; fi; \
	if ! command -v apt-get > /dev/null || ! $$asroot true 2> /dev/null; then \
		echo "The dashboard is tested in Chromium, which is not here and can't be installed by you: have it installed (apt-get install chromium), or name another with MAINSPRING_TEST_BROWSER=/path/to/chromium" >&2; exit 1; fi; \
	$$asroot apt-get update -qq && $$asroot env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium

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

bench: $(INSTALLED)  ## Measure the store and the worker beside bare SQL, schedules, workflows, the HTTP API and the dashboard, on both databases
	$(BIN)/python -m benchmarks.store
	$(BIN)/python -m benchmarks.worker
	$(BIN)/python -m benchmarks.schedules
	$(BIN)/python -m benchmarks.workflows
	$(BIN)/python -m benchmarks.api
	$(BIN)/python -m benchmarks.pages

screenshots: $(INSTALLED) chromium  ## Make the pictures in docs/images: every page, light and dark, wide and on a phone
	$(BIN)/python -m tests.browser.screenshots docs/images

mutants: $(INSTALLED)  ## Break the code on purpose and see that a test notices
	$(BIN)/python -m tests.mutants

clean:  ## Remove the environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Mainspring needs Python 3.11 or newer, found " + sys.version.split()[0] + "; set PYTHON=/path/to/python3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[all,test]'
	@touch $@
