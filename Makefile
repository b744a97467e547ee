# Every command of the project; `make` alone lists them. Nothing is installed outside $(VENV) and target/.

VENV ?= .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1 \
	&& { echo $$python; break; }; done)
TARGET ?= read
SECONDS ?= 60
DIR ?= ../shared/vectors
ONLY ?=
COUNT ?=
ALSO ?=
# For recipes of this file, not for the programs that they run: tests ask make itself what it would do.
unexport ALSO
PYSPARK ?= 4.0.1
PYARROW ?= 16.1.0

ENGINE_SOURCES := Cargo.toml Cargo.lock pyproject.toml \
	$(shell find rust \( -name '*.rs' -o -name '*.toml' \) -not -path '*/tests/*' -not -path '*/examples/*')
PYTHON_SOURCES := $(shell find python -name '*.py' -o -name '*.pyi' -o -name py.typed)
# All crates that run without Python, together: of one alone, dependencies have fewer features and are built again.
CARGO_TEST := cargo test --quiet --locked --workspace $(patsubst %,--exclude %,ottla-py-batches ottla-py-logs ottla-py-plane ottla-py)
# How two cores are kept at work.
TWO_BY_TWO := --jobs 2 --output-sync=target
MATURIN = env -u CONDA_PREFIX VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin

# Every pip, also the one maturin calls, keeps to the pinned versions.
export PIP_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_QUIET := 1
# Of the theme, about its successor: nothing that a build can do about.
export NO_MKDOCS_2_WARNING := 1
# Images of Python may ask for no bytecode: then each of a thousand starts compiles everything anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
.PHONY: help demo test test-all build-of-tests test-of-spark test-of-history test-of-docstrings test-of-python test-spark spark-of-tables test-tables simulate hostile kills client-on-kafka power-cuts vectors check check-of-rust check-of-python build develop wheel wheels musl-python licences deny docs bench bench-growth bench-scaling bench-java bench-spark bench-kafka bench-broker bench-client bench-output bench-failures \
	bench-guard count-instructions bench-compare fuzz mutants mutants-rust mutants-python ci clean prerequisites

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# The audit's own status tells what it found; here a crash alone is a failure, which has status 1 too.
demo: $(VENV)/.engine ## from a bare checkout: build, then audit examples/data
	@echo "$$ $(BIN)/ottla audit examples/data"
	@$(BIN)/python -c 'import sys; from ottla.cli import run; \
		sys.exit(run(["audit", "examples/data"]) not in (0, 1, 2))'

test: $(VENV)/.engine $(VENV)/.dev ## the fast tests of both languages
	$(CARGO_TEST)
	$(BIN)/pytest -q

build-of-tests:
	$(CARGO_TEST) --no-run

# What compares times comes first, with nothing beside it. The rest keeps two cores at work: Spark mostly waits for a JVM,
# and each worker takes whole files, so that what a file's tests share is made once.
test-all: $(VENV)/.release $(VENV)/.dev dist/.built ## every test, doctest and example
	$(CARGO_TEST) -- --include-ignored
	$(BIN)/pytest -q -m measures --durations 10 -rs
	$(MAKE) $(TWO_BY_TWO) test-of-spark test-of-history test-of-docstrings test-of-python $(ALSO)

test-of-spark:
	$(BIN)/pytest -q -m "spark and not measures" --durations 10 -rs

test-of-history:
	PROPTEST_CASES=10000 $(CARGO_TEST) --test leader_history

test-of-docstrings:
	$(BIN)/pytest -q -m "" --doctest-modules python/ottla

test-of-python:
	$(BIN)/pytest -q -n 2 --dist loadfile -m "not spark and not tables and not measures" --durations 10 -rs

# Another PySpark than the pinned one has an environment of its own; the engine serves any Python.
SPARK_VENV = $(VENV)-spark-$(PYSPARK)
test-spark: $(VENV)/.engine $(SPARK_VENV)/.done ## tests/spark with another PySpark: PYSPARK=4.0.1 PYARROW=16.1.0
	PYTHONPATH=python $(SPARK_VENV)/bin/python -m pytest -q -m "spark and not slow" tests/spark --durations 10

# Delta and Iceberg serve one PySpark: that of the jars in tests/support/table_streams.py.
TABLES_PYSPARK := 4.1.4
TABLES ?= tables
test-tables: $(VENV)/.engine spark-of-tables ## streams into Delta and Iceberg, killed: needs Java 17 and Maven
	PYTHONPATH=python $(VENV)-spark-$(TABLES_PYSPARK)/bin/python -m pytest -q -m "$(TABLES)" tests/spark/tables --durations 10

