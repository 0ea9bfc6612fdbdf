# Every target that needs the virtual environment prepares it first; when nothing has changed since the
# last time that takes no time. `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

BIN := .venv/bin
# What the linters and mypy look at; folders that are not there yet are left out.
SOURCES := $(wildcard mesos_py master agent frameworks examples bench tests tools)
FAST_TESTS := $(wildcard tests/unit tests/property)
SLOW_TESTS := $(wildcard tests/integration tests/system)
# What is run once more with the SDK's schedulers and executors over HTTP: where the way to master and agent matters.
FACE_TESTS := $(addprefix tests/integration/test_,$(addsuffix .py,frameworks offers launch kill reconciliation needs roles \
    executors standbys offer_timeouts field_cases_links field_cases_offers field_cases_tasks field_cases_sandboxes drain \
    maintenance health short_tasks)) \
    tests/system/test_masters.py::test_when_the_leader_goes_the_next_one_takes_over_and_no_task_is_touched
# make test PYTEST_ARGS='-k offers -x'
PYTEST_ARGS ?=
# make bench NAME=launch
NAME ?=
# make chaos MINUTES=30 SEED=7; without a seed one is drawn
MINUTES ?= 30
SEED ?=

.PHONY: help setup demo proto proto-check docs format lint types test test-vm test-fast chaos bench clean distclean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## prepare .venv with everything the other targets need
	@tools/setup.sh

demo: setup ## a master and three agents on this machine; a framework and a MapReduce that use them
	@$(BIN)/mesos-py local --agents 3 -- sh -ec \
	    '$(BIN)/python -m examples.stdlib_census && $(BIN)/python -m examples.mapreduce_demo'

proto: setup ## generate mesos_py/v1 from proto/
	@tools/proto.sh

proto-check: setup
	@tools/proto.sh --check

docs: setup ## write docs/configuration.md from the declared flags
	@$(BIN)/python tools/flags_reference.py > docs/configuration.md

format: setup ## let ruff format the code and repair what it can
	@$(BIN)/ruff check --quiet --fix-only $(SOURCES)
	@$(BIN)/ruff format $(SOURCES)

lint: setup proto-check ## ruff, import rules, generated code up to date
	@$(BIN)/ruff check --quiet $(SOURCES)
	@$(BIN)/ruff format --quiet --check $(SOURCES) || { echo 'lint: not formatted; run: make format' >&2; exit 1; }
	@$(BIN)/lint-imports --no-logo

types: setup ## mypy --strict
	@$(BIN)/mypy $(SOURCES)

# Unit and property tests side by side (those of a file in one process: some count what all of it has
# met), then those with real daemons, which share ports, control groups and networks, one by one, and some of
# these over HTTP.  All are run whatever the first finds; 5 is pytest's "none was chosen".
test: setup-for-tests lint types ## lint, types and all tests: unit, property, integration, system
	@fast=0; slow=0; http=0; worst=5; \
	$(BIN)/python -m pytest -n auto --dist loadfile $(PYTEST_ARGS) $(FAST_TESTS) || fast=$$?; \
	$(BIN)/python -m pytest $(PYTEST_ARGS) $(SLOW_TESTS) || slow=$$?; \
	$(BIN)/python -m pytest --face http $(PYTEST_ARGS) $(FACE_TESTS) || http=$$?; \
	for each in $$fast $$slow $$http; do \
	    if [ $$each != 5 ]; then if [ $$worst = 5 ]; then worst=0; fi; worst=$$((worst | each)); fi; done; exit $$worst

test-vm: setup ## tests in a virtual machine with cgroup v2 (builds its disk first: a minute or two)
	@tools/setup.sh --with-vm-packages
	@$(BIN)/python -m pytest $(PYTEST_ARGS) tests/vm

test-fast: setup ## lint, types, unit and property tests without the long ones, all side by side
	@tools/test_fast.sh $(PYTEST_ARGS) $(FAST_TESTS)

chaos: setup-for-tests ## random faults against a cluster of network namespaces; MINUTES=30 SEED=7 (printed)
	@$(BIN)/python -m tests.kit.chaos --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

bench: setup ## measure, print tables, save plots and JSON; NAME=launch for one of them
	@$(BIN)/python -m bench $(NAME)

clean: ## remove caches and build products
	@rm -rf build dist *.egg-info .coverage .coverage.* htmlcov \
	    .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	@find . -path ./.venv -prune -o -path ./.git -prune -o -type d -name __pycache__ -print0 | xargs -0 -r rm -rf

distclean: clean ## clean, and remove .venv
	@rm -rf .venv

.PHONY: setup-for-tests
setup-for-tests:
	@tools/setup.sh --with-test-packages
