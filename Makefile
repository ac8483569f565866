# `make demo` and `make test` set up everything they need, in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
DEMO ?= demo

.PHONY: demo test test-all lint docs wheel bench bench-full chaos proof clean

$(VENV)/.user: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Rekindle needs Python 3.11 or newer.")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	$(BIN)/python -m rekindle.attacks.compile
	touch $@

$(VENV)/.dev: $(VENV)/.user
	$(PIP) --editable '.[lint,test]'
	touch $@

$(VENV)/.docs: $(VENV)/.user
	$(PIP) --editable '.[docs]'
	touch $@

demo: $(VENV)/.user
	$(BIN)/rekindle demo --out $(DEMO) --overwrite

# What every change needs; a few minutes.
test: lint
	$(BIN)/python -m pytest -m "not slow"

# The rest: all examples of the properties, kills, Spark, Dask, the browser, and the kernels without the compiler.
test-all: $(VENV)/.dev
	$(BIN)/python -m pytest -m "slow or hypothesis" --hypothesis-profile long
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -p tests.proof.quick tests/assignment tests/evaluation/test_mapping.py

lint: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy

# Runs the notebooks too, which takes a minute or two.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "The site is in site/index.html; with search: $(PYTHON) -m http.server --directory site"

# Builds the wheel, installs it into an empty environment, and runs the demo from there. Kernels that were compiled here are
# good there too: they are kept by the digest of their source.
wheel: $(VENV)/.user
	rm -rf dist build/wheel
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/python -m pip install --quiet --disable-pip-version-check build
	build/wheel/bin/python -m build --outdir dist . > build/wheel/log
	rm -rf build/wheel
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd src && find . -name '*.nb[ic]' -o -name '*.compiled' | tar -cf - -T - | tar -xf - -C ../build/wheel/lib/python3*/site-packages
	cd build/wheel && bin/rekindle demo --out demo

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.speed --check $(BENCH)
	$(BIN)/python -m benchmarks.scale

# PUBLISHED names the published trajectory_recovery.py, BENCH further options, such as --counts FILE:GRID.
bench-full: $(VENV)/.dev
	$(BIN)/python -m benchmarks.speed --days 0 --check $(if $(PUBLISHED),--published $(PUBLISHED)) $(BENCH)
	$(BIN)/python -m benchmarks.scale --full

# CHAOS names further options, such as --kills 400 --seed 1. Full disks and the like need root; otherwise they are skipped.
chaos: $(VENV)/.dev
	$(PIP) --editable '.[fuzz]'
	$(BIN)/python -m pytest tests/chaos -rs
	$(BIN)/python -m tests.chaos $(CHAOS)
	$(BIN)/python -m tests.chaos.memory
	$(MAKE) proof
	$(BIN)/python -m tests.hostile.fuzz --inputs $(or $(INPUTS),1100000)

# What the tests reach, and what they notice; MUTANTS says how many changes to try.
proof: $(VENV)/.dev
	$(PIP) --editable '.[dev]'
	$(BIN)/python -m tests.proof.coverage
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m tests.proof.mutation --sample $(or $(MUTANTS),400)

clean:
	rm -rf $(VENV) demo dist build site benchmarks/out .pytest_cache .mypy_cache .ruff_cache .hypothesis
