# Two commands do all: "go run ./cmd/turnstile lock /jobs/hello -- echo 'my turn'" and "make test".
SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
GO          ?= go
LINT         = $(GO) tool -modfile=tools.mod golangci-lint
FUZZTIME    ?= 10s
FUZZDIR     ?= .
COUNT       ?= 20
BENCHFLAGS  ?=
MINUTES     ?= 1
PHASES      ?= 3
TICK        ?= 1s
SEED        ?=
ATTACK      ?=
ITEMS       ?= 1000000

.DEFAULT_GOAL := help
.PHONY: help lint fix test race fuzz conformance interop lin lin-queue partitions hostile deep bench herd cover build \
	peers

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build ./bin/turnstile
	$(GO) build -trimpath -o bin/turnstile ./cmd/turnstile

test: ## Run every test, with the race detector and in random order; names the peers that are missing
	@.ci/peers
	$(GO) -C bench vet ./...
	$(GO) -C bench test -race -timeout 5m ./...
	$(GO) -C fence/sqlite test -race -shuffle=on -timeout 5m ./...
	$(GO) test -race -shuffle=on -timeout 20m ./...

race: ## Run the tests of the concurrent packages COUNT times (20)
	$(GO) test -race -shuffle=on -timeout 60m -count=$(COUNT) ./zk ./internal/line ./lock ./fence ./server ./zktest

conformance: ## Compare our server with Apache ZooKeeper, answer by answer
	@.ci/peers
	$(GO) test -race -count=1 -v ./conformance

interop: ## Run other projects' clients against our server, and our locks against Apache ZooKeeper under faults
	@.ci/peers
	$(GO) test -race -count=1 -v ./interop ./lock

lin: ## Use locks at random under random faults, and judge what was seen: MINUTES (1), SEED (a new one)
	@.ci/peers
	TURNSTILE_LIN=$(MINUTES)m TURNSTILE_SEED=$(SEED) $(GO) test -race -count=1 -v \
		-timeout $$(( $(MINUTES) * 2 + 10 ))m -run 'Locks|Infers|Holder' ./lin

lin-queue: ## The same with queues
	@.ci/peers
	TURNSTILE_LIN=$(MINUTES)m TURNSTILE_SEED=$(SEED) $(GO) test -race -count=1 -v \
		-timeout $$(( $(MINUTES) * 2 + 10 ))m -run 'Queue|Leaves' ./lin

partitions: ## Partition ensembles under holders: PHASES of each shape, TICK, SEED; writes docs/partitions.md
	@.ci/peers
	TURNSTILE_PARTITIONS_PHASES=$(PHASES) TURNSTILE_PARTITIONS_TICK=$(TICK) TURNSTILE_SEED=$(SEED) \
		TURNSTILE_PARTITIONS_WRITE=$(CURDIR)/docs \
		$(GO) test -race -count=1 -v -timeout $$(( $(PHASES) * 30 + 10 ))m ./partitions

hostile: ## Attack the embedded server: MINUTES (10 or more write docs/limits.md), SEED, ATTACK
	TURNSTILE_HOSTILE=$(MINUTES)m TURNSTILE_SEED=$(SEED) TURNSTILE_HOSTILE_ONLY='$(ATTACK)' \
		TURNSTILE_HOSTILE_WRITE=$(CURDIR)/docs \
		$(GO) test -count=1 -v -timeout $$(( $(MINUTES) * 2 + 10 ))m ./hostile

deep: ## Put and drain ITEMS on the embedded server, which is killed twice; prints the speed at each depth
	TURNSTILE_ITEMS=$(ITEMS) $(GO) test -count=1 -v -timeout 60m -run '^TestDeepQueueSurvivesKills$$' ./queue

fuzz: ## Fuzz every decoder, FUZZTIME (10s) each, those below FUZZDIR (.)
	@tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	grep -rlE --include='*_test.go' '^func Fuzz' $(FUZZDIR) | xargs -n 1 dirname | sort -u | while read -r dir; do \
		$(GO) test -c -fuzz . -o $$tmp/fuzz.test ./$$dir </dev/null; \
		cache=$$($(GO) env GOCACHE)/fuzz/$$($(GO) list ./$$dir); \
		for name in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' $$dir/*_test.go); do \
			echo "$$dir $$name"; \
			(cd $$dir; $$tmp/fuzz.test -test.run '^$$' -test.fuzz "^$$name\$$" -test.fuzztime $(FUZZTIME) \
				-test.fuzzcachedir $$cache </dev/null); \
		done; \
	done

bench: ## Measure beside other projects (BENCHFLAGS: -part queues, -only hot, -list); writes docs/benchmarks*
	@.ci/peers
	$(GO) -C bench run . -write ../docs $(BENCHFLAGS)

herd: ## Count the watch events of a release, simple lock beside line; writes docs/herd.md and docs/herd.svg
	@.ci/peers
	$(GO) run ./docs/herd -docs docs

cover: ## Write cover.out and print the coverage of each package's functions
	$(GO) test -coverprofile=cover.out -coverpkg=./... ./...
	$(GO) tool cover -func=cover.out | tail -n 1

lint: ## Run the linters, and check that formatting, go fix and go mod tidy leave no diff
	$(LINT) run
	linter=$$($(LINT:golangci-lint=-n golangci-lint)); \
		(cd bench && $$linter run --config ../.golangci.yml); \
		cd fence/sqlite && $$linter run --config ../../.golangci.yml
	$(GO) mod tidy -diff
	$(GO) -C bench mod tidy -diff
	$(GO) -C fence/sqlite mod tidy -diff

fix: ## Format, fix what tools can, wrap long Markdown lines, and write the file map of docs/architecture.md
	$(GO) fix ./...
	$(LINT) run --fix
	$(GO) mod tidy
	$(GO) -C bench mod tidy
	$(GO) -C fence/sqlite mod tidy
	$(GO) test ./internal/house -update

peers: ## Install the other projects' servers and clients that tests run against (Debian, Ubuntu)
	@.ci/peers install
