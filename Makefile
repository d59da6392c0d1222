# Each target is a line that you could type. Arguments are passed on: make up ARGS="--without worker"
PY := .venv/bin/python
STAMP := .venv/.installed
# A Python that is installed, 3.11 or above; or say which: make demo PYTHON=/opt/python3.12/bin/python3
PYTHON ?= $(shell for name in python3.13 python3.12 python3.11 python3 python; do \
	$$name -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$name && break; done)

.DEFAULT_GOAL := help
.PHONY: help demo test long up down prove drill bench record lint lock

help: ## List what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(STAMP) ## Run a shop, send it one order of each kind, and check everybody's books
	@$(PY) -m demo

# Much of a test's time is waiting for processes and providers: three at a time on two cores.
test: $(STAMP) ## Run all tests (ARGS=tests/unit for some)
	@$(PY) -m pytest -n 3 --dist loadfile $(ARGS)

long: $(STAMP) ## Run the tests that take minutes: whole matrix, drills (ARGS=tests/e2e for some)
	@$(PY) -m pytest -n 3 --dist loadfile -m long $(ARGS)

up: $(STAMP) ## Run the whole shop in the foreground, until Ctrl-C (ARGS=--help)
	@exec $(PY) -m runtime.up $(ARGS)

down: $(STAMP) ## Stop a running `make up`
	@$(PY) -m runtime.down

prove: $(STAMP) ## Prove the books of the running shop (ARGS="ORDER --json")
	@$(PY) ops.py prove $(ARGS)

drill: $(STAMP) ## Break a shop of its own on purpose under orders, heal it, prove its books (ARGS="--orders 300 --seed 2")
	@$(PY) -m drill $(ARGS)

bench: $(STAMP) ## Measure a shop of its own under many orders, and prove its books (ARGS="--orders 200")
	@$(PY) -m benchmarks $(ARGS)

record: $(STAMP) ## Record the histories that tests/replay repeats (ARGS=VERSION)
	@$(PY) -m tests.replay.record $(ARGS)

lint: $(STAMP) ## Check style, types, layers and workflow code
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy .
	@.venv/bin/temporalint workflows activities
	@$(PY) -m pytest -q --no-header tests/unit/test_layers.py tests/unit/test_workflow_rules.py

lock: ## Choose all versions anew and write the lock files (needs uv)
	uv pip compile -q $(LOCK_OPTIONS) pyproject.toml -o requirements.lock
	uv pip compile -q $(LOCK_OPTIONS) --extra dev pyproject.toml -o requirements-dev.lock

LOCK_OPTIONS := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade

# The lock file holds the hash of every file that may be installed. A second call finds the stamp and does nothing.
$(STAMP): requirements-dev.lock
	@test -n "$(PYTHON)" || \
		{ echo "Python 3.11 or newer with venv is needed: install it or set PYTHON" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "PYTHON=$(PYTHON) is not Python 3.11 or newer" >&2; exit 1; }
	@echo "setting up .venv, once"
	@rm -rf .venv
	@$(PYTHON) -m venv .venv
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $(STAMP)
