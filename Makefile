.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin

help:  ## list all commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

PACKAGES := packages/strawberry-compiled
INSTALL = $(BIN)/python tools/install_lock.py

# What `make run` needs. Each of the stamps below adds packages of the same versions to it.
.venv/run: requirements-run.lock pyproject.toml $(PACKAGES:%=%/pyproject.toml)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "slotlock needs Python 3.11 or newer; $(PYTHON) is older. Use: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@echo "creating .venv, which takes a few seconds"
	@$(PYTHON) -m venv --clear .venv
	@$(INSTALL) requirements-run.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
	  $(PACKAGES:%=--editable %) --editable .
	@$(BIN)/python -m compileall -q $(PACKAGES) slotlock  # for PYTHONDONTWRITEBYTECODE
	@touch $@

.venv/simulate: requirements-simulate.lock .venv/run
	@$(INSTALL) requirements-simulate.lock
	@touch $@

# All packages: nothing remains to be installed for `make simulate`.
.venv/installed: requirements.lock .venv/run
	@$(INSTALL) requirements.lock
	@touch .venv/simulate $@

install: .venv/installed  ## install the locked packages into .venv

run: .venv/run  ## start slotlock with embedded servers (PORT=8000)
	@$(BIN)/slotlock dev

simulate: .venv/simulate  ## let simulated users rush at a running server (ARGS="--users 400 --places 10")
	@$(BIN)/slotlock simulate $(ARGS)

# The tests start hundreds of processes. Each would compile the package without its cached bytecode.
check test test-slow test-times mutations steady: export PYTHONDONTWRITEBYTECODE =
check: lint  ## lint, types, imports, and the tests that start no server (a minute)
	@$(MAKE) --no-print-directory --jobs 3 types imports pure

test: check  ## run all checks, and the tests of every promise that needs no server to fail
	$(BIN)/python -m tools.run_tests test

test-slow: .venv/installed  ## the long ones: restarts, elections, campaigns with new examples
	TEST_EXAMPLES=drawn $(BIN)/python -m tools.run_tests slow
	@$(MAKE) --no-print-directory faults

mutations: .venv/installed  ## put known faults into a copy of the code; tests have to find each (ARGS="seed")
	@$(BIN)/python -m tools.mutations $(ARGS)

steady: .venv/installed  ## run the tests on a busy machine; any failure is a defect (ROUNDS=2)
	$(BIN)/python -m tools.run_tests test --steady $(or $(ROUNDS),2)

test-times: .venv/installed  ## run the tests and print what their time is spent on
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -m "not slow and not pure" -p tests.support.times

screenshots: .venv/installed  ## write the pictures of the guide for organizers, whose steps it does in a browser
	PICTURES=docs/guides/pictures $(BIN)/python -m pytest -q -n 0 -m slow tests/board/test_guide.py

pure: .venv/installed
	$(BIN)/python -m pytest $(shell $(BIN)/python -c 'from tests.tiers import PURE; print(*PURE)') -m pure

conformance: .venv/installed  ## run third-party tools and clients against servers (needs node and npm; EXAMPLES=200 BASE=main FIXED=1)
	@BASE=$(BASE) $(BIN)/python -m conformance $(if $(FIXED),--fixed) $(if $(EXAMPLES),--examples $(EXAMPLES))

bench: .venv/installed  ## compare with three Node peers (needs wrk, node and npm; ARGS="--quick")
	@$(BIN)/python -m bench.comparison $(ARGS)

bench-calls: .venv/installed  ## count the Python calls of a request
	@$(BIN)/python -m bench.calls

bench-growth: .venv/installed  ## measure how cost grows with data and processes (needs wrk; ARGS="--quick")
	@$(BIN)/python -m bench.growth $(ARGS)

bench-scale: .venv/installed  ## measure what processes, slots, sockets and users cost at rest
	@$(BIN)/python -m bench.scale $(ARGS)

bench-draw: .venv/installed  ## measure a draw for 20,000 users, from the end of the wishes to the last booking
	@$(BIN)/python -m bench.draw $(ARGS)

bench-mail: .venv/installed  ## measure how fast the mails of a cancellation leave (ARGS="--serve")
	@$(BIN)/python -m bench.mail $(ARGS)

bench-memory: .venv/installed  ## measure the memory at full rate for ten minutes (needs wrk)
	@$(BIN)/python -m bench.memory $(ARGS)

faults: .venv/installed  ## book while servers, links and clocks fail (MINUTES=10 SEED=random ARGS="--mix soak")
	@$(BIN)/python -m bench.faults --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED)) $(ARGS)

DIST ?= dist
dist: .venv/run  ## build the two wheels, and put the lock files beside them (DIST=dist)
	@rm -rf $(DIST) && mkdir -p $(DIST)
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation \
	  --wheel-dir $(DIST) $(PACKAGES) .
	@cp requirements-run.lock requirements-serve.lock requirements-simulate.lock $(DIST)
	@echo "$(DIST) has all that docs/guides/install.md needs"

SECRETS := SLOTLOCK_SECRET_KEY MONGO_KEY MONGO_ROOT_PASSWORD MONGO_PASSWORD VALKEY_PASSWORD

secrets:  ## write the passwords and keys of compose.yaml to .env; those that exist stay
	@umask 077; touch .env; chmod 600 .env; for name in $(SECRETS); do \
	  grep -q "^$$name=" .env || echo "$$name=$$(openssl rand -hex 32)" >> .env; done
	@echo ".env has the passwords and keys of compose.yaml"

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/installed
	$(BIN)/mypy

imports: .venv/installed
	$(BIN)/lint-imports

format: .venv/installed  ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

schema: .venv/installed  ## write schema.graphql unless clients would break (BREAKING=1 writes it anyway)
	@$(BIN)/python -m conformance.schema $(if $(BREAKING),--breaking)

settings: .venv/installed  ## write docs/reference/settings.md
	$(BIN)/slotlock settings > docs/reference/settings.md

commands: .venv/installed  ## write docs/reference/commands.md
	$(BIN)/slotlock commands > docs/reference/commands.md

PIN := uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-header --upgrade --quiet $(PACKAGES:packages/%=--no-emit-package %)

lock:  ## pin all dependencies again (needs uv)
	$(PIN) --all-extras --output-file requirements.lock
	$(PIN) --constraints requirements.lock --extra build --extra fonts --extra tracing --output-file requirements-serve.lock
	$(PIN) --constraints requirements.lock --extra build --extra fonts --extra embedded --output-file requirements-run.lock
	$(PIN) --constraints requirements.lock --extra build --extra fonts --extra embedded --extra simulate --output-file requirements-simulate.lock

.PHONY: help install run simulate check test test-slow test-times mutations steady pure screenshots conformance bench bench-calls bench-growth bench-scale bench-draw bench-mail bench-memory faults lint types imports format schema settings commands dist secrets lock
