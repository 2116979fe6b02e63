# The front door. `make` builds, `make demo` shows the main job, `make check` passes the tests. `make demo` and `make check` install the
# packages that are missing, and say which (DEPS=no: they only name the command); no other rule installs packages.
PREFIX ?= /usr/local
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
# Warnings are errors in CI alone. CMAKE_ARGS go to cmake: make CMAKE_ARGS=-DTORC_XDS=OFF.
WERROR ?= $(if $(CI),ON,OFF)
DEPS ?= yes
CMAKE_ARGS ?=
BUILD := build
ASAN := build-asan
TSAN := build-tsan
FUZZ := build-fuzz
COVERAGE := build-coverage
TIME ?= 60
GENERATOR := $(if $(wildcard $(BUILD)/CMakeCache.txt),,-G Ninja)
CONFIGURE = cmake -S . -B $(BUILD) $(GENERATOR) -DCMAKE_BUILD_TYPE=RelWithDebInfo -DTORC_WERROR=$(WERROR) -DCMAKE_INSTALL_PREFIX=$(PREFIX) $(CMAKE_ARGS) >/dev/null
INSTALL_DEPS := scripts/install-deps $(if $(filter no,$(DEPS)),--check)

.PHONY: all demo check check-release check-more sim sim-corpus sim-mutants regressions fuzz interop bench bench-check install uninstall dist tidy coverage reference docs deps-build deps-named deps-check abi-dump format clean
all: $(BUILD)/build.ninja
	@$(if $(CMAKE_ARGS),$(CONFIGURE))
	@cmake --build $(BUILD) -j $(JOBS) --target torc_products

$(BUILD)/build.ninja:
	@scripts/install-deps --check build
	@$(CONFIGURE)

deps-build:
	@$(INSTALL_DEPS) build

# What other rules need: missing packages are named.
deps-named:
	@scripts/install-deps --check build check

deps-check:
	@$(INSTALL_DEPS) build check

demo: deps-build
	@$(CONFIGURE)
	@cmake --build $(BUILD) -j $(JOBS) --target torc_command
	@$(BUILD)/torc demo

# check-release, then unit and e2e tests again under the address and undefined-behaviour sanitizers, and the tests of
# threads (label tsan) under the thread sanitizer. Before the last run of ctest comes the table of the cases that the
# release tests executed (test/cases.md), so that ctest's closing lines end the output. More tests than there are cores run
# at a time, since most tests wait for a while. The sanitizers' builds have line numbers alone: they link a quarter faster.
check: check-release
	@cmake --preset asan -DTORC_WERROR=$(WERROR) >/dev/null
	cmake --build $(ASAN) -j $(JOBS)
	ctest --test-dir $(ASAN) -j $$(($(JOBS) + 2)) -L 'unit|model|e2e' --output-on-failure
	@cmake --preset tsan -DTORC_WERROR=$(WERROR) >/dev/null
	cmake --build $(TSAN) -j $(JOBS) --target torc_tsan_tests
	@scripts/case-table $(BUILD)/cases
	ctest --test-dir $(TSAN) -j $(JOBS) -L tsan --output-on-failure

# Release build: lint, unit, e2e and interop tests.
check-release: deps-check
	@$(CONFIGURE)
	cmake --build $(BUILD) -j $(JOBS)
	@rm -rf $(BUILD)/cases
	ctest --test-dir $(BUILD) -j $$(($(JOBS) + 1)) -LE interop --output-on-failure
	ctest --test-dir $(BUILD) -j $$(($(JOBS) + 1)) -L interop --output-on-failure

# What takes too long for make check: hours, or the parts of it in PARTS (scripts/check-more names them).
check-more: deps-named
	@JOBS=$(JOBS) scripts/check-more $(PARTS)

# Each fuzz target (or those in TARGETS) for TIME seconds, one after the other, from the committed corpus. What it finds
# stays in build-fuzz/found/NAME; new inputs that reach further, in build-fuzz/corpus/NAME.
fuzz:
	@scripts/install-deps --check build check fuzz
	@cmake --preset fuzz -DTORC_WERROR=$(WERROR) >/dev/null
	cmake --build $(FUZZ) -j $(JOBS) --target torc_fuzzers
	@scripts/fuzz $(FUZZ) $(TIME) $(TARGETS)

# The deterministic world (docs/internals/simulation.md): fresh seeds for TIME seconds. A seed that fails prints its replay.
sim: deps-named
	@$(CONFIGURE)
	@cmake --build $(BUILD) -j $(JOBS) --target sim
	@$(BUILD)/test/sim/sim --fresh --seconds $(TIME) --jobs $(JOBS)

