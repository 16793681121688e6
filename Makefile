# Two commands matter: `make demo` shows what this is, `make test` shows that it works. `make setup` comes with both.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3.11
CORPORA ?= $(or $(RUNTRIAGE_CORPORA),../shared)
SCORES ?= build/scores
BIN := .venv/bin
STAMP := .venv/.installed
SLOW := statistical or browser

.PHONY: help setup demo test test-slow lint bench score lock clean

help:  ## Show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## Make .venv with exactly the packages of requirements/

$(STAMP): requirements/dev.txt requirements/operator.txt pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "needs $(PYTHON) (or: make PYTHON=path/to/python3.11)" >&2; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing $$(grep -c '==' requirements/dev.txt) packages into .venv: some minutes, once"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/operator.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: setup  ## Real runs, a real MLflow server, verdicts in its pages (ARGS=--keep leaves it up)
	$(BIN)/runtriage demo $(ARGS)

test: setup  ## Everything but what takes minutes, with a real MLflow server
	$(BIN)/python -m pytest -n 2 $(ARGS)

test-slow: setup  ## False-alarm rates on simulated cohorts; pages in headless Chromium
	$(BIN)/python -m pytest -m "$(SLOW)" --timeout 900 $(ARGS)

bench: setup  ## Rows per CPU second
	$(BIN)/python -m pytest -m bench --benchmark-enable --benchmark-columns=min,median,rounds --timeout 900 tests/bench $(ARGS)

lint: setup  ## ruff, mypy strict, import contracts
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

score: setup  ## Every accuracy figure of the README from the labelled runs, against the stored floor (ARGS=--raise stores a new one)
	@test -d $(CORPORA)/data || { echo "no labelled runs at $(CORPORA): set RUNTRIAGE_CORPORA" >&2; exit 2; }
	$(BIN)/python -m tests.accuracy.score $(CORPORA) $(SCORES) $(ARGS)

lock:  ## Compile requirements/dev.txt from dev.in (UPGRADE=--upgrade takes newer versions)
	test -x $(BIN)/pip-compile || { $(PYTHON) -m venv .venv && $(BIN)/python -m pip install --quiet 'pip-tools>=7.5'; }
	cd requirements && CUSTOM_COMPILE_COMMAND="make lock" ../$(BIN)/pip-compile --quiet --generate-hashes --strip-extras \
	  --allow-unsafe --no-emit-index-url --no-emit-trusted-host --no-emit-find-links $(UPGRADE) --output-file dev.txt dev.in

clean:  ## Remove what was made here
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .benchmarks
	find . -name __pycache__ -prune -exec rm -rf {} +
