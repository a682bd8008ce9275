# Everything happens in .venv. Needs Python 3.11+ and make, and a C++ compiler for the native engine.
#   make test PYTHON=python3.13    another Python (after `make clean`)
#   make setup NATIVE=             without the native engine, as on a machine that has no compiler
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# "yes" when the native engine can be built here: a compiler and Python's headers. Then a build that fails is an
# error; otherwise the readable engine is installed.
NATIVE := $(shell command -v "$${CXX:-c++}" >/dev/null 2>&1 && $(PYTHON) -c \
  'import pathlib, sysconfig as s; print("yes" if pathlib.Path(s.get_path("include"), "Python.h").exists() else "")')
ENGINE := $(if $(NATIVE),native,readable)
READY := $(VENV)/.ready-$(ENGINE)

TYPED := $(foreach dir,src tests benchmarks examples,$(if $(wildcard $(dir)/*.py $(dir)/*/*.py),$(dir)))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup test check format docs bench reproduce advice-table estimator-table clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## .venv with banditree (editable), its extras and the tools

# One worker a core, so the arithmetic libraries stay on one thread each.
test: export OMP_NUM_THREADS = 1
test: export OPENBLAS_NUM_THREADS = 1
test: export MPLBACKEND = Agg
test: setup ## every test and every example of the docs, with coverage
	$(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report=term $(if $(NATIVE),--cov-fail-under=95)

check: setup ## formatting, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(TYPED)
	$(BIN)/lint-imports

format: setup ## let ruff fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: setup ## the examples of README, docs and docstrings alone
	$(BIN)/python -m pytest README.md docs src

bench: setup ## the benchmark table
	$(BIN)/python -m benchmarks

reproduce: setup ## every figure and reading of the paper, into reproduction/
	$(BIN)/banditree reproduce --variant all --out reproduction

estimator-table: setup ## which estimator wins where, on logs whose truth is known
	$(BIN)/python -m docs.make_estimator_table --out docs/estimator-table.md

advice-table: setup ## check the catalogue's advice on worlds whose truth is known
	$(BIN)/python -m docs.make_advice_table --out docs/advice-table.md

clean: ## remove .venv and everything built
	rm -rf $(VENV) .venv-peers build dist reproduction htmlcov .coverage .coverage.* \
	  .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "banditree needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name another one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The build tools live in .venv and the objects in build/, so that a change to one header recompiles and no more.
# Which of CMake and Ninja has to be added to those of the machine, the build backend says itself.
BUILD_TOOLS = import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])
MORE_TOOLS = from scikit_build_core.build import get_requires_for_build_editable as more; print(*more())

# A new package is not seen by an editable install until it is made again, so the packages count too.
$(READY): pyproject.toml CMakeLists.txt $(shell find src/native 2>/dev/null) \
  $(shell find src/banditree -name __init__.py 2>/dev/null) | $(BIN)/python
	@rm -f $(VENV)/.ready-*
	$(BIN)/python -m pip install --quiet $$($(BIN)/python -c '$(BUILD_TOOLS)')
	@more=$$($(BIN)/python -c '$(MORE_TOOLS)') && { test -z "$$more" || $(BIN)/python -m pip install --quiet $$more; }
	$(if $(NATIVE),BANDITREE_REQUIRE_NATIVE=1 )$(BIN)/python -m pip install --quiet --no-build-isolation \
	  --config-settings=build-dir=build/{wheel_tag} $(if $(NATIVE),,--config-settings=wheel.cmake=false) \
	  --editable '.[all,dev]'
	@echo "banditree is installed in $(VENV), with the $(ENGINE) engine."
	@touch $@