# Searches for TIME seconds for runs that reach new code, and writes them to test/sim/corpus.txt, which sim_corpus performs. To be
# renewed when test/sim has changed: the same seed is another run then.
sim-corpus: deps-named
	@cmake -S . -B build-coverage-sim -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DTORC_SIM_COVERAGE=ON >/dev/null
	@cmake --build build-coverage-sim -j $(JOBS) --target sim
	@build-coverage-sim/test/sim/sim --guided test/sim/corpus.txt --seconds $(TIME) --jobs $(JOBS)

# Does it find known faults? Builds and searches each of test/sim/mutants.txt; about an hour.
sim-mutants: deps-named
	@python3 test/sim/mutants.py --source . --work build-mutants --jobs $(JOBS) --seconds $(TIME)

# Does each mended defect have a test? Undoes each mend of test/regressions/regressions.txt; its tests must fail.
regressions: deps-named
	@python3 test/regressions/regressions.py --source . --work build-mutants --jobs $(JOBS)

# Torc against programs of others, all of it: needs Go, Node and Python, and fails when one is missing.
interop: deps-named
	@$(CONFIGURE)
	@cmake --build $(BUILD) -j $(JOBS) --target torc_shared torc_command interop_client interop_server interop_agree interop_psm interop_stubs interop_json interop_stride interop_etcd interop_otlp
	@python3 test/interop/run.py --build $(BUILD) --strict

# Measures Torc against its peers: all subjects, then a table of the targets, and build/bench/results.json. What only
# peers need may be missing: they are named and left out.
bench: deps-named
	-@scripts/install-deps --check bench
	@$(CONFIGURE)
	@cmake --build $(BUILD) -j $(JOBS) --target bench_all
	@python3 bench/run.py --build $(BUILD)

# Instruction counts against the committed ones (a part of make check).
bench-check: deps-named
	@$(CONFIGURE)
	@cmake --build $(BUILD) -j $(JOBS) --target ratchet
	@python3 bench/ratchet/check.py --build $(BUILD)

# One subject (make bench-ring); BENCH_ARGS go to the program.
bench-%: deps-named
	@$(CONFIGURE)
	@cmake --build $(BUILD) -j $(JOBS) --target bench_$*
	@$(BUILD)/bench/bench_$* $(BENCH_ARGS)

install: all
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD) --prefix $(PREFIX)

# Removes what the last `make install` of this tree wrote.
uninstall:
	@DESTDIR=$(DESTDIR) cmake -DMANIFEST=$(BUILD)/install_manifest.txt -P cmake/uninstall.cmake

# The source release of the commit that is checked out, in build/dist (docs/internals/release.md).
dist:
	@scripts/dist

# Faults that clang-tidy finds in what is compiled (.clang-tidy has the list, and what is left out).
tidy: deps-named
	@cmake --preset release -DTORC_WERROR=$(WERROR) >/dev/null
	@cmake --build $(BUILD) -j $(JOBS) --target torc_protos protoc_gen_torc
	find src cmd -name '*.c' | sort | xargs -P $(JOBS) -n 8 $(shell command -v clang-tidy-14 || echo clang-tidy) -p $(BUILD) --quiet

# The share of src that unit and model tests reach, by gcov; fails below test/coverage.txt.
coverage: deps-named
	@cmake --preset coverage -DTORC_WERROR=$(WERROR) >/dev/null
	cmake --build $(COVERAGE) -j $(JOBS) --target torc_unit_tests torc_model_tests
	@find $(COVERAGE) -name '*.gcda' -delete
	ctest --test-dir $(COVERAGE) -j $(JOBS) -L 'unit|model' -LE fuzz --output-on-failure
	@scripts/coverage $(COVERAGE)

# The reference of the API, by Doxygen: build/reference/html/index.html.
reference:
	@scripts/reference $(BUILD)/reference

# The documentation as a site: build/docs/html/index.html, which needs no network and no server. A warning is an error.
docs:
	@scripts/install-deps --check docs
	@scripts/docs $(BUILD)/docs
	@echo $(BUILD)/docs/html/index.html

# Makes the ABI of include/torc the committed one (abi/): a change that CHANGELOG.md names.
abi-dump: deps-named
	@python3 test/lint/abi.py --source . --renew

format:
	@git ls-files '*.c' '*.h' '*.cc' | xargs $(shell command -v clang-format-14 || echo clang-format) -i

clean:
	@rm -rf $(BUILD) build-*


