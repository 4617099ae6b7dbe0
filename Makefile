# The house around the code. It needs Python 3.11 or newer and make, nothing else; `make` alone says what there is.
# Another interpreter: make PYTHON=python3.12 test

PYTHON ?= python3
VENV   := .venv
PEERS  := .venv-peers
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.jali-installed
TOOLS  := $(VENV)/.jali-tools
KERNELS := $(VENV)/.jali-kernels
PIP    := -m pip -qq --disable-pip-version-check --no-input

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory
# Bytecode is kept, whatever the environment says: else each worker rewrites every test, and each process compiles jali.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-slow fuzz red-team lint format bench bench-peers constraints clean check-python

help:  ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(STAMP)  ## install jali into .venv and show jali at work on an invented census
	@$(BIN)/jali demo

test: $(KERNELS)  ## the fast tests, the doctests and every law a few times
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow and not paper"

test-slow: $(KERNELS)  ## the long tests, the papers' figures and every law many times; says what was skipped and why
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "slow or paper or law"

# Another seed: make fuzz FUZZ="--seed 7". One input again: make fuzz FUZZ="--seed 7 --kills 0 --first 123 --inputs 1"
FUZZ ?=
fuzz: $(TOOLS)  ## kill -9 at 240 points of saving, and 10,000 mutated inputs; prints the seed
	@PYTHONPATH=tests $(BIN)/python -m fuzz $(FUZZ)

# Another seed, or fewer tables: make red-team RED_TEAM="--seed 7 --tables 500"
RED_TEAM ?= --page docs/transparency.md
red-team: $(KERNELS)  ## attackers who know the algorithm, on 5,000 small tables for each transparent method and principle
	@PYTHONPATH=tests $(BIN)/python -m red_team $(RED_TEAM)

lint: $(TOOLS)  ## ruff (rules and format) and mypy --strict
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check . || { echo "Some files are not formatted: run make format."; exit 1; }
	@$(BIN)/mypy --strict src

format: $(TOOLS)  ## let ruff mend what it can and format the rest
	@$(BIN)/ruff check --quiet --fix . || true
	@$(BIN)/ruff format --quiet .

bench: $(TOOLS)  ## jali's own speed
	@$(BIN)/python -m benchmarks

bench-peers: $(PEERS)/.jali-installed  ## jali beside other tools, in a virtual environment of their own
	@$(PEERS)/bin/python -m benchmarks.peers

# Versions move only here: a fresh environment without constraints, then its names and versions.
constraints: check-python  ## refresh constraints.txt with the newest versions that fit pyproject.toml
	@new=$$(mktemp -d); trap 'rm -rf "$$new"' EXIT; \
	$(PYTHON) -m venv "$$new/venv"; \
	"$$new/venv/bin/python" $(PIP) install --upgrade pip; \
	"$$new/venv/bin/python" $(PIP) install -e ".[plots]" --group dev; \
	{ echo "# What the checks last ran with: names and versions, no hosts. Refresh with: make constraints"; \
	  "$$new/venv/bin/python" -m pip --disable-pip-version-check list --format=freeze \
	    --exclude jali --exclude pip --exclude setuptools --exclude wheel; } > "$$new/constraints.txt"; \
	cat "$$new/constraints.txt" > constraints.txt; \
	echo "constraints.txt: $$(grep -c == constraints.txt) packages"

clean:  ## remove the virtual environments, the caches and what the demo wrote
	@rm -rf $(VENV) $(PEERS) build dist jali-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

check-python:
	@command -v "$(PYTHON)" > /dev/null || { echo "$(PYTHON) was not found; choose one: make PYTHON=python3.12 ..."; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "jali needs Python 3.11 or newer; $(PYTHON) is $$("$(PYTHON)" -V 2>&1). Choose another: make PYTHON=python3.12 ..."; exit 1; }

# A stamp is newer than pyproject.toml and constraints.txt when .venv holds what they ask for: jali itself for the demo,
# and with the second stamp what tests and lint need.
$(STAMP): pyproject.toml constraints.txt | check-python
	@echo "Installing jali into $(VENV) (once; half a minute or so) ..."
	@"$(PYTHON)" -m venv $(VENV) || { echo "$(PYTHON) has no venv module; on Debian: apt install python3-venv"; exit 1; }
	@$(BIN)/python $(PIP) install -c constraints.txt -e ".[plots]"
	@touch $@

$(TOOLS): $(STAMP)
	@echo "Installing the tools for tests and lint into $(VENV) (once; a minute or so) ..."
	@$(BIN)/python $(PIP) install --upgrade pip
	@$(BIN)/python $(PIP) install -c constraints.txt --group dev
	@touch $@

# The kernels are compiled once, before two workers would do it side by side; again when one of their sources is newer.
$(KERNELS): tools/kernels.py $(wildcard src/jali/kernels/*.py src/jali/principles/*.py) src/jali/core/arrays.py $(TOOLS)
	@$(BIN)/python tools/kernels.py
	@touch $@

# The other tools pin numpy and pandas hard, so they get a room of their own, with its own .gitignore.
$(PEERS)/.jali-installed: pyproject.toml $(wildcard benchmarks/peers/requirements.txt) | check-python
	@[ -f benchmarks/peers/requirements.txt ] || { \
	  echo "No peers yet: list them in benchmarks/peers/requirements.txt, run them in benchmarks/peers/__main__.py."; exit 1; }
	@echo "Installing jali and its peers into $(PEERS) ..."
	@"$(PYTHON)" -m venv $(PEERS)
	@echo '*' > $(PEERS)/.gitignore
	@$(PEERS)/bin/python $(PIP) install --upgrade pip
	@$(PEERS)/bin/python $(PIP) install -e . -r benchmarks/peers/requirements.txt
	@touch $@