spark-of-tables:
	@$(MAKE) $(VENV)-spark-$(TABLES_PYSPARK)/.done PYSPARK=$(TABLES_PYSPARK)

SEEDS ?= 10000
SERVED ?= 200
simulate: $(VENV)/.engine $(VENV)/.dev ## brokers and clients under many seeds, and mutants of a broker: SEEDS=10000, SERVED=200 in real time
	OTTLA_SIMULATIONS=$(SEEDS) OTTLA_WORLDS=$(SEEDS) OTTLA_SERVED_SEEDS=$(SERVED) $(BIN)/pytest -q -m "" tests/simulation \
	    tests/client/simulation tests/client/consumer/test_many_worlds.py

FRAMES ?= 1000000
hostile: $(VENV)/.engine $(VENV)/.dev ## malformed frames by the million at a served broker, a client beside them: FRAMES=1000000
	OTTLA_HOSTILE_FRAMES=$(FRAMES) $(BIN)/pytest -q -m slow tests/net/test_hostile_flood.py

KILLS ?= 300
kills: $(VENV)/.engine $(VENV)/.dev ## a broker killed in the midst of real clients, many times: KILLS=300
	OTTLA_KILLS=$(KILLS) $(BIN)/pytest -q -m slow tests/interop/test_killed_broker.py

MEGABYTES ?= 1000
client-on-kafka: KILLS = 10
client-on-kafka: $(VENV)/.engine $(VENV)/.dev ## the client with Apache Kafka at full size: MEGABYTES=1000 KILLS=10 (needs Java 17 and Maven)
	OTTLA_KAFKA_MEGABYTES=$(MEGABYTES) OTTLA_KAFKA_KILLS=$(KILLS) $(BIN)/pytest -q -s -m slow --durations 10 \
	    $(addprefix tests/interop/,test_client_on_kafka.py test_refused_by_kafka.py test_transactions_on_kafka.py \
	    test_forgotten_by_kafka.py test_groups_on_kafka.py test_client_on_killed_kafka.py)

CUTS ?= 500
power-cuts: $(VENV)/.engine $(VENV)/.dev ## power cuts under a broker whose writes and syncs are recorded: CUTS=500
	OTTLA_CUTS=$(CUTS) $(BIN)/pytest -q -m slow tests/interop/test_power_cuts.py

vectors: $(VENV)/.engine $(VENV)/.dev ## Kafka's own answers, a table by class: DIR=../shared/vectors
	PYTHONPATH=tests $(BIN)/python -m support.vectors $(DIR)

check: check-of-rust check-of-python ## formatters, linters, types, import rules, tidiness

check-of-rust:
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy --quiet --locked --workspace --all-targets -- -D warnings

check-of-python: $(VENV)/.engine $(VENV)/.dev
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest --mypy-config-file pyproject.toml ottla._engine
	$(BIN)/lint-imports
	$(BIN)/pytest -q tests/test_tidy.py tests/test_structure.py

build: $(VENV)/.release ## the extension in place, optimised

develop: ## the extension in place, quick to build, with debug assertions
	@if test -e $(VENV)/.release; then rm -f $(VENV)/.release $(VENV)/.engine; fi
	@$(MAKE) $(VENV)/.engine

wheel: dist/.built ## the abi3 wheel of this machine, in dist/; on Linux for those with an older libc, too

wheels: $(VENV)/.zig $(VENV)/.dev ## wheels for every Linux, checked and tried, in dist/: ONLY=aarch64-musllinux
	@rm -f dist/.built
	@$(BIN)/python -m release.wheels $(ONLY)
	$(BIN)/pytest -q -m "" -rs tests/packaging/test_wheel.py tests/packaging/test_wheel_contents.py \
	    tests/packaging/test_foreign_machines.py

musl-python: $(VENV)/.zig ## a Python on musl in target/musl, for `make wheels` to try its wheel on: SOURCE=Python-3.13.15.tar.xz, a path or URL
	$(if $(SOURCE),,$(error name the sources of CPython: make musl-python SOURCE=Python-3.13.15.tar.xz))
	@$(BIN)/python -m release.musl_python $(SOURCE)

licences: $(VENV)/.dev ## THIRD-PARTY-LICENSES.txt, of what a wheel holds
	@$(BIN)/python -m release.licences

docs: $(VENV)/.engine $(VENV)/.docs ## the documentation site, in target/site: needs Python 3.11
	@$(BIN)/python -m mkdocs build >target/docs.log 2>&1 || { cat target/docs.log; exit 1; }
	@$(BIN)/python -m release.site.links target/site

