# Everything that is done to this repository, by people and by CI. It needs go, git and
# make; the tools that it uses beside them are built from the Go module proxy into bin/.

.DEFAULT_GOAL := help
.NOTPARALLEL: # go uses every core by itself, and checks are read in order

VERSION    ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
TESTFLAGS  ?=
BENCH      ?= .
BENCHFLAGS ?= -crds 500,2043 -owned 500,2043
COUNT      ?= 1
FUZZ       ?= Fuzz
FUZZTIME   ?= 30s
MUTANTS    ?= .
SOAK       ?= 500
SEED       ?= $(shell date +%s)
TIMES      ?= 1
MINUTES    ?= 20
CORPUS     ?=
FORGE      ?=

# Each go.mod is a module; those of the linter, of dyff, of govulncheck and of Flux have no code of ours.
modules := . $(sort $(patsubst ./%/go.mod,%,$(shell find . -mindepth 2 -name go.mod -not -path '*/testdata/*')))
coded   := $(filter-out .ci/lint .ci/dyff .ci/vuln fixtures/server/flux,$(modules))
nested  := $(foreach m,$(filter-out .,$(coded)),$(if $(wildcard $(m)/*_test.go),$(m)))

# Compilers, the linter and tests collect garbage less often. It takes memory, and a fifth of their time less.
export GOGC ?= 400

# The linter keeps what it found out about dependencies beside what the compiler keeps, so that a CI that restores the build
# cache restores both. Without it, the linter takes two and a half minutes of CPU time; with it, ten seconds.
ifndef GOLANGCI_LINT_CACHE
export GOLANGCI_LINT_CACHE := $(shell go env GOCACHE)/golangci-lint
endif

# How we build module $(1). The linter and the tests of nested modules build the same way, so
# that they find everything compiled: Kubernetes and Gitea take minutes.
static := CGO_ENABLED=0 GOFLAGS="$$GOFLAGS -trimpath"
sqlite := GOFLAGS="$$GOFLAGS -trimpath -tags=sqlite,sqlite_unlock_notify"
how     = $(if $(filter fixtures/server/gitea,$(1)),$(sqlite),$(static))

# The packages whose own goroutines meet, which is what the race detector finds. The other packages start none, or
# their tests wait for other processes or read the corpus: there the detector costs minutes and sees nothing.
# The slowest come first, here and in long: a package that takes minutes must not be the last to begin.
raced := reconcile/cluster reconcile/forge cmd/headgate reconcile/target reconcile reconcile/git \
	reconcile/registry render/manifest render/catalogue reconcile/memo reconcile/outbox
long  := fixtures/beside fixtures/attack fixtures/loop examples fixtures/situations fixtures/oracle

# The packages of the main module whose tests start servers. `make quick` leaves them out.
served := cmd/headgate examples fixtures fixtures/attack fixtures/beside fixtures/core fixtures/loop fixtures/oracle fixtures/situations \
	fixtures/soak reconcile/cluster reconcile/forge reconcile/target

# The packages of the main module, but for those of the list $(1).
module = headgate.dev/headgate
except = $$(go list ./... | grep -vxF $(patsubst %,-e $(module)/%,$(1)))

# The packages of the main module whose tests hold a line like $(1).
having = $$(go list -f '{{.ImportPath}} {{.Dir}}' ./... | while read -r pkg dir; do if grep -qs '$(1)' "$$dir"/*_test.go; then echo "$$pkg"; fi; done)

.PHONY: help
help: ## Print this help
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

.PHONY: build
build: ## Build bin/headgate
	$(static) go build -ldflags '-s -w -X main.version=$(VERSION)' -o bin/headgate ./cmd/headgate

# What tests and the demo start: real servers, each from a module of its own.
.PHONY: controlplane crossplane gitea flux
controlplane: bin/controlplane ## Build bin/controlplane, the Kubernetes API server of tests and demo (minutes, once)
crossplane: bin/crossplane ## Build bin/crossplane, which tests compare with (minutes, once)
flux: bin/flux ## Build bin/flux, which tests work beside (minutes, once)
gitea: bin/gitea ## Build bin/gitea, the forge of tests (minutes, once; needs a C compiler)

programs := $(patsubst fixtures/server/%/go.mod,%,$(wildcard fixtures/server/*/go.mod))
$(foreach p,$(programs),$(eval bin/$p: $(filter-out %_test.go,$(wildcard fixtures/server/$p/*.go)) fixtures/server/$p/go.mod fixtures/server/$p/go.sum))
bin/gitea: export CGO_ENABLED = 1
bin/%: main = .
bin/flux: main = github.com/fluxcd/kustomize-controller
$(programs:%=bin/%): bin/%:
	@echo 'building $*; the first time takes two to five minutes'
	$(call how,fixtures/server/$*) go -C fixtures/server/$* build -ldflags '-s -w' -o '$(CURDIR)/$@' $(main)
	@touch $@

.PHONY: check
check: format lint tidy licences vuln architecture test ## Check everything, as CI does; golden files are compared by the tests

.PHONY: quick
quick: format lint architecture bin/summary ## Check what needs no server, in less than two minutes once everything is compiled
	@bin/summary env $(static) go test -json -vet=off $(TESTFLAGS) $(call except,$(served))

.PHONY: format
format:
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo 'not formatted; `make fix` does it:'; echo "$$files"; exit 1; fi

# It runs what `go vet` runs, too. For the small programs of fixtures/server it runs only linters that leave dependencies
# alone: others would analyse all of Kubernetes and of Gitea, for minutes.
shallow := errcheck,errname,errorlint,forcetypeassert,gocritic,ineffassign,misspell,nolintlint,revive,thelper,unconvert,unused,whitespace
.PHONY: lint
lint: bin/golangci-lint
	@$(foreach m,$(coded),echo 'golangci-lint, $m' && (cd $m && $(call how,$m) '$(CURDIR)/bin/golangci-lint' run \
		--config '$(CURDIR)/.golangci.yml' $(if $(filter fixtures/server/%,$m),--enable-only=$(shallow)) ./...) && ):

bin/golangci-lint: .ci/lint/go.mod .ci/lint/go.sum
	@echo 'building golangci-lint; the first time takes about two minutes'
	$(static) go -C .ci/lint build -ldflags '-s -w' -o '$(CURDIR)/$@' github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

.PHONY: tidy
tidy:
	@$(foreach m,$(modules),echo 'go mod tidy, $m' && go -C $m mod tidy -diff && ):

bin/licences: $(wildcard .ci/licences/*.go) .ci/licences/go.mod .ci/licences/go.sum
	@$(static) go -C .ci/licences build -o '$(CURDIR)/$@' .
	@touch $@

.PHONY: licences
licences: bin/licences
	@bin/licences NOTICE ./cmd/headgate

.PHONY: notice
notice: bin/licences ## Write NOTICE: the modules in bin/headgate, their licences and their notices
	@bin/licences -write NOTICE ./cmd/headgate

bin/govulncheck: .ci/vuln/go.mod .ci/vuln/go.sum
	@$(static) go -C .ci/vuln build -o '$(CURDIR)/$@' golang.org/x/vuln/cmd/govulncheck
	@touch $@

# A scan of the small scanner itself finds out in a moment whether the database can be reached.
.PHONY: vuln
vuln: bin/govulncheck
	@out=$$(bin/govulncheck -mode binary bin/govulncheck 2>&1) || case "$$out" in *'fetching vulnerabilities'*) \
		echo 'govulncheck: skipped, because its database cannot be reached'; exit 0;; esac; \
	bin/govulncheck ./cmd/headgate

# By its file name: it reads sources and needs nothing of ours to compile.
.PHONY: architecture
architecture:
	@go test cmd/headgate/architecture_test.go

# Where nothing compiles C, the tests that need Gitea say so.
servers := $(programs:%=bin/%)
ifeq ($(shell command -v "$$(go env CC)"),)
servers := $(filter-out bin/gitea,$(servers))
endif

# The linter vets, so the tests do not. Tests without the detector build the way that it does, and so do the programs that they
# build. The test cache takes no notice of files outside of the module, nor of programs, but of variables: HEADGATE_CORPUS_STATE is
# that of the corpus, and HEADGATE_PROGRAM that of the packages of the program: tests that start it do not run again after a change
# of a test or a document. Tests beside servers wait more than they work, so five packages are tested at a time, in three groups.
#
# Some tests take up to twenty times as long with the detector, and find nothing more with it: scripts that start the program
# hundreds of times, and tests in which one goroutine reads the corpus, a bomb or our own sources. They run without it.
slow := TestScripts TestLanguage TestForgeIsOneFile TestRulesAreDocumented TestGlossary TestChangedAgreesWithDiff \
	TestLongDeltas TestFetchRefusesBombs TestHeaderOfCommitIsBounded TestHostileImages TestScanCorpus TestLimitsAdmitCorpus
unraced := cmd/headgate reconcile/cluster reconcile/git reconcile/registry render/manifest
named = ^($(subst $(eval) ,|,$(strip $1)))$$
export HEADGATE_CORPUS_STATE := $(shell ls -ln '$(or $(HEADGATE_CORPUS),../shared/corpus)' 2>/dev/null | cksum)

.PHONY: test
test: $(servers) bin/summary ## Run all tests, with the race detector where goroutines meet and there is a C compiler (TESTFLAGS=-run=…)
	@export HEADGATE_PROGRAM="$$($(static) go list -deps -export -f '{{.BuildID}}' ./cmd/headgate | cksum)"; \
	race=-race; go -C .ci/summary build -race -o /dev/null . 2>/dev/null || { race=; echo 'no C compiler, or cgo is off: testing WITHOUT the race detector'; }; \
	bin/summary env GOFLAGS="$$GOFLAGS -trimpath" go test -json -p=2 $$race -vet=off -timeout=40m -skip='$(call named,$(slow))' $(TESTFLAGS) $(raced:%=./%) \
		-- env $(static) go test -json -p=2 -vet=off -timeout=40m $(TESTFLAGS) $(long:%=./%) $(call except,$(raced)) \
		-- env $(static) go test -json -p=1 -vet=off -timeout=40m -run='$(call named,$(slow))' $(TESTFLAGS) $(unraced:%=./%) \
		$(foreach m,$(nested),-- env $(call how,$m) go -C $m test -json -vet=off -timeout=40m $(TESTFLAGS) ./...)

bin/summary: $(wildcard .ci/summary/*.go) .ci/summary/go.mod
	@$(static) go -C .ci/summary build -o '$(CURDIR)/$@' .
	@touch $@

.PHONY: update
update: $(servers) ## Rewrite golden files; read their diff like code
	@for pkg in $(call having,fixtures/golden); do go test $$pkg -update || exit 1; done

.PHONY: bench
bench: build bin/dyff $(filter bin/controlplane bin/gitea,$(servers)) ## Measure, each figure beside its target: about three hours, less than one with BENCHFLAGS= (BENCH=regexp, BENCHFLAGS='-n 5'); then the benchmarks in the code
	@$(static) go run ./fixtures/bench -run '$(BENCH)' $(BENCHFLAGS)
	@for pkg in $(call having,^func Benchmark); do go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) -timeout 120m $$pkg || exit 1; done

bin/dyff: .ci/dyff/go.mod .ci/dyff/go.sum
	$(static) go -C .ci/dyff build -ldflags '-s -w' -o '$(CURDIR)/$@' github.com/homeport/dyff/cmd/dyff
	@touch $@

.PHONY: mutate
mutate: bin/controlplane ## Break what decides over deleting and activating in one place at a time, and see that a test notices (MUTANTS=regexp)
	@$(static) go run ./fixtures/mutate -run '$(MUTANTS)'

.PHONY: fuzz
fuzz: ## Fuzz every target for FUZZTIME (FUZZ=regexp)
	@for pkg in $(call having,^func Fuzz); do \
		for target in $$(go test -list '$(FUZZ)' $$pkg | grep '^Fuzz'); do \
			echo "$$pkg $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
		done || exit 1; \
	done

.PHONY: attack
attack: bin/controlplane ## Have the program read every bomb, and the largest honest inputs, within bounds of memory (minutes; a short form is part of check)
	go test -v -count=1 -timeout=60m ./fixtures/attack -whole

.PHONY: soak
soak: $(filter-out bin/gitea,$(servers)) ## Let SOAK random edits, deletions, commits and kills happen while API server and admission webhook fail at random, without Crossplane and beside it, each for MINUTES at most (SOAK=500 SEED="1 2 3" TIMES=3); then an hour's worth of quiet passes beside it
	for seed in $(SEED); do \
		HEADGATE_SOAK=$(SOAK) HEADGATE_SOAK_SEED=$$seed HEADGATE_SOAK_MINUTES=$(MINUTES) go test -v -count=$(TIMES) -timeout=10h ./fixtures/soak || exit 1; \
	done
	go test -count=1 -timeout=120m ./fixtures/beside -passes=60

.PHONY: demo
demo: build bin/controlplane bin/by-hand $(if $(FORGE),bin/gitea) ## See the whole story in a real API server (FORGE=1 adds a forge, CORPUS=package.tar.gz takes a real package)
	@CORPUS='$(CORPUS)' sh examples/quickstart/demo.sh $(if $(FORGE),--forge)

bin/by-hand: $(wildcard examples/quickstart/byhand/*.go) go.mod go.sum
	@$(static) go build -ldflags '-s -w' -o '$@' ./examples/quickstart/byhand
	@touch $@

.PHONY: fix
fix: ## Format the code and tidy every module
	@gofmt -w .
	@$(foreach m,$(modules),go -C $m mod tidy && ):

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin
