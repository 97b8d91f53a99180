# The verbs of this repository. Each makes .venv when it is missing or stale; those that need Java look for it.
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test style types imports unit compat foreign fuzz rounds sim properties soak soak-sim soak-processes bench clean requirements java FORCE
SHELL := /bin/bash

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/made-for
CONNECTOR := $(VENV)/spark-connector
KAFKA := $(VENV)/apache-kafka
COLLECTED := $(VENV)/collected
FOREIGN := $(VENV)/foreign-programs
export COMPAT_RECORDS ?= 100000
SOAK_SEEDS ?= 10000
SOAK_FILE ?= soak.txt
ROUNDS ?= 3
SUPERVISED_ROUNDS ?= $(ROUNDS)
# Tests of other folders of which make test leaves some to make compat: they start many processes.
WITH_PROCESSES := tests/broker/launch/supervisor tests/broker/partitions/test_compaction_round_process.py \
	tests/odradek/testing/test_pytest_plugin_beside_others.py
# Of each exactly-once chain, of which there are three: five minutes together.
CHAIN_SECONDS ?= 100
RUNS ?= 20
HISTORIES ?= 300
# Else each of some hundred processes compiles all that it imports, and takes three times as long to start.
unexport PYTHONDONTWRITEBYTECODE

help:
	@echo "make demo          real flights through kafka-python, Spark, a group of two and an exactly-once copy, SIGKILL for each, everything compared"
	@echo "make test          style, types, imports, unit but whole histories, most of compat at 10,000 records a client"
	@echo "make test ONLY=broker/log   the tests that mirror this folder"
	@echo "make style types imports unit   the parts of it"
	@echo "make compat        real clients, Apache Kafka's tools and Spark, COMPAT_RECORDS=$(COMPAT_RECORDS) records a client; COMPAT_PART=rest: what make test leaves"
	@echo "make foreign       Kafka Streams and Connect, exactly once, while their processes are killed; franz-go's own test; SOURCES=FOLDER: suites of others, too"
	@echo "make fuzz          HISTORIES=$(HISTORIES) of random admin requests to three brokers of ours and three of Apache Kafka; SEED=N: one"
	@echo "make rounds        brokers and etcd killed, paused, restarted and cut off under load, ROUNDS=$(ROUNDS) of each kind"
	@echo "make bench         side by side with Apache Kafka; PART=start, log, cores, cluster, groups, transactions, testkit or clients, ONLY=NAME: a part of it"
	@echo "make sim           histories of stories and 150 from seeds, in virtual time; SEED=N: one of them again"
	@echo "make properties    every property test RUNS=$(RUNS) times, with other examples each time"
	@echo "make soak          SOAK_SEEDS=$(SOAK_SEEDS) of them, resumable, and 200 for each mistake put in on purpose; 20 rounds; properties"
	@echo "make requirements  compiles requirements/ from pyproject.toml"
	@echo "make clean         removes .venv and everything that was made, but no broker's data"

demo: $(STAMP) java $(CONNECTOR)
	$(BIN)/python -m odradek.spark_jobs.demo

# The tests of a folder, or of a module: `broker/log`, `broker/log/index.py`.
mirrors = $(if $(filter %.py,$1),$(wildcard tests/$(dir $1)test_$(basename $(notdir $1)).py tests/$(dir $1)test_$(basename $(notdir $1))_*.py),tests/$1)

# Unit and compat tests together: the ones compute while the others wait, for a JVM to start or a broker to be back; so
# do the checkers of types. ONLY=broker/log: the tests that mirror this folder, or this file, and nothing else.
test: export COMPAT_RECORDS = 10000
test: export COMPAT_PART = $(if $(ONLY),all,telling)
test: export SIM_PART = $(if $(ONLY),all,telling)
ifdef ONLY
test: $(STAMP) java $(CONNECTOR) $(KAFKA)
	$(BIN)/python -m pytest $(foreach each,$(patsubst odradek/testing/sim%,sim%,$(ONLY)),$(call mirrors,$(each))) -n 2 --dist loadscope
else
test: style imports java $(CONNECTOR) $(KAFKA) $(COLLECTED)
	@$(MAKE) --no-print-directory types > $(VENV)/types.log 2>&1 & types=$$!; \
		$(BIN)/python -m pytest tests -n 4 --dist loadscope --no-loadscope-reorder; code=$$?; \
		wait $$types || code=$$?; cat $(VENV)/types.log; exit $$code
endif

style: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# The two at the same time, each with a core of its own.
types: $(STAMP)
	$(BIN)/mypy & mypy=$$!; $(BIN)/pyright --pythonpath $(BIN)/python; code=$$?; wait $$mypy && exit $$code

imports: $(STAMP)
	$(BIN)/lint-imports