# The database of advisories is not to be had everywhere; all else needs no network.
deny: ## licences, sources, duplicates and advisories of crates: needs cargo-deny
	@command -v cargo-deny >/dev/null || { echo "cargo-deny is missing: cargo install cargo-deny" >&2; exit 1; }
	cargo deny --locked --offline check --deny warnings licenses bans sources
	@if cargo deny fetch db 2>target/deny.log; then cargo deny --locked check advisories; \
		else echo "Advisories were not looked at, their database cannot be fetched:"; tail -n 3 target/deny.log; fi

SCALE ?= 1
bench: $(VENV)/.release $(VENV)/.dev ## the speed tables, benches/results/ and docs/speed.svg: SCALE=0.1 on a small machine
	$(BIN)/python -m benches.table --scale $(SCALE)

bench-growth: $(VENV)/.release $(VENV)/.dev ## what one more of anything costs an audit, in instructions: needs valgrind
	$(BIN)/python -m benches.growth

bench-scaling: $(VENV)/.release $(VENV)/.dev ## an audit of 100,000 small partitions with one thread and with two
	$(BIN)/python -m benches.scaling

bench-java: $(VENV)/.release $(VENV)/.dev ## a leader's decisions beside Java's: needs Java 17 and Maven
	$(BIN)/python -m benches.table --java

bench-spark: $(VENV)/.release $(VENV)/.dev ## speed and memory on Spark, docs/spark/: needs Java 17
	$(BIN)/python -m benches.spark

bench-kafka: $(VENV)/.release $(VENV)/.dev ## a real broker's topic by Spark's Kafka source and by Ottla: needs Java 17 and Maven
	PYTHONPATH=tests $(BIN)/python -m benches.spark.kafka

bench-broker: $(VENV)/.release $(VENV)/.dev ## the broker beside kfake and librdkafka's mock: needs Go
	$(BIN)/python -m benches.broker --page

bench-client: $(VENV)/.release $(VENV)/.dev ## the client's speed beside aiokafka, confluent-kafka and kafka-python, docs/client/speed.md
	$(BIN)/python -m benches.client --page

bench-output: $(VENV)/.release $(VENV)/.dev ## what the results of an audit cost to write, in instructions: needs valgrind
	$(BIN)/python -m benches.output

bench-failures: $(VENV)/.engine $(VENV)/.dev ## what clients do in twenty failures, docs/client/failures.md: needs Java 17 and Maven
	PYTHONPATH=tests $(BIN)/python -m benches.failures

bench-guard: $(VENV)/.release $(VENV)/.dev ## fail where a ratio against a peer has fallen, or a count has grown: ONLY=ratios
	$(BIN)/python -m benches.guard $(if $(ONLY),--only $(ONLY))

count-instructions: $(VENV)/.release $(VENV)/.dev
	$(BIN)/python -m benches.guard --only counts

bench-compare: $(VENV)/.release $(VENV)/.dev ## this tree against another revision: REV=…, ONLY=counts for instructions
	$(if $(REV),,$(error name the other revision: make bench-compare REV=HEAD~1))
	$(BIN)/python -m benches.compare $(REV) $(if $(ONLY),--only $(ONLY))

fuzz: ## one fuzz target for a while: TARGET=read SECONDS=60
	@command -v cargo-fuzz >/dev/null || { echo "cargo-fuzz is missing: cargo install cargo-fuzz" >&2; exit 1; }
	@mkdir -p fuzz/corpus/$(TARGET)
	cargo +nightly fuzz run $(TARGET) fuzz/corpus/$(TARGET) fuzz/seeds/$(TARGET) -- -max_total_time=$(SECONDS)

# A mutant that lives is something to read (CONTRIBUTING.md tells how), and no failure of the command.
MUTATED := ottla-log ottla-leader ottla-plane ottla-audit
mutants: mutants-rust mutants-python ## changes that no test notices, in both languages: takes days

mutants-rust: ## of the crates that hold Kafka's rules: ONLY=rust/ottla-log/src/producers/*.rs
	@command -v cargo-mutants >/dev/null \
		|| { echo "cargo-mutants is missing: cargo install cargo-mutants" >&2; exit 1; }
	cargo mutants --output target $(MUTATED:%=--package %) $(MUTATED:%=--test-package %) \
		$(ONLY:%=--file %) -- --locked --tests || test $$? -eq 2 -o $$? -eq 3

mutants-python: $(VENV)/.engine $(VENV)/.dev ## in Python: ONLY=python/ottla/logs COUNT=50
	PYTHONPATH=tests $(BIN)/python -m support.mutants $(ONLY) $(if $(COUNT),--count $(COUNT))

