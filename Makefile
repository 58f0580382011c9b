# To try it: go run ./cmd/turnstile lock /jobs/hello -- echo 'my turn'. To test it: make test.
SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
GO          ?= go
MODULES      = fence/sqlite discovery/grpcresolver zk/gssapi metrics otel test/kubernetes ops/image
LINT         = $(GO) tool -modfile=tools.mod golangci-lint
FUZZTIME    ?= 20000x
FUZZDIR     ?= .
BENCHFLAGS  ?=
MINUTES     ?= 1
PHASES      ?= 3
TICK        ?= 1s
SEED        ?=
ATTACK      ?=
ITEMS       ?= 1000000

# By default, each process with the race detector waits for a second at its end.
export GORACE ?= atexit_sleep_ms=0
# As in .ci/env.
export GOFLAGS += -trimpath -tags=pebblegozstd

.DEFAULT_GOAL := help
.PHONY: help build package image test check soak conformance interop lin partitions hostile deep fuzz bench herd \
	newer cover lint fix modules promises peers pictures

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build ./bin/turnstile
	$(GO) build -o bin/turnstile ./cmd/turnstile

package: ## Build the deb and the rpm package into dist/, for the processor of GOARCH
	@.ci/package dist deb rpm

image: ## Build a container image into dist/, a tar for "podman load" or "docker load", for the processor of GOARCH
	@.ci/package dist image

test: ## Run every kind of test, in ten to thirty minutes; first lists missing peers, last what was skipped
	@.ci/peers
	@.ci/test

check: ## Check a change before each commit: linters, and tests of what changed and of what imports it
	@.ci/check

soak: MINUTES = 10
soak: ## Run what is random, repeated or large, for about MINUTES (10)
	@.ci/soak $(MINUTES)

conformance: ## Compare the embedded server with Apache ZooKeeper, answer by answer
	@.ci/peers
	$(GO) test -race -count=1 -v ./test/conformance

interop: ## Run other projects' clients on the embedded server, and our locks on Apache ZooKeeper under faults
	@.ci/peers
	$(GO) test -race -count=1 -v ./test/interop ./lock

# Nothing is installed: see .ci/newer.
newer: SUITE ?= trixie
newer: ## Test beside the Apache ZooKeeper, Curator and kazoo of Debian SUITE (trixie), which apt-get fetches into DIR
	@test -n '$(DIR)' || { echo 'usage: make newer DIR=FOLDER' >&2; exit 2; }
	.ci/newer '$(DIR)' $(SUITE) .ci/test -race=false -count=1 -timeout 20m ./test/conformance ./test/interop \
		./test/partitions ./test/everycall ./internal/test/peer ./internal/line ./zktest ./lock ./queue
	.ci/newer '$(DIR)' $(SUITE) .ci/test -race=false -count=1 -timeout 20m \
		-run 'ZooKeeper|Doctor|Verify|Dashboard|Queue|Top' ./cmd/turnstile/internal/cli
	.ci/newer '$(DIR)' $(SUITE) $(GO) -C zk/gssapi test -count=1 ./...

lin: ## Use every recipe at random under random faults: MINUTES (1) each, SEED (random); lin-queue: queues alone
	@.ci/peers
	$(LIN) Promises

LIN = TURNSTILE_LIN=$(MINUTES)m TURNSTILE_SEED=$(SEED) $(GO) test -race -count=1 -v \
	-timeout $$(( $(MINUTES) * 12 + 10 ))m ./test/lin -run

# Trials: locks, queue, cache, counter, barrier, member.
lin-%:
	@.ci/peers
	$(LIN) 'PromisesAre/^$*$$'

# Writes docs/partitions.md.
partitions: ## Partition ensembles under holders, ours and others': PHASES (3), TICK (1s), SEED (random)
	@.ci/peers
	TURNSTILE_PARTITIONS_PHASES=$(PHASES) TURNSTILE_PARTITIONS_TICK=$(TICK) TURNSTILE_SEED=$(SEED) \
		TURNSTILE_PARTITIONS_WRITE=$(CURDIR)/docs \
		$(GO) test -race -count=1 -v -timeout $$(( $(PHASES) * 30 + 10 ))m ./test/partitions
	$(GO) test ./test/house -update

