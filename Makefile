# The front door. `make` builds, `make demo` shows the main job, `make check` passes the tests; each installs what it
# needs first (scripts/install-deps, only what is missing).
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
BUILD := build
ASAN := build-asan
FUZZ := build-fuzz
TIME ?= 60

.PHONY: all demo check fuzz bench bench-check install deps-build deps-check format clean
all: $(BUILD)/build.ninja
	@cmake --build $(BUILD) -j $(JOBS) --target torc_shared torc_static torc_command

$(BUILD)/build.ninja: deps-build
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null

deps-build:
	@scripts/install-deps build

deps-check:
	@scripts/install-deps build check

demo: all
	@$(BUILD)/torc demo

# Release build: lint, unit, e2e and interop tests, and the table of the cases that they covered. Then unit and e2e again
# under the address and undefined-behaviour sanitizers. ctest's closing lines come last.
check: deps-check
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null
	cmake --build $(BUILD) -j $(JOBS)
	@rm -rf $(BUILD)/cases
	ctest --test-dir $(BUILD) -j $(JOBS) -LE interop --output-on-failure
	ctest --test-dir $(BUILD) -L interop --output-on-failure
	@scripts/case-table $(BUILD)/cases
	@cmake --preset asan >/dev/null
	cmake --build $(ASAN) -j $(JOBS)
	ctest --test-dir $(ASAN) -j $(JOBS) -L 'unit|model|e2e' --output-on-failure

# Each fuzz target (or those in TARGETS) for TIME seconds, one after the other, from the committed corpus. What it finds
# stays in build-fuzz/found/NAME; new inputs that reach further, in build-fuzz/corpus/NAME.
fuzz:
	@scripts/install-deps build check fuzz
	@cmake --preset fuzz >/dev/null
	cmake --build $(FUZZ) -j $(JOBS) --target torc_fuzzers
	@scripts/fuzz $(FUZZ) $(TIME) $(TARGETS)

# Torc against programs of others, all of it: needs Go, Node and Python, and fails when one is missing.
interop: deps-check
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null
	@cmake --build $(BUILD) -j $(JOBS) --target torc_shared torc_command interop_client interop_agree interop_psm
	@python3 test/interop/run.py --build $(BUILD) --strict

# Measures Torc against its peers: all subjects, then a table of the targets, and build/bench/results.json. What only
# peers need may be missing: they are named and left out.
bench: deps-check
	-@scripts/install-deps bench
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null
	@cmake --build $(BUILD) -j $(JOBS) --target bench_all
	@python3 bench/run.py --build $(BUILD)

# Instruction counts against the committed ones (a part of make check).
bench-check: deps-check
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null
	@cmake --build $(BUILD) -j $(JOBS) --target ratchet
	@python3 bench/ratchet/check.py --build $(BUILD)

# One subject (make bench-ring); BENCH_ARGS go to the program.
bench-%: deps-build
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null
	@cmake --build $(BUILD) -j $(JOBS) --target bench_$*
	@$(BUILD)/bench/bench_$* $(BENCH_ARGS)

install: all
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD) --prefix $(PREFIX)

format:
	@git ls-files '*.c' '*.h' '*.cc' | xargs clang-format -i

clean:
	@rm -rf $(BUILD) build-*