# Side by side: packages come over the network, and linking an extension as a whole takes one core, as checking types does.
ci: ## what .ci/run calls
	$(MAKE) --jobs 3 --output-sync=target $(VENV)/.dev spark-of-tables build-of-tests
	$(MAKE) --jobs 3 --output-sync=target $(VENV)/.release dist/.built check-of-rust
	@$(BIN)/python -m benches.machine
	$(MAKE) test-all ALSO="test-tables count-instructions check-of-python" TABLES="tables and not slow"
	$(MAKE) bench-guard ONLY=ratios
	@if command -v cargo-deny >/dev/null; then $(MAKE) deny; \
		else echo "cargo-deny is missing: tests/packaging/test_crates.py alone held crates to deny.toml"; fi
	$(MAKE) demo

clean: ## remove everything that was built
	rm -rf $(VENV) $(VENV)-spark-* target dist fuzz/target .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -rf .benchmarks .import_linter_cache benches/results python/ottla/_engine*.so
	find python tests benches examples -name __pycache__ -type d -exec rm -rf {} +

# One line that names what is missing and what to install.
define missing
if ! command -v cc >/dev/null 2>&1; then
	echo "no C compiler: install gcc or clang, as the command cc";
elif ! command -v cargo >/dev/null 2>&1 || ! command -v rustc >/dev/null 2>&1; then
	echo "no Rust: install cargo and rustc 1.90 or newer, for example with rustup";
elif ! rustc --version | awk '{split($$2, v, "."); exit !(v[1] > 1 || v[2] >= 90)}'; then
	echo "$$(rustc --version | cut -d ' ' -f 1,2) is too old: install Rust 1.90 or newer, for example with rustup update";
elif test -z "$(PYTHON)"; then
	echo "no Python 3.10 or newer as python3 or python3.10 to python3.14: install one";
elif ! $(PYTHON) -c 'import venv, ensurepip' >/dev/null 2>&1; then
	echo "$(PYTHON) has no venv module: install it (on Debian and Ubuntu: python3-venv)";
fi
endef

prerequisites:
	$(eval MISSING := $(shell $(missing)))
	@:$(if $(MISSING),$(error $(MISSING)))

$(VENV)/.base: constraints.txt | prerequisites
	@echo "Python environment: $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install maturin
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	@echo "Development tools: constraints.txt"
	@$(BIN)/python -m pip install -r constraints.txt
	@touch $@

$(SPARK_VENV)/.done: constraints.txt | prerequisites
	@echo "Python environment: $(SPARK_VENV)"
	@test -x $(SPARK_VENV)/bin/python || $(PYTHON) -m venv $(SPARK_VENV)
	@grep -Ev '^(pyspark|py4j|numpy|pyarrow|pandas|polars|mypy|ruff|maturin)==' constraints.txt > $(SPARK_VENV)/constraints.txt
	@PIP_CONSTRAINT= $(SPARK_VENV)/bin/python -m pip install -r $(SPARK_VENV)/constraints.txt \
		"pyspark[connect]==$(PYSPARK)" "pyarrow==$(PYARROW)" "pandas<3"
	@touch $@

# Any engine that is up to date serves the demo and the tests: this one is built where there is none.
$(VENV)/.engine: $(VENV)/.base $(ENGINE_SOURCES) | prerequisites
	@echo "Engine: quick build (the first takes a minute or two)"
	@rm -f $(VENV)/.release
	@$(MATURIN) develop --locked --quiet
	@touch $@

# What is measured, and what a wheel holds: optimised as a whole.
$(VENV)/.release: $(VENV)/.base $(ENGINE_SOURCES) | prerequisites
	@echo "Engine: optimised build (the first takes some minutes)"
	@rm -f $(VENV)/.engine
	@$(MATURIN) develop --release --locked --quiet
	@touch $(VENV)/.engine $@

# Zig is the compiler of a wheel for Linux, so that it asks for nothing that this machine has and others lack.
$(VENV)/.zig: $(VENV)/.base
	@$(BIN)/python -m pip install ziglang auditwheel
	@touch $@

# Ruff formats the signatures.
$(VENV)/.docs: $(VENV)/.base
	@$(BIN)/python -m pip install mkdocs-material mkdocstrings-python ruff
	@touch $@

dist/.built: $(VENV)/.zig $(ENGINE_SOURCES) $(PYTHON_SOURCES) README.md LICENSE THIRD-PARTY-LICENSES.txt release/wheels.py | prerequisites
	@rm -rf dist
	@$(BIN)/python -m release.wheels native
	@touch $@
