# The targets that a newcomer needs; `make help` lists them. Each sets up what it uses, from a clean clone.
.DEFAULT_GOAL := help
SHELL := /bin/bash -o pipefail

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
UV = $(shell command -v uv || echo $(BIN)/uv)
# Spark uses more than one core in each of its tests; the others wait now and then.
WORKERS ?= 3
SPARK_WORKERS ?= 2
# Sets and the like have another order each time; a failure tells the seed, with which they have the same one again.
export PYTHONHASHSEED ?= $(shell echo $$RANDOM)
# Where this is set, every process compiles every module anew, which doubles the time until it is ready.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## List the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@tools/need $(PYTHON):$(PYTHON)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Headgate needs Python 3.11 or later; set PYTHON=…"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || tools/need :python3-venv
	$(PYTHON) -m venv .venv

$(READY): requirements.lock pyproject.toml | $(BIN)/python
	@command -v uv >/dev/null || test -x $(BIN)/uv || $(BIN)/pip install --quiet --disable-pip-version-check uv
	VIRTUAL_ENV=.venv $(UV) pip install --quiet --compile-bytecode --require-hashes -r requirements.lock
	VIRTUAL_ENV=.venv $(UV) pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: venv
venv: $(READY) ## Make .venv with all that is locked

.PHONY: demo
demo: sandbox jars ## Start a small company with its data, and questions to ask it
	$(BIN)/headgate demo

.PHONY: check
check: $(READY) ## Run the tests that need no Spark, no other database and no processes, in 3 minutes
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not processes and not slow"

.PHONY: test
test: sandbox jars postgres mariadb ## Run all tests, with Spark, and on PostgreSQL where its SQL differs
	@# All three, whatever fails: one run tells of everything that is wrong.
	@$(MAKE) --no-print-directory --keep-going --jobs=1 test-without-spark test-on-spark test-alone

.PHONY: test-without-spark test-on-spark test-alone
test-without-spark:
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not spark and not cluster"
test-on-spark:
	$(BIN)/python -m pytest -n $(SPARK_WORKERS) --dist loadfile -m "spark and not alone"
test-alone:
	$(BIN)/python -m pytest -m alone

.PHONY: matrix
matrix: sandbox postgres mariadb ## Run all tests without Spark on SQLite and on PostgreSQL
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup --both-databases -m "not spark and not cluster"

.PHONY: lint
lint: $(READY) ## Check format, lint, types, and that generated pages are fresh
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python tools/lint_access.py
	$(BIN)/lint-imports
	$(BIN)/python tools/reference.py --check

.PHONY: docs
docs: $(READY) ## Write the generated reference pages anew
	$(BIN)/python tools/reference.py

.PHONY: jars
jars: $(READY) ## Fetch the jars that Spark needs, build the guard and archive Spark's classes, once
	@tools/need javac:openjdk-17-jdk-headless
	@$(BIN)/python -m headgate.execution.spark.jars

.PHONY: guard
guard: jars ## Build the guard inside Spark, and put it into the package
	@$(BIN)/python -m headgate.execution.spark.jars --ship

.PHONY: cluster-test
cluster-test: sandbox jars postgres mariadb ## Try members' SQL and pipelines on a cluster: a master and two workers
	CLUSTER=1 $(BIN)/pytest -m cluster tests/execution/spark tests/pipelines/runs

.PHONY: catalog-tests
catalog-tests: $(READY) ## Run Iceberg's own catalog tests against Headgate
	@tools/need javac:openjdk-17-jdk-headless
	$(BIN)/python -m tests.catalog.conformance

.PHONY: kill-test
kill-test: sandbox jars ## Kill at random for MINUTES=5, and look that no row is lost or doubled
	$(BIN)/python -m tests.pipelines.runs.kill_loop

.PHONY: worlds
worlds: $(READY) postgres ## Compare 10,000 random worlds with the oracle
	WORLDS=10000 $(BIN)/pytest -n $(WORKERS) tests/access/test_properties.py

.PHONY: escalations
escalations: $(READY) ## Search for MINUTES=5 for acts that give somebody a right that nobody gave
	$(BIN)/python -m tests.escalation.search

.PHONY: mutants
mutants: $(READY) ## Break each rule in turn; the tests must notice every one
	$(BIN)/python tools/mutants.py

.PHONY: bench
bench: sandbox jars postgres ## Measure, side by side with peers
	@tools/need wrk:wrk
	@# Peers ask for other versions of what we use, so they get an environment of their own.
	$(PYTHON) -m venv .venv-bench
	VIRTUAL_ENV=.venv-bench $(UV) pip install --quiet --compile-bytecode --require-hashes -r requirements.lock
	VIRTUAL_ENV=.venv-bench $(UV) pip install --quiet --compile-bytecode --require-hashes -r benchmarks/requirements.lock
	VIRTUAL_ENV=.venv-bench $(UV) pip install --quiet --no-deps --no-build-isolation -e .
	.venv-bench/bin/python -m benchmarks $(BENCH)

.PHONY: lock
lock: $(READY) ## Resolve the locks anew
	$(UV) pip compile --quiet --universal --generate-hashes --all-extras --no-emit-index-url pyproject.toml -o requirements.lock
	$(UV) pip compile --quiet --universal --generate-hashes --no-emit-index-url benchmarks/requirements.in -o benchmarks/requirements.lock

.PHONY: postgres
postgres:
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || tools/need :postgresql

.PHONY: mariadb
mariadb:
	@test -x /usr/sbin/mariadbd || command -v mariadbd >/dev/null || tools/need :mariadb-server

.PHONY: sandbox
sandbox:
	@tools/need bwrap:bubblewrap

.PHONY: clean
clean: ## Remove what the other targets made
	rm -rf .venv .venv-bench .headgate .mypy_cache .ruff_cache .hypothesis .cache dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
