# Everything is set up inside the checkout: .venv, target, .concurve. `make help` lists the goals.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find instrument subjects native -name '*.rs' -o -name 'Cargo.toml' -o -name 'pyproject.toml' -o -path "*/data/*" -type f)
JAVA := subjects/mandelbrot-java
JAVA_SOURCES := $(JAVA)/pom.xml scripts/maven.sh $(shell find $(JAVA)/src subjects/mandelbrot/data -type f)
JAR := $(JAVA)/target/concurve-mandelbrot.jar
JAR_BUILT := $(JAVA)/target/concurve-mandelbrot-built.jar

# Cargo counts its jobs itself: make's own count does not reach it.
CARGO := env --unset=MAKEFLAGS --unset=MFLAGS cargo

# Checks the histories of clients with the Go module porcupine; without Go those tests are skipped.
CHECKER := build/histories-checker
CHECKER_SOURCES := $(wildcard tests/histories/checker/*) scripts/build-checker.sh

# Where cargo leaves the programs that the tests run.
CHECKED := $(CURDIR)/target/checked

export CONCURVE_DB ?= .concurve/concurve.db
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# So long each parser is fuzzed by make soak.
FUZZ_SECONDS ?= 600
# The same cases of the property tests everywhere; others: make test PROPTEST_RNG_SEED=7
export PROPTEST_RNG_SEED ?= 20261121
# Python keeps what it has compiled: else each of the thousands of processes that the tests start compiles
# all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help build wheels site check check-python check-rust programs test test-rust test-python test-java test-nobody checker bench coverage soak demo schemas lint format clean tools

help: ## List the goals
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

tools: # A missing tool is named with the command that installs it
	@scripts/check-tools.sh $(PYTHON)

# Without bytecode: Python compiles what is imported when it is, and that is a small part. Our own, and
# what a view imports, is compiled by `build`: where PYTHONDONTWRITEBYTECODE is set, each command would
# compile it again.
$(STAMPS)/venv: pyproject.toml constraints.txt | tools
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing the Python packages into $(VENV)"
	@$(BIN)/pip install --quiet --constraint constraints.txt hatchling editables maturin
	@$(BIN)/pip install --quiet --no-compile --constraint constraints.txt --no-build-isolation --editable '.[postgresql]'
	@$(BIN)/pip install --quiet --no-compile --constraint constraints.txt $$($(BIN)/python scripts/requirements.py dev)
	@mkdir -p $(STAMPS) && touch $@

# What the tests import is compiled once, and not by each of their processes at the same time.
$(STAMPS)/imported: $(STAMPS)/venv
	@$(BIN)/python tests/helpers/forked.py
	@$(BIN)/python -m pytest -qq --collect-only >/dev/null || true # told when the tests run
	@touch $@

# zig is 100 MB: where it cannot be had, build-wheels.sh does without, and says what that means.
$(STAMPS)/wheels: $(STAMPS)/venv
	@$(BIN)/pip install --quiet --constraint constraints.txt $$($(BIN)/python scripts/requirements.py wheels)
	@$(BIN)/pip install --quiet --constraint constraints.txt $$($(BIN)/python scripts/requirements.py manylinux) \
		&& touch $@ || echo "ziglang cannot be installed" >&2

$(STAMPS)/native: $(RUST_SOURCES) $(STAMPS)/venv
	@echo "compiling the native programs"
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pip install --quiet --no-build-isolation --no-deps --force-reinstall ./native
	@touch $@

$(JAR): $(JAVA_SOURCES)
	@echo "compiling the JVM kernel"
	@scripts/maven.sh "the JVM kernel" -DskipTests package
	@# Moved there whole: a JVM that runs the old one keeps that open and reads on.
	@if [ -e $(JAR_BUILT) ]; then cp $(JAR_BUILT) $@.new && mv -f $@.new $@; fi
	@test ! -e $@ || touch $@

$(CHECKER): $(CHECKER_SOURCES)
	@scripts/build-checker.sh $@

checker: $(CHECKER) # Of histories, for the tests

build: $(STAMPS)/venv $(STAMPS)/native $(JAR) ## Build everything; leaves .venv/bin/concurve
	@$(BIN)/python -m compileall -q src/concurve
	@$(BIN)/python -c "import numpy, concurve.cli.showing, concurve.brief"

demo: build ## Run the packaged study thread-scaling quickly, and write its report
	@mkdir -p .concurve
	@$(BIN)/concurve run thread-scaling --effort quick --export-html .concurve/thread-scaling.html

wheels: $(STAMPS)/wheels $(JAR) ## Build the wheels of both distributions into dist/, the programs as a release
	@scripts/build-wheels.sh $(BIN)

site: $(STAMPS)/venv ## Write the documentation as a site to build/site; a broken link fails
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "open $(CURDIR)/build/site/index.html"

# Lint mostly takes one CPU: the tests run beside it.
check: $(STAMPS)/venv ## Lint, and run the tests that need no server and no program (two minutes)
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target --keep-going lint check-python check-rust

check-python: $(STAMPS)/venv
	@$(BIN)/python -m pytest -q --numprocesses 2 -m "not real and not simulation and not fuzz and not postgresql and not soak"

check-rust: | tools
	@$(CARGO) test --workspace --lib --profile checked --quiet -- --skip simulated

# Side by side: an installation waits for the network, and tests wait for processes.
test: ## Run the tests of every language
	@$(MAKE) --no-print-directory --jobs=3 $(STAMPS)/imported programs $(JAR) $(CHECKER)
	@echo "running the tests; those of each language are printed when they end (18 minutes on two CPUs)"
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target --keep-going test-rust test-python test-java

# The tests and the programs that they start, compiled once, with the checks of a debug build.
programs: | tools
	@echo "compiling the tests and their programs"
	@$(CARGO) test --workspace --profile checked --quiet --no-run

# A time limit, so that what is printed names the test that hangs.
test-rust: programs
	@timeout --kill-after=60 30m $(CARGO) test --workspace --profile checked --quiet

# Five files at a time, because tests wait for processes; a file's tests share servers. The longest begin
# first (tests/conftest.py).
test-python: $(STAMPS)/venv programs $(JAR) $(CHECKER)
	@export CONCURVE_NATIVE=$(CHECKED); \
	$(BIN)/python -m pytest -q --numprocesses 5 --dist loadfile --no-loadscope-reorder --durations=10 --durations-min=5 || \
	{ echo "== Each test that failed runs once more, by itself. One that passes now is racy: mend it." && \
	$(BIN)/python -m pytest -v --last-failed --last-failed-no-failures none; }

test-java: $(JAR)
	@rm -rf $(JAVA)/target/surefire-reports
	@scripts/maven.sh "the tests of the JVM kernel" test
	@cat $(JAVA)/target/surefire-reports/*.txt 2>/dev/null | grep 'Tests run' || true

# As root; the same tests as those of make test, and what each skips is told with its reason.
test-nobody: programs $(JAR) $(CHECKER) ## Run the tests as an ordinary user in a fresh home (as root)
	@scripts/test-as-nobody.sh

bench: build ## Print the figures that the project promises (minutes; on a quiet machine)
	@$(BIN)/python benches/run_all.py

coverage: build ## Simulate how often what is printed holds the truth; rewrites docs/method/coverage.md
	@$(BIN)/python benches/coverage.py --write

soak: build wheels $(CHECKER) ## Run what takes long
	@$(BIN)/python -m pytest -q -m soak
	@cargo test --profile checked --quiet -p concurve-records --test records -- --ignored --nocapture damage:: simulation::
	@scripts/fuzz.sh $(FUZZ_SECONDS)
	@$(MAKE) --no-print-directory test-nobody

schemas: $(STAMPS)/venv ## Write the JSON Schemas from the types
	@$(BIN)/python scripts/generate_schemas.py

lint: $(STAMPS)/venv ## Check formatting, lint, types and the contract of imports
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python scripts/import_circles.py
	@$(CARGO) fmt --all --check
	@# The profile of the tests: what the compiler itself runs, and the C of others, is there already.
	@$(CARGO) clippy --workspace --all-targets --profile checked --quiet -- -D warnings

format: $(STAMPS)/venv ## Format all code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix --quiet .
	@cargo fmt --all

clean: ## Remove what was built; keeps the stored runs
	rm -rf $(VENV) target build dist $(JAVA)/target
