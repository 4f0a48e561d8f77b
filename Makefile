# Every target works as root and as an ordinary user, and needs Go, git and make only.
# PostgreSQL's programs are the one thing that `make demo` and `make test` take from outside:
# `make database` finds or installs them, and the tests start and end servers of their own.
# `make e2e` needs Prometheus, PgBouncer, systemd and Chromium besides; `make deps` finds or installs
# everything.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
# Where a test's packages are; `make test PKG=./sweep/...` tests one room.
PKG ?= ./...
# How long each fuzz test runs, how many worlds a soak lives through and how many operations
# each has, and how long its replicas are killed, stopped and cut off.
FUZZTIME ?= 10s
SEEDS ?= 1000
OPERATIONS ?= 1000
SOAK ?= 10m
# Words of the faults that `make mutants` tries; empty: all.
MUTANTS ?=

# The race detector needs a C compiler. Without one the tests run without it.
RACE := $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

.PHONY: help
help: ## Show what there is to make
	@awk 'BEGIN { FS = ":.*## " } /^[a-z0-9-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: export GOTOOLCHAIN := $(if $(VERSION),$(shell sed -n 's/^toolchain //p' go.mod),$(GOTOOLCHAIN))
build: ## Build the program as bin/reconciler: static, with the time zones inside; VERSION=1.2.3 names a release
	CGO_ENABLED=0 $(GO) build -trimpath -tags timetzdata -ldflags '-s -w $(if $(VERSION),-X main.release=$(VERSION))' -o bin/reconciler ./cmd/reconciler

.PHONY: demo
demo: database ## See two simulated days in which answers get lost and the truth is found
	$(GO) run ./cmd/reconciler demo

.PHONY: test
test: database ## Run every test, on a PostgreSQL that is started for them and ends with them
	$(if $(RACE),,@echo "no C compiler was found: testing without the race detector")
	@# Without vet, which lint runs over everything; here it would look a second time. Most
	@# tests wait for programs, servers and commits, so that more of them fit than cores.
	$(GO) test $(RACE) -vet=off -shuffle=on -parallel=6 -timeout=8m $(PKG)
	$(if $(filter ./...,$(PKG)),$(GO) -C sources/stripe/mocktest test -vet=off -shuffle=on ./...)

# They wait for programs more than they compute, so two go at once, each telling what it said
# when it ends.
E2E := e2e-replicas e2e-secrets e2e-monitoring e2e-restore e2e-packages e2e-daemon e2e-pages

.PHONY: e2e $(E2E)
e2e: deps ## See it work with a real Prometheus, Alertmanager, PgBouncer and browser, packaged, restored and while replicas die
	@$(MAKE) --no-print-directory --keep-going --output-sync -j2 $(E2E)

e2e-replicas:
	$(GO) test -vet=off -count=1 -timeout=6m -tags e2e -run Replicas ./cmd/reconciler
e2e-secrets:
	$(GO) test -vet=off -count=1 -timeout=6m -tags e2e -run NoSecret ./cmd/reconciler
e2e-monitoring:
	$(GO) -C deploy/e2e test -vet=off -count=1 -timeout=4m ./...
e2e-pages:
	$(GO) -C reports/browsertest test -vet=off -count=1 -timeout=2m ./...
e2e-daemon:
	$(GO) test -vet=off -count=1 -timeout=2m -tags e2e -run 'Pooler' ./daemon
e2e-restore:
	$(GO) test -vet=off -count=1 -timeout=6m -tags e2e ./deploy/restore
e2e-packages:
	$(GO) -C deploy/packagetest test -vet=off -count=1 -timeout=8m ./...

.PHONY: deps
deps: database ## Find the programs of PostgreSQL, PgBouncer, Prometheus, systemd and Chromium; root on Debian and Ubuntu gets them installed
	@tools/prometheus
	@tools/pgbouncer
	@tools/systemd
	@tools/chromium

.PHONY: database
database:
	@tools/postgres

.PHONY: lint
lint: ## Check form, dead code, the rules of the house and what is generated
	@tools/lint

.PHONY: generate
generate: ## Make the generated files again
	$(GO) generate ./...
	$(GO) -C deploy/e2e run ./dashboard >deploy/grafana/dashboards/reconciler.json.new
	mv deploy/grafana/dashboards/reconciler.json.new deploy/grafana/dashboards/reconciler.json

.PHONY: vuln
vuln: ## Look for known faults in what the code calls (from vuln.go.dev, the module proxy, or a copy in GOVULNDB)
	@tools/vuln

.PHONY: fuzz
fuzz: database ## Run each fuzz test for FUZZTIME (10s)
	@tools/fuzz $(FUZZTIME)

.PHONY: bench
bench: database ## Measure the budgets of speed, each beside its limit, and write docs/benchmarks.md
	$(GO) run ./internal/benchmarks -o docs/benchmarks.md

# PEERS_ROWS=20000 PEERS_ROUNDS=1 make peers is a quick check that all find the same.
.PHONY: peers
peers: database ## Compare two tables beside DuckDB, Python and SQL in PostgreSQL; all must find the same
	PEERS_ROWS=$${PEERS_ROWS:-1000000} PEERS_ROUNDS=$${PEERS_ROUNDS:-5} $(GO) -C sweep/peers test -count=1 -v -timeout=60m .

.PHONY: bench-large
bench-large: database ## Audit ten million operations beside one million, and write that section of docs/benchmarks.md
	$(GO) run ./internal/benchmarks -large -o docs/benchmarks.md

.PHONY: mutants
mutants: database ## Put deliberate faults in, one at a time; a test must notice each (MUTANTS picks some by a word)
	$(GO) run ./internal/mutants $(MUTANTS)

.PHONY: soak
soak: FUZZTIME = 10m
soak: database build ## Live through SEEDS (1000) large worlds, kill replicas for SOAK (10m), break everything off everywhere, fuzz
	$(GO) build -o bin/soak ./internal/world/soak
	bin/soak -seeds $(SEEDS) -operations $(OPERATIONS) -json bin/soak.json
	@for seed in $$(seq 1 20); do bin/reconciler demo --seed "$$seed" >/dev/null || { echo "seed $$seed fails: bin/reconciler demo --seed $$seed" >&2; exit 1; }; done
	@echo "20 demos, none ended wrong"
	SOAK=$(SOAK) $(GO) test -tags e2e -run=TestReplicasSurviveWhateverDies -count=1 -v -timeout=120m ./cmd/reconciler
	SOAK=$(SOAK) $(GO) test -run=TestAnHourOfOutage -count=1 -v ./sweep
	INTERRUPT=all $(GO) test -run=BreaksOff -count=1 -timeout=120m ./ledger ./sweep ./nightly ./escalation
	$(MAKE) fuzz FUZZTIME=$(FUZZTIME)

.PHONY: cover
cover: deps ## Show how much of each package its tests reach, across packages
	$(GO) test -coverpkg=./... -coverprofile=cover.out -timeout=8m $(PKG)
	$(GO) tool cover -func=cover.out | tail -n 1
