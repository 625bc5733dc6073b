.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

.venv/installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "slotlock needs Python 3.11 or newer, and $(PYTHON) is not: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

install: .venv/installed  ## install what the lock names into .venv

run: .venv/installed  ## start slotlock on embedded servers (PORT=8000)
	@$(BIN)/slotlock dev

simulate: .venv/installed  ## let a crowd rush at a running server (ARGS="--people 400 --places 10")
	@$(BIN)/slotlock simulate $(ARGS)

test: lint types imports  ## run every check and every test
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

conformance: .venv/installed  ## put servers before other people's tools and clients (needs node and npm; EXAMPLES=200 BASE=main)
	@BASE=$(BASE) $(BIN)/python -m conformance $(if $(EXAMPLES),--examples $(EXAMPLES))

bench-quick: .venv/installed  ## measure beside two Node peers (needs wrk, node and npm)
	@$(BIN)/python -m bench.quick

bench-lock: .venv/installed  ## measure a crowd in line for one lock beside the ideal
	@$(BIN)/python -m bench.lock

bench-exports: .venv/installed  ## measure the export of 100,000 bookings
	@$(BIN)/python -m bench.exports

bench-rush: .venv/installed  ## measure 50,000 requests for 500 places through the queue (ARGS="--late")
	@$(BIN)/python -m bench.rush $(ARGS)

soak: .venv/installed  ## book for ten minutes while everything is killed (MINUTES=10 SEED=random)
	@$(BIN)/python -m bench.soak --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))

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

schema: .venv/installed  ## write schema.graphql, unless that breaks clients (BREAKING=1: all the same)
	@$(BIN)/python -m conformance.schema $(if $(BREAKING),--breaking)

settings: .venv/installed  ## write docs/reference/settings.md
	$(BIN)/slotlock settings > docs/reference/settings.md

PIN := uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-header --upgrade --quiet

lock:  ## pin every dependency again (needs uv)
	$(PIN) --all-extras --output-file requirements.lock
	$(PIN) --constraints requirements.lock --output-file requirements-serve.lock

.PHONY: help install run simulate test conformance bench-quick bench-lock bench-exports bench-rush soak lint types imports format schema settings lock
