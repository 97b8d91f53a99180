# The verbs of this repository. Each makes .venv when it is missing or stale; those that need Java look for it.
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test style types imports unit compat sim soak bench clean requirements java FORCE
SHELL := /bin/bash

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/made-for
CONNECTOR := $(VENV)/spark-connector
export COMPAT_RECORDS ?= 100000
# Else each of some hundred processes compiles all that it imports, and takes three times as long to start.
unexport PYTHONDONTWRITEBYTECODE

help:
	@echo "make demo          real flights through kafka-python, SIGKILL and Spark, everything compared"
	@echo "make test          style, types, imports, unit, and compat at 10,000 records a client"
	@echo "make style types imports unit   the parts of it"
	@echo "make compat        real clients and Apache Kafka's tools, COMPAT_RECORDS=$(COMPAT_RECORDS) records a client"
	@echo "make bench         side by side with Apache Kafka; PART=start, log or clients: a part; ONLY=NAME: one measurement"
	@echo "make sim soak      come with the cluster"
	@echo "make requirements  compiles requirements/ from pyproject.toml"
	@echo "make clean         removes .venv and everything that was made, but no broker's data"

demo: $(STAMP) java $(CONNECTOR)
	$(BIN)/python -m spark_jobs.demo

# Unit and compat tests together: the ones compute while the others wait, for a JVM to start or a broker to be back.
test: export COMPAT_RECORDS = 10000
test: style types imports java $(CONNECTOR)
	$(BIN)/python -m pytest tests --ignore=tests/sim -n 3 --dist loadscope --no-loadscope-reorder

style: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python

imports: $(STAMP)
	$(BIN)/lint-imports

unit: $(STAMP) java $(CONNECTOR)
	$(BIN)/python -m pytest tests --ignore=tests/compat --ignore=tests/sim -n 2 --dist loadscope

compat: $(STAMP) java $(CONNECTOR)
	$(BIN)/python -m pytest tests/compat

sim soak:
	@echo "There is no \`make $@\` yet: it comes with the cluster." >&2; exit 1

bench: $(STAMP) java
	$(BIN)/python -m benchmarks $(PART) $(if $(ONLY),--only $(ONLY))

clean:
	rm -rf $(VENV) build dist demo-output spark-warehouse metastore_db derby.log
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

PIP_COMPILE = CUSTOM_COMPILE_COMMAND="make requirements" $(BIN)/pip-compile --quiet --generate-hashes --strip-extras \
	--allow-unsafe --no-annotate --no-config --no-emit-index-url --no-emit-trusted-host --no-emit-find-links

# Keeps the pins that are still allowed; `make requirements UPGRADE=--upgrade` takes the newest of everything.
requirements: $(STAMP)
	$(PIP_COMPILE) $(UPGRADE) --output-file requirements/runtime.txt pyproject.toml
	$(PIP_COMPILE) $(UPGRADE) --extra spark --extra dev --output-file requirements/dev.txt pyproject.toml

java:
	@.ci/java

# Spark's Kafka connector, 62 MB, belongs to the set-up: nothing that is timed should wait for it.
$(CONNECTOR): $(STAMP) | java
	@echo "Fetching Spark's Kafka connector"
	@$(BIN)/python -m spark_jobs.session > $@.log 2>&1 || { cat $@.log >&2; exit 1; }
	@touch $@

# Stale is also: moved or copied from elsewhere, or made by a Python that is gone.
ifneq ($(shell { cat $(STAMP) && $(BIN)/python -c ''; } 2>/dev/null || echo stale),$(CURDIR))
$(STAMP): FORCE
endif
$(STAMP): pyproject.toml requirements/dev.txt .ci/venv
	@.ci/venv $(VENV) $(STAMP)