unit: $(STAMP) java $(CONNECTOR) $(KAFKA)
	$(BIN)/python -m pytest tests --ignore=tests/compat -n 2 --dist loadscope

# Four processes for two cores: most of the time these wait for other programs.
compat: $(STAMP) java $(CONNECTOR) $(KAFKA) $(FOREIGN)
	$(BIN)/python -m pytest tests/compat tests/spark_jobs $(WITH_PROCESSES) -n 4 --dist loadscope --no-loadscope-reorder

# One after the other: each has three processes or more, and minutes to wait for them. SOURCES: a folder with the
# repositories of FastStream and confluent-kafka-python, whose tests run too; without it they are skipped.
foreign: $(STAMP) java
	COMPAT_PART=foreign FOREIGN_SOURCES="$(abspath $(SOURCES))" $(BIN)/python -m pytest tests/compat

# Differences are printed, with their seeds, and end it with 1.
fuzz: $(STAMP) java $(KAFKA)
	$(BIN)/python -m tests.compat.admin_fuzz $(if $(SEED),--first $(SEED) --count 1,--count $(HISTORIES) --minutes 60)

# Real processes under load while things happen to them. What was found for each kind stands in rounds.md.
rounds: $(STAMP) java $(KAFKA)
	@rm -f rounds.md
	PROCESS_ROUNDS=$(ROUNDS) SUPERVISED_ROUNDS=$(SUPERVISED_ROUNDS) CHAIN_SECONDS=$(CHAIN_SECONDS) ROUNDS_TABLE=$(CURDIR)/rounds.md \
		$(BIN)/python -m pytest tests/cluster -k test_rounds_ -n 4 --dist worksteal; \
		code=$$?; cat rounds.md; exit $$code

# Histories of stories and from seeds, and each mistake that is put in on purpose. SEED=7, or several: these alone, as a
# failing one is printed.
sim: $(STAMP)
	$(if $(SEED),,$(BIN)/python -m pytest tests/sim -m only_in_sim -n 2)
	$(BIN)/python -m tests.sim $(if $(SEED),$(SEED),--seeds 150 --recorded --jobs 2)

# What Hypothesis has examples of, RUNS times: each run has others.
properties: $(STAMP)
	for run in $$(seq $(RUNS)); do $(BIN)/python -m pytest tests -m hypothesis -n 2 --dist loadscope -q || exit 1; done

soak: soak-sim soak-processes properties

# Goes on where it was stopped: what is finished stands in SOAK_FILE.
soak-sim: $(STAMP)
	$(BIN)/python -m tests.sim --seeds $(SOAK_SEEDS) --done $(SOAK_FILE) --jobs 2
	$(BIN)/python -m tests.sim --seeds 200 --canaries --jobs 2

soak-processes: ROUNDS = 20
soak-processes: rounds

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
	$(PIP_COMPILE) $(UPGRADE) --output-file requirements/foreign.txt requirements/foreign.in
	$(PIP_COMPILE) $(UPGRADE) --output-file requirements/suites.txt requirements/suites.in

java:
	@.ci/java

# Spark's Kafka connector, 62 MB, belongs to the set-up: nothing that is timed should wait for it.
$(CONNECTOR): $(STAMP) | java
	@echo "Fetching Spark's Kafka connector"
	@$(BIN)/python -m odradek.spark_jobs.session > $@.log 2>&1 || { cat $@.log >&2; exit 1; }
	@touch $@

# And so does Apache Kafka, with its classes made ready: its nodes start with a quarter less work.
$(KAFKA): $(STAMP) | java
	@echo "Fetching Apache Kafka"
	@$(BIN)/python -m processes.apache_kafka > $@.log 2>&1 || { cat $@.log >&2; exit 1; }
	@touch $@

# Faust, Quix Streams, kombu and kafka-python's own tests, which only `make compat` runs; and kcat.
$(FOREIGN): $(STAMP) requirements/foreign.txt .ci/kcat
	@echo "Fetching programs that have groups"
	@{ .ci/kcat && $(BIN)/python -m processes.foreign_programs; } > $@.log 2>&1 || { cat $@.log >&2; exit 1; }
	@touch $@

# Pytest rewrites the assertions of 700 modules, 12 s of processor, and keeps them. Four processes that begin together
# would each do it.
$(COLLECTED): $(STAMP)
	@echo "Compiling the tests"
	@$(BIN)/python -m pytest tests --collect-only -qq > $@.log 2>&1 || { cat $@.log >&2; exit 1; }
	@touch $@

# Stale is also: moved or copied from elsewhere, or made by a Python that is gone.
ifneq ($(shell { cat $(STAMP) && $(BIN)/python -c ''; } 2>/dev/null || echo stale),$(CURDIR))
$(STAMP): FORCE
endif
$(STAMP): pyproject.toml requirements/dev.txt .ci/venv
	@.ci/venv $(VENV) $(STAMP)
