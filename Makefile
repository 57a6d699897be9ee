# Every target sets up what it needs: python3, pip and this file are enough.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# A stand-in for "the code is importable": editable installs need no re-install when sources change.
CORE   := $(VENV)/.installed-core
DEV    := $(VENV)/.installed-dev
DOCS   := $(VENV)/.installed-docs
PEERS  := $(VENV)/.installed-peers

# Tests start some hundred processes: without bytecode each of them would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help browser netns demo test lint types validate package soak bench docs clean
help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(PIP) pip
$(CORE): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable .
	@touch $@
$(DEV): $(CORE)
	$(PIP) --editable '.[all]' --group test --group lint
	@touch $@
$(DOCS): $(CORE)
	$(PIP) --editable '.[torch]' --group docs
	@touch $@
# Browser tests run on the system's Chromium; where there is none, its package manager brings one.
browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do \
	  if command -v $$name >/dev/null; then exit 0; fi; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update --quiet && apt-get install --quiet --yes --no-install-recommends chromium; \
	else \
	  echo "The browser tests need a Chromium on PATH: sudo apt-get install chromium, or as your system has it." >&2; \
	  exit 1; fi
# The attack on clusters makes hosts of its own, in network namespaces: iproute2 on Linux. Without it, it says so.
netns:
	@command -v ip >/dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || \
	  { apt-get update --quiet && apt-get install --quiet --yes --no-install-recommends iproute2; }
$(PEERS): $(DEV)
	$(PIP) --editable '.[all]' --group peers
	@touch $@

demo: $(CORE)  ## Figure 1 at d = 100, with simulated dots (two minutes): table, picture and numbers in out/
	$(BIN)/lazyscope figure fig1 --preset quick --out out
# One thread a worker, BLAS and PyTorch: pytest already runs a worker on every core, and threads that wait for one another
# spin. What runs together and what first: tests/conftest.py.
test: lint types browser  ## lint, types and tests
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --quiet
lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
types: $(DEV)
	$(BIN)/mypy
validate: $(DEV)  ## the slow validations, summed up in tests/validation/results/summary.json; VALIDATE=name runs some
	$(BIN)/python -m pytest -m slow -p tests.validation.summary.plugin $(if $(VALIDATE),-k $(VALIDATE)) --durations=0 --durations-min=1
package: $(DEV)  ## wheel and sdist in dist/, each tried in an empty environment
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m pytest tests/test_package.py -m 'slow or not slow' --quiet
soak: $(DEV) netns  ## random commands and calls, full discs, kills, cut networks (twenty minutes); SEED=1 for others
	$(BIN)/python -m soak --seed $(or $(SEED),0)
bench: $(PEERS)  ## performance as ratios, PyTorch among the peers; BENCH=name runs one
	$(BIN)/python -m benchmarks $(BENCH)
docs: $(DOCS)  ## HTML documentation in docs/_build: lessons executed, links checked
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build
	$(BIN)/python docs/making/links.py docs/_build
clean:
	rm -rf $(VENV) out dist docs/_build docs/generated docs/claims docs/jupyter_execute .pytest_cache .mypy_cache .ruff_cache .hypothesis
