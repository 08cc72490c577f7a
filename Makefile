# Needs make and a Python (3.11 or newer) with pip. Everything else is put into .venv by the first target that wants it.

# The first Python that runs, is new enough and can fill an environment; to say which: make test PYTHON=/path/to/python3
PROBE = import sys, venv, importlib.util as u; sys.exit(sys.version_info < (3, 11) or not (u.find_spec("ensurepip") or u.find_spec("pip")))
usable = $(shell $(1) -c '$(PROBE)' >/dev/null 2>&1 && echo $(1))
CANDIDATES = python3.13 python3.12 python3.11 python3
PYTHON ?= $(firstword $(foreach python,$(CANDIDATES),$(call usable,$(python))))

BIN = .venv/bin
# Quiet but for errors: setuptools warns at every editable install, whatever the layout.
INSTALL = PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable
PYTEST = $(BIN)/python -m pytest -n 2
VERIFY = $(BIN)/dpledger verify
OWN = tests/examples/claims.toml --own --json build/verify.json --html build/verify.html
BROKEN = tests/examples/broken.toml --json build/broken.json --html build/broken.html

.DEFAULT_GOAL := help
.PHONY: help verify test test-all bench lint format types ci clean

help:  ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

verify: .venv/test  ## Check the product's own claims and the example claims; writes build/verify.json and .html
	@mkdir -p build
	$(VERIFY) $(OWN)
	@echo "The next claims do not hold, and are to be refuted."
	$(VERIFY) $(BROKEN); test $$? -eq 1

test: .venv/test  ## The tests, without the slow ones
	$(PYTEST) -m "not slow"

test-all: .venv/test  ## All tests
	$(PYTEST)

bench: .venv/test  ## The benchmarks
	$(BIN)/python -m tests.benchmarks

lint: .venv/dev  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: .venv/dev  ## ruff: put right what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: .venv/dev  ## mypy, strict
	$(BIN)/mypy

ci:  ## What continuous integration runs: lint, types, the built wheel, the tests
	bash .ci/run

clean:  ## Remove the environment and everything built
	rm -rf .venv build dist dpledger.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

define NO_PYTHON

No usable Python among: $(or $(PYTHON),$(CANDIDATES)).
It must be 3.11 or newer and have the module venv, and ensurepip or pip.
On Debian and Ubuntu: apt-get install python3-venv
Elsewhere install Python 3.11 or newer, or say where it is: make $(or $(MAKECMDGOALS),test) PYTHON=/path/to/python3

endef

# The stamps depend on the interpreter, so that an environment whose Python was removed or replaced is made anew.
$(BIN)/python: ;

# Where a distribution leaves ensurepip out, its pip fills the environment from outside.
.venv/made: $(BIN)/python
	$(if $(and $(PYTHON),$(call usable,$(PYTHON))),,$(error $(NO_PYTHON)))
	@echo "Making .venv with $(PYTHON)"
	@if $(PYTHON) -c 'import ensurepip' 2>/dev/null; then \
		$(PYTHON) -m venv --clear .venv; \
	else \
		$(PYTHON) -m venv --clear --without-pip .venv && $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; \
	fi
	@touch $@

.venv/test: pyproject.toml .venv/made
	@echo "Installing dpledger, what it needs and what its tests need into .venv"
	@$(INSTALL) '.[test]'
	@touch $@

.venv/dev: pyproject.toml .venv/made
	@echo "Installing dpledger and the tools of its developers into .venv"
	@$(INSTALL) '.[dev]'
	@touch $@ .venv/test
