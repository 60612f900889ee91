# The front door; Meson does the work. `make help` lists what there is.

BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
WERROR  ?= false
SEEDS   ?= 1000000
FROM    ?= 1
MINUTES ?= 10
JOBS    ?= $(shell nproc)
TEST_JOBS ?= $(shell expr $$(nproc) '*' 3)
FUZZ_SECONDS ?= 600
TARGETS ?=

ASAN   = $(BUILD)-asan
TSAN   = $(BUILD)-tsan
CLANG  = $(BUILD)-clang
FUZZ   = $(BUILD)-fuzz
STRICT = $(BUILD)-strict
RELEASE = $(BUILD)-release
# The build that `make install` installs.
INSTALLED ?= $(RELEASE)
NINJA  = ninja --quiet -C
# Three times as many as there are processors: many tests wait for a server, a timer or a disk.
MESON_TEST = $(MESON_BUILD_TEST) --no-rebuild
MESON_BUILD_TEST = meson test --print-errorlogs --num-processes $(TEST_JOBS)
LOG = meson-logs/testlog.json
NOT_QUICK = long fault redis again outside browser packages
C_FILES = $(shell git ls-files -co --exclude-standard '*.c' '*.h')

# gcc's thread sanitizer needs its addresses where it expects them. It runs the suites with threads alone,
# and meson builds what these need.
FIXED_ADDRESSES = $(shell setarch -R true 2>/dev/null && echo setarch -R)
TSAN_TEST = TSAN_OPTIONS="suppressions=$(CURDIR)/tools/tsan.suppress $$TSAN_OPTIONS" \
	$(FIXED_ADDRESSES) $(MESON_BUILD_TEST) -C $(TSAN)

.PHONY: build
build: $(BUILD)/build.ninja ## build everything into build/ (this is the default)
	@$(NINJA) $(BUILD)

.PHONY: release
release: $(RELEASE)/build.ninja ## build what is installed, optimised when it is linked, into build-release/
	@$(NINJA) $(RELEASE)

.PHONY: run
run: build ## build and start the server on ./data: SLUICE_LISTEN= and the like
	$(BUILD)/sluiced

.PHONY: demo
demo: build ## build and watch the executor keep order
	$(BUILD)/sluice demo

