GO ?= go
FUZZTIME ?= 20s
W ?= all
D ?= 3m
SEED ?=
V ?= 15 16 17 18
SHORT ?=
STEPS ?= 1000000
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# The tools are pinned here and not in go.mod, so that they do not change the versions of Tidemark's dependencies.
LINT = $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GORELEASER = $(GO) run github.com/goreleaser/goreleaser/v2@v2.15.1
VULN = $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.8.0

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/tidemark
	$(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/tidemark ./cmd/tidemark

.PHONY: demo
demo: postgres bin/tidemark-demo ## Run everything on a private PostgreSQL that leaves nothing behind
	bin/tidemark-demo

.PHONY: demo-governance
demo-governance: postgres build bin/tidemark-demo ## Run the pack governance over a million rows on a private PostgreSQL
	bin/tidemark-demo governance

.PHONY: demo-commands
demo-commands: postgres build bin/tidemark-demo ## Run the pack commands-demo: commands, resends, forgers, a dead letter, a replay
	bin/tidemark-demo commands

.PHONY: bin/tidemark-demo
bin/tidemark-demo:
	$(GO) build -trimpath -o $@ ./cmd/tidemark-demo

# Debian has PgBouncer in /usr/sbin, which is not in every user's PATH. Without Kafka's jars one test is skipped.
.PHONY: test
test: tools postgres ## Run all tests with the race detector
	PATH="$$PATH:/usr/sbin" KAFKA_JARS="$$(scripts/kafka.sh)" PRODUCERS="$$(scripts/producers.sh)" $(GO) test -race -vet=off -timeout 30m ./sql/test ./... # the longest first; make lint vets
	cd examples/drivers && $(GO) test -race ./...

.PHONY: test-browser
test-browser: tools postgres ## Mend each incident of the operator's night in the console, with Chromium
	PATH="$$PATH:/usr/sbin" $(GO) test -count=1 -timeout 30m ./test/incidents -browser

.PHONY: test-short
test-short: postgres ## Run the tests without the long ones and without the race detector
	$(GO) test -short -timeout 5m ./...

# The fetched servers have no client programs, so the tests that need pg_dump, or a server of a known version, are skipped.
.PHONY: test-versions
test-versions: ## Run installs without a superuser, the README and the tests of the SQL on the versions V (15 16 17 18); SHORT=1: those of plans, locks and the catalog
	@set -e; skip='Restored|TortureServer|StateMachineCatches'; \
	command -v psql >/dev/null || skip="$$skip|PrintInstalls"; \
	for version in $(V); do \
		bin=$$(scripts/postgres-version.sh $$version); \
		echo "==> $$($$bin/postgres --version)"; \
		PG_BIN=$$bin $(GO) test -count=1 -timeout 30m $(if $(SHORT),-short -run 'Install|Upgrade|Readme|Emit|Lock|Capture|Read|Among|Plan|Maintain|Settle|Gate|Cause|Sweep|Retry|Parked') -skip "$$skip" . ./sql/... ./migrate; \
	done

.PHONY: lint
lint: ## Check style and formatting; make fmt repairs the formatting
	$(LINT) run ./...
	$(GO) vet -tags man ./cmd/tidemark
	cd bench && $(GO) vet ./...
	cd examples/drivers && $(GO) vet ./...
	cd deploy/image && $(GO) vet ./...

.PHONY: fmt
fmt: ## Format all Go files
	$(LINT) fmt ./...

.PHONY: fuzz
fuzz: postgres ## Run each fuzz target for FUZZTIME (20s)
	@set -e; list=$$($(GO) test -list '^Fuzz' ./...); \
	echo "$$list" | awk '/^Fuzz/ {name[n++] = $$1} /^ok/ {for (i = 0; i < n; i++) print $$2, name[i]; n = 0}' | \
	while read -r package name; do \
		$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$package"; \
	done

.PHONY: chaos
chaos: postgres ## Kill, cut, pause and poison for D (3m) with seed SEED, and check the result
	$(GO) run ./test/chaos -d $(D) $(if $(SEED),-seed $(SEED))

.PHONY: chaos-long
chaos-long: postgres ## Run chaos for D (3m) on versions 15 and 18, with and without tables, by daemon, psql and PgBouncer, and with Kafka
	@failed=; for version in 15 18; do \
		bin=$$(scripts/postgres-version.sh $$version) || exit 1; \
		for tables in on off; do for path in daemon psql pgbouncer; do \
			echo "==> PostgreSQL $$version, tables $$tables, by $$path"; \
			$(GO) run ./test/chaos -d $(D) -pg $$bin -tables $$tables -path $$path || failed="$$failed $$version/$$tables/$$path"; \
		done; done; \
	done; \
	echo "==> commands from Apache Kafka"; \
	KAFKA_JARS=$$(scripts/kafka.sh) $(GO) run ./test/chaos -d $(D) -broker kafka || failed="$$failed kafka"; \
	test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

.PHONY: test-kafka-nodes
test-kafka-nodes: postgres ## Consume commands from three nodes of Apache Kafka, each of which is killed
	LONG=1 KAFKA_JARS=$$(scripts/kafka.sh) $(GO) test -race -count=1 -run TestConsumerOnThreeNodes ./internal/command/consumer

.PHONY: state-machine
state-machine: postgres ## Run each state machine of the cursor and the lease for STEPS (1000000) steps, and all mutants
	$(GO) test -count=1 -timeout 0 -run 'TestStateMachine$$' -v ./sql/test -steps $(STEPS)
	$(GO) test -count=1 -timeout 0 -run 'TestStateMachineCatches' -v ./sql/test -every-mutant

.PHONY: bench
bench: postgres ## Measure workload W (all) beside the alternatives
	cd bench && $(GO) run . -w $(W)

.PHONY: bench-check
bench-check: postgres ## Run each contestant of the benchmark once with few items, and check its result
	cd bench && $(GO) test . && $(GO) run . -w $(W) -check

.PHONY: bench-kafka
bench-kafka: postgres ## Measure deliveries to Apache Kafka beside a plain relay and Debezium
	jars=$$(scripts/kafka.sh) && debezium=$$(scripts/kafka.sh debezium) && \
	cd bench && KAFKA_JARS=$$jars DEBEZIUM_JARS=$$debezium $(GO) run . -w kafka

.PHONY: vuln
vuln: ## Verify the modules, and look for known vulnerabilities in the code that is called
	$(GO) mod verify
	scripts/vuln.sh $(VULN) ./...

.PHONY: dist
dist: ## Make the archives and packages of a release in dist/, each with its bill of materials and licences
	$(GORELEASER) check
	$(GORELEASER) release --snapshot --clean

# From the binaries of make dist. To publish it: crane push dist/image ghcr.io/tidemarkhq/tidemark:VERSION
.PHONY: image
image: ## Make the container image of a release in dist/image, an OCI layout, after make dist
	cd deploy/image && $(GO) run . ../../dist/image $(VERSION) \
		linux/amd64=$$(echo ../../dist/tidemark_linux_amd64*/tidemark) linux/arm64=$$(echo ../../dist/tidemark_linux_arm64*/tidemark)

.PHONY: dist-check
dist-check: ## Make a release twice and compare, then install its package in a bare Debian and follow the quickstart; needs root
	scripts/dist-check.sh

.PHONY: site
site: ## Build the documentation site in site/, and check its links
	scripts/site.sh

.PHONY: chart
chart: ## Check the Helm chart: lint, its manifests against Kubernetes' schemas, its configuration
	scripts/chart.sh

.PHONY: postgres
postgres: # installs PostgreSQL's programs if they are missing
	@scripts/postgres.sh

.PHONY: tools
tools: # installs the other tools of the tests
	@scripts/tools.sh

.PHONY: clean
clean: ## Remove what the other targets built
	rm -rf bin dist site .release
