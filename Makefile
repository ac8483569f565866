# `make demo` and `make test` set up everything they need, in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO ?= demo

.PHONY: demo test lint bench bench-full chaos proof docs clean

$(VENV)/.user: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Rekindle needs Python 3.11 or newer.")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	$(BIN)/python -m rekindle.attacks.compile
	touch $@

$(VENV)/.dev: $(VENV)/.user
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

demo: $(VENV)/.user
	$(BIN)/rekindle demo --out $(DEMO) --overwrite

test: $(VENV)/.dev lint
	$(BIN)/python -m pytest

lint: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.speed --check $(BENCH)
	$(BIN)/python -m benchmarks.scale

# PUBLISHED names the published trajectory_recovery.py, BENCH further options, such as --counts FILE:GRID.
bench-full: $(VENV)/.dev
	$(BIN)/python -m benchmarks.speed --days 0 --check $(if $(PUBLISHED),--published $(PUBLISHED)) $(BENCH)
	$(BIN)/python -m benchmarks.scale --full

# CHAOS names further options, such as --kills 400 --seed 1. Full disks and the like take root; otherwise they are skipped.
chaos: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[fuzz]'
	$(BIN)/python -m pytest tests/chaos/test_faults.py tests/cli/test_memory.py tests/cli/test_private.py -rs
	$(BIN)/python -m tests.chaos $(CHAOS)
	$(BIN)/python -m tests.chaos.memory
	$(MAKE) proof
	$(BIN)/python -m tests.hostile.fuzz --inputs $(or $(INPUTS),1100000)

# What the tests reach, and what they notice; MUTANTS says how many changes to try.
proof: $(VENV)/.dev
	$(BIN)/python -m tests.proof.coverage
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m tests.proof.mutation --sample $(or $(MUTANTS),400)

# Runs the notebooks too, which takes a minute or two.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "The site is in site/index.html; with search: $(PYTHON) -m http.server --directory site"

$(VENV)/.docs: $(VENV)/.user
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) demo benchmarks/out .pytest_cache .mypy_cache .ruff_cache .hypothesis