# The tests without sanitizers wait for servers and timers much of the time; the build for ASan runs meanwhile.
.PHONY: test
test: setup-test ## all tests but the long ones, also under the sanitizers
	@$(MAKE) --no-print-directory build $(ASAN)/build.ninja $(TSAN)/build.ninja
	@rm -f $(BUILD)/$(LOG) $(ASAN)/$(LOG) $(TSAN)/$(LOG)
	@nice -n 19 $(NINJA) $(ASAN) & building=$$!; \
	for kind in plain:$(BUILD) asan:$(ASAN) tsan:$(TSAN); do \
		[ $${kind%:*} = plain ] || wait $$building || true; \
		$(MAKE) --no-print-directory test-$${kind%:*} || tools/test-again $${kind#*:} || \
			tools/test-summary $${kind#*:} || true; \
	done
	@tools/test-summary $(BUILD) $(ASAN) $(TSAN)

.PHONY: test-quick
test-quick: setup-test build ## the daily loop: no sanitizers, servers of others, browser or faults; under 4 minutes
	@status=0; \
	$(MESON_TEST) -C $(BUILD) $(addprefix --no-suite ,$(NOT_QUICK)) || status=1; \
	tools/test-summary $(BUILD) || status=1; \
	exit $$status

.PHONY: test-browser
test-browser: setup-test build ## the console in a real Chromium; screenshots in build/screenshots
	@$(MESON_TEST) -C $(BUILD) --suite browser

.PHONY: test-long
test-long: setup-test build $(ASAN)/build.ninja $(TSAN)/build.ninja ## the long tests, and the planted breaks
	@$(NINJA) $(ASAN)
	@status=0; \
	$(MESON_TEST) -C $(BUILD) --suite long || status=1; \
	$(MESON_TEST) -C $(ASAN) --suite long || status=1; \
	$(TSAN_TEST) --suite threads-long || status=1; \
	tests/breaks/run || status=1; \
	exit $$status

.PHONY: soak
soak: build ## schedules of the simulator, and a tenth as many with moves and with deletes: SEEDS=1000000 FROM=1 on both cores
	@status=0; \
	$(BUILD)/tests/sim/sim --from $(FROM) --seeds $(SEEDS) --jobs $(JOBS) || status=1; \
	$(BUILD)/tests/sim/sim --moves --from $(FROM) --seeds $$((($(SEEDS) + 9) / 10)) \
		--jobs $(JOBS) || status=1; \
	$(BUILD)/tests/sim/sim --forgets --from $(FROM) --seeds $$((($(SEEDS) + 9) / 10)) \
		--jobs $(JOBS) || status=1; \
	$(BUILD)/tests/sim/sim --forgets --moves --from $(FROM) --seeds $$((($(SEEDS) + 19) / 20)) \
		--jobs $(JOBS) || status=1; \
	$(MAKE) --no-print-directory soak-stores SEEDS=$$((($(SEEDS) + 4) / 5)) || status=1; \
	exit $$status

# A test that is run with -d has no time limit.
.PHONY: soak-stores
soak-stores: build ## schedules of a line, of the nodes of a store, of links, and a tenth as many of whole nodes: SEEDS=200000 FROM=1
	@status=0; export LINE_FROM=$(FROM) MEMBERS_FROM=$(FROM) NODES_FROM=$(FROM) LINKS_FROM=$(FROM); \
	export LINE_SEEDS=$(SEEDS) MEMBERS_SEEDS=$(SEEDS) NODES_SEEDS=$$((($(SEEDS) + 9) / 10)) LINKS_SEEDS=$(SEEDS); \
	for sim in line_sim members_sim nodes_sim links_sim; do \
		for test in $$($(BUILD)/tests/sim/test_$$sim -l); do \
			$(BUILD)/tests/sim/test_$$sim -d $$test || status=1; \
		done; \
	done; \
	exit $$status

.PHONY: fuzz
fuzz: $(FUZZ)/build.ninja ## libFuzzer on every parser and a whole server: FUZZ_SECONDS=600 TARGETS=
	@$(NINJA) $(FUZZ) fuzzers
	tools/fuzz --build $(FUZZ) --seconds $(FUZZ_SECONDS) --jobs $(JOBS) $(TARGETS)

.PHONY: torture
torture: build ## a server in all kinds of trouble, every engine: MINUTES=10 each
	$(BUILD)/sluice torture --minutes $(MINUTES) --faults all
	$(BUILD)/sluice torture --minutes $(MINUTES) --faults all --engine memory
	$(BUILD)/sluice torture --minutes $(MINUTES) --faults all --engine redis
	$(BUILD)/sluice torture --minutes $(MINUTES) --faults all --engine redis --nodes 3 --stores 2
	$(MAKE) torture-store MINUTES=$(MINUTES)

.PHONY: torture-store
torture-store: setup-test build ## servers on each kind of store in all kinds of trouble at once: MINUTES=10
	$(BUILD)/sluice torture --minutes $(MINUTES) --faults all --store file:///var/tmp --nodes 3
	tests/lib/postgres.py sh -c '$(BUILD)/sluice torture --minutes $(MINUTES) --faults all --store "$$SLUICE_TEST_POSTGRES" --nodes 2'
	tests/lib/rgw.py sh -c '$(BUILD)/sluice torture --minutes $(MINUTES) --faults all --store "$$SLUICE_TEST_S3" --nodes 2'
	tests/lib/azurite.py sh -c '$(BUILD)/sluice torture --minutes $(MINUTES) --faults all --store "$$SLUICE_TEST_AZURE" --nodes 2'

.PHONY: bench
bench: build ## measure the library and the server beside bare references
	$(BUILD)/sluice bench exec
	$(BUILD)/sluice bench pqueue
	$(BUILD)/sluice bench raw
	$(BUILD)/sluice bench enqueue --batch 100
	$(BUILD)/sluice bench cycle --batch 100
	$(BUILD)/sluice bench cycle
	$(BUILD)/sluice bench latency
	$(BUILD)/sluice bench backlog --messages 10000000 --batch 100
	bench/console/run $(BUILD)/sluiced $(BUILD)/sluice

.PHONY: bench-instructions
bench-instructions: setup-bench build ## count the instructions of a message, beside their bounds: INSTRUCTIONS='--before DIR'
	bench/instructions/run --build $(BUILD) $(INSTRUCTIONS)

.PHONY: bench-shards
bench-shards: setup-test build ## measure shards in Redis: beside the engine alone, one and three, stats: SHARDS='--seconds 1'
	bench/shards/run --build $(BUILD) $(SHARDS)

.PHONY: bench-stores
bench-stores: setup-bench build ## measure a log in a store: beside a folder, far away, after a takeover: STORES='--seconds 1'
	bench/stores/run --build $(BUILD) $(STORES)

.PHONY: bench-postgres
bench-postgres: setup-peers build ## measure the PostgreSQL store beside a plain queue in PostgreSQL: POSTGRES='--seconds 1'
	bench/stores/postgres --build $(BUILD) $(POSTGRES)

.PHONY: bench-table
bench-table: setup-peers build ## measure the table of a PostgreSQL store under load, also with an old transaction: TABLE='--seconds 60'
	bench/stores/table --build $(BUILD) $(TABLE)

.PHONY: bench-cluster
bench-cluster: setup-bench build ## measure servers that share a store: through another server, three beside one: CLUSTER='--seconds 1'
	bench/cluster/run --build $(BUILD) $(CLUSTER)

.PHONY: bench-scheduling
bench-scheduling: setup-bench build ## measure what shares, keys and limits cost: SCHEDULING='--seconds 1'
	bench/scheduling/run --build $(BUILD) $(SCHEDULING)

.PHONY: bench-sqs
bench-sqs: setup-bench build ## measure what SQS costs beside the flat API: SQS=64000 messages
	bench/sqs/run $(BUILD)/sluiced $(SQS)

.PHONY: bench-stream
bench-stream: setup-bench build ## measure a stream of frames beside requests: STREAM=2 seconds a row
	bench/stream/run $(BUILD)/sluiced $(STREAM)

.PHONY: peers
peers: setup-peers build release ## measure beside other queues, refresh the tables: PEERS='--seconds 2'
	@status=0; \
	bench/peers/run --build $(BUILD) --sluiced $(RELEASE)/sluiced $(PEERS) || status=1; \
	bench/peers/report $(BUILD)/peers/results.jsonl || status=1; \
	exit $$status

.PHONY: check
check: setup-check ## sanitizers, static analysis, format, layering, sizes
	@$(MAKE) --no-print-directory lint strict tidy cppcheck sanitize
	@echo "check: clean"

.PHONY: lint
lint: setup-lint ## format, layering, sizes and rules alone: seconds
	@clang-format --dry-run --Werror $(C_FILES)
	tools/check-layering
	tools/check-size
	tools/check-rules

.PHONY: strict
strict: ## build with warnings as errors
	@$(MAKE) --no-print-directory build BUILD=$(STRICT) WERROR=true

.PHONY: tidy
tidy: $(CLANG)/build.ninja ## clang's warnings as errors, then clang-tidy
	@$(NINJA) $(CLANG)
	tools/tidy $(CLANG)

.PHONY: cppcheck
cppcheck:
	cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 \
		--enable=warning,performance,portability --library=posix \
		--suppressions-list=tools/cppcheck.suppress -j 2 \
		-I include -I src '-D__VA_OPT__(...)=' src

.PHONY: sanitize
sanitize: test-asan test-tsan ## unit tests under ASan, UBSan and TSan

.PHONY: format
format: setup-lint ## lay out every C file as .clang-format says
	clang-format -i $(C_FILES)

.PHONY: install
install: $(INSTALLED)/build.ninja ## install libraries, headers, commands, manual pages: DESTDIR= PREFIX=
	@grep -qx 'prefix = $(PREFIX)' $(INSTALLED)/meson-private/cmd_line.txt || \
		meson configure $(INSTALLED) -Dprefix=$(PREFIX)
	@$(NINJA) $(INSTALLED)
	@DESTDIR=$(DESTDIR) meson install -C $(INSTALLED) --quiet

.PHONY: clean
clean: ## remove what was built
	rm -rf $(BUILD) $(ASAN) $(TSAN) $(CLANG) $(STRICT) $(FUZZ) $(RELEASE)

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

# What the targets above are made of.

.PHONY: setup-build setup-test setup-lint setup-check setup-fuzz setup-bench setup-peers
setup-build setup-test setup-lint setup-check setup-fuzz setup-bench setup-peers:
	@tools/setup $(@:setup-%=%)

.PHONY: test-plain test-asan test-tsan
test-plain: build
	@$(MESON_TEST) -C $(BUILD) --no-suite long

test-asan: $(ASAN)/build.ninja
	@$(NINJA) $(ASAN)
	@$(MESON_TEST) -C $(ASAN) --no-suite long

test-tsan: $(TSAN)/build.ninja
	@$(TSAN_TEST) --no-suite long --suite threads

$(BUILD)/build.ninja: | setup-build
	@meson setup $(BUILD) --prefix=$(PREFIX) -Dwerror=$(WERROR) >/dev/null

# Objects have code beside what the linker optimises: the static libraries are for any compiler.
$(RELEASE)/build.ninja: | setup-build
	@meson setup $(RELEASE) --prefix=$(PREFIX) -Dwerror=$(WERROR) -Dtests=false -Db_lto=true -Db_lto_threads=$(JOBS) \
		-Dc_args=-ffat-lto-objects >/dev/null

$(ASAN)/build.ninja: | setup-build
	@meson setup $(ASAN) -Db_sanitize=address,undefined \
		-Dc_args=-fno-sanitize-recover=undefined >/dev/null

$(TSAN)/build.ninja: | setup-build
	@meson setup $(TSAN) -Db_sanitize=thread >/dev/null

$(CLANG)/build.ninja: | setup-check
	@CC=clang meson setup $(CLANG) -Dwerror=true >/dev/null

$(FUZZ)/build.ninja: | setup-fuzz
	@CC=clang meson setup $(FUZZ) -Dfuzz=true >/dev/null