# From 10 minutes on it checks times, too, and writes them to test/hostile/results.md.
hostile: ## Attack the embedded server: MINUTES (1), SEED (random), ATTACK (all)
	TURNSTILE_HOSTILE=$(MINUTES)m TURNSTILE_SEED=$(SEED) TURNSTILE_HOSTILE_ONLY='$(ATTACK)' \
		TURNSTILE_HOSTILE_WRITE=$(CURDIR)/test/hostile/results.md \
		$(GO) test -count=1 -v -timeout $$(( $(MINUTES) * 2 + 10 ))m ./test/hostile

deep: ## Put and drain a queue of ITEMS (1000000) on an embedded server that is killed meanwhile
	TURNSTILE_ITEMS=$(ITEMS) $(GO) test -count=1 -v -timeout 60m -run '^TestDeepQueueSurvivesKills$$' ./queue

# FUZZTIME counts runs: Go before 1.27 may report a time limit as a failure (golang/go#75804).
fuzz: ## Fuzz every decoder below FUZZDIR (.) FUZZTIME (20000x) times
	@tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	grep -rlE --include='*_test.go' '^func Fuzz' $(FUZZDIR) | xargs -n 1 dirname | sort -u | while read -r dir; do \
		$(GO) -C $$dir test -c -fuzz . -o $$tmp/fuzz.test . </dev/null; \
		cache=$$($(GO) env GOCACHE)/fuzz/$$($(GO) -C $$dir list .); \
		for name in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' $$dir/*_test.go); do \
			echo "$$dir $$name"; \
			(cd $$dir; $$tmp/fuzz.test -test.run '^$$' -test.fuzz "^$$name\$$" -test.fuzztime $(FUZZTIME) \
				-test.fuzzcachedir $$cache </dev/null); \
		done; \
	done

# Writes docs/benchmarks.* and test/bench/figures.md. BENCHFLAGS: '-part queues' runs one part, '-only hot' some loads,
# '-list' lists them.
bench: ## Benchmark against other projects in about 40 minutes: BENCHFLAGS
	@.ci/peers
	$(GO) -C test/bench run . -write ../.. $(BENCHFLAGS)

# Writes herd.md and herd.svg in test/herd.
herd: ## Count the watch events of a release, for a simple lock and for a line, on both servers
	@.ci/peers
	$(GO) run ./test/herd -write test/herd

cover: ## Write cover.out and print the coverage of each package's functions
	$(GO) test -coverprofile=cover.out -coverpkg=./... ./...
	$(GO) tool cover -func=cover.out | tail -n 1

lint: ## Run the linters, and check that formatting, go fix and go mod tidy leave no diff
	$(LINT) run
	linter=$$($(LINT:golangci-lint=-n golangci-lint)); for dir in test/bench $(MODULES); do \
		(cd $$dir && $$linter run --config $(CURDIR)/.golangci.yml); done
	for dir in . test/bench $(MODULES); do $(GO) -C $$dir mod tidy -diff; done

fix: ## Format, fix what tools can, and wrap Markdown
	$(GO) fix ./...
	$(LINT) run --fix
	for dir in . test/bench $(MODULES); do $(GO) -C $$dir mod tidy; done
	$(GO) test ./test/house -update

modules: ## Download the modules of all go.mod files
	for dir in . test/bench $(MODULES); do $(GO) -C $$dir mod download; done

promises: ## List the tests that show each promise of docs/guarantees.md
	$(GO) test -count=1 -v -run TestEachPromiseIsShownByTests ./test/house

pictures: ## Make the pictures of docs/dashboard.md, in Chromium
	@.ci/peers
	tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	TURNSTILE_PICTURES=$$tmp $(GO) test -count=1 -run TestDashboardInABrowser ./cmd/turnstile/internal/cli; \
	cp $$tmp/overview-light-1280.png docs/dashboard-overview.png; \
	cp $$tmp/lock-dark-1280.png docs/dashboard-lock.png; \
	cp $$tmp/waits-light-1280.png docs/dashboard-waits.png

peers: ## Install the other projects' servers and clients for the tests (Debian, Ubuntu)
	@.ci/peers install
