# The tasks of developers and of CI. They need go, git and make. All other tools are built
# from the Go module proxy into bin/.

.DEFAULT_GOAL := help
.NOTPARALLEL: # go already uses every core, and the output of checks is read in order

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
CROSSPLANE ?=

# Each go.mod is a module. Those without Go files only pin a program of others. A stub takes the place of a dependency of GoReleaser.
modules := . $(sort $(patsubst ./%/go.mod,%,$(shell find . -mindepth 2 -name go.mod -not -path '*/testdata/*')))
coded   := . $(foreach m,$(filter-out . .ci/goreleaser/msix,$(modules)),$(if $(wildcard $(m)/*.go),$(m)))
nested  := $(foreach m,$(filter-out .,$(coded)),$(if $(wildcard $(m)/*_test.go),$(m)))

# Compilers, the linter and tests collect garbage less often. They use more memory and a fifth less time.
export GOGC ?= 400

# The linter's cache is inside the build cache, so that a CI that restores the build cache restores both. The linter takes
# ten seconds of CPU time with its cache, and two and a half minutes without it.
ifndef GOLANGCI_LINT_CACHE
export GOLANGCI_LINT_CACHE := $(shell go env GOCACHE)/golangci-lint
endif

# The build settings of module $(1). The linter and the tests of nested modules use the same settings,
# so that they reuse the compiled dependencies: Kubernetes and Gitea take minutes.
static := CGO_ENABLED=0 GOFLAGS="$$GOFLAGS -trimpath"
sqlite := GOFLAGS="$$GOFLAGS -trimpath -tags=sqlite,sqlite_unlock_notify"
rules  := CGO_ENABLED=0 GOFLAGS="$$GOFLAGS -trimpath -tags=remove_all_sd"
how     = $(if $(filter fixtures/server/gitea,$(1)),$(sqlite),$(if $(filter fixtures/server/promtool,$(1)),$(rules),$(static)))

# A comment above the package clause of one test file says how the tests of the package run:
#
#	//test:package raced       the package starts goroutines that share memory, which is where the race detector finds races. Elsewhere the
#	                           detector costs minutes and finds nothing
#	//test:package served      its tests start programs of bin, most of them servers. `make quick` leaves the package out
#	//test:package suite       an end-to-end suite. A check before a commit leaves it to CI, but for its tests with //test:story
#	//test:package minutes=3   how long it takes in CI. The slowest packages start first: one that takes minutes must not start last
#
# $(call packages,raced) are the packages whose line has that word, the slowest first. TestWhenTestsRun checks the lines.
trees    := cmd examples fixtures reconcile render
packages  = $(shell grep -rE --include='*_test.go' '^//test:package .*$1' $(trees) | sed -E 's,/[^/]*:([^=]*=([0-9]+))?.*, \2,' | sort -k2,2nr -k1,1 | cut -d' ' -f1)
raced     = $(call packages,raced)
served    = $(call packages,served)
suites    = $(call packages,suite)
slowest   = $(call packages,minutes)

# The packages of the main module, except those in the list $(1).
module = headgate.dev/headgate
except = $$(go list ./... | grep -vxF $(patsubst %,-e $(module)/%,$(1)))

# The packages of the main module whose tests contain a line that matches $(1).
having = $$(go list -f '{{.ImportPath}} {{.Dir}}' ./... | while read -r pkg dir; do if grep -qs '$(1)' "$$dir"/*_test.go; then echo "$$pkg"; fi; done)

.PHONY: help
help: ## Print this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

.PHONY: build
build: ## Build bin/headgate
	$(static) go build -tags=grpcnotrace -ldflags '-s -w -X main.version=$(VERSION)' -o bin/headgate ./cmd/headgate

# The completion scripts that a release contains.
.PHONY: completions
completions:
	@mkdir -p bin/completions && $(static) go build -buildvcs=false -tags=grpcnotrace -ldflags '-s -w' -o bin/completing ./cmd/headgate
	@for shell in bash zsh fish powershell; do env -u HEADGATE_CORPUS_STATE bin/completing completion $$shell > bin/completions/headgate.$$shell || exit 1; done

# GoReleaser checks its file. The program of fixtures/release makes the same archives, which it can compare.
PLATFORMS ?=
.PHONY: release-dry
release-dry: bin/goreleaser ## Build and check the archives of a release in dist, and list what only the workflow does (PLATFORMS=linux/amd64,darwin/arm64; all six compile for minutes)
	@bin/goreleaser check --quiet
	@$(static) go run ./fixtures/release/dry -platforms '$(PLATFORMS)' dist

bin/goreleaser: .ci/goreleaser/go.mod .ci/goreleaser/go.sum
	@echo 'building goreleaser; the first time takes about two minutes'
	@$(static) go -C .ci/goreleaser build -ldflags '-s -w' -o '$(CURDIR)/$@' github.com/goreleaser/goreleaser/v2
	@touch $@

.PHONY: image
image: bin/ko ## Write the image to dist/image as an OCI layout, without a daemon (PLATFORMS=linux/amd64)
	@$(static) go run ./fixtures/release/image -platforms '$(PLATFORMS)' dist/image

bin/ko: .ci/ko/go.mod .ci/ko/go.sum
	@echo 'building ko; the first time takes about a minute'
	@$(static) go -C .ci/ko build -ldflags '-s -w' -o '$(CURDIR)/$@' github.com/google/ko
	@touch $@

# The real servers that tests and the demo start, each built from its own module.
.PHONY: controlplane kubernetes crossplane provider gitea flux argocd source promtool controller-gen helm kubectl
controlplane: bin/controlplane ## Build bin/controlplane, the Kubernetes API server of tests and demo (minutes, once)
kubernetes: bin/kubernetes ## Build bin/kubernetes, the whole kube-apiserver that judges Headgate's checks of objects (minutes, once)
crossplane: bin/crossplane ## Build bin/crossplane, which tests compare Headgate with (minutes, once)
provider: bin/provider ## Build bin/provider, the real provider of examples/late-start (minutes, once)
flux: bin/flux ## Build bin/flux, which tests run next to Headgate (minutes, once)
argocd: bin/argocd ## Build bin/argocd, which tests move a platform from and to (minutes, once)
source: bin/source ## Build bin/source, Flux's source-controller, whose artifacts tests apply (minutes, once)
promtool: bin/promtool ## Build bin/promtool, which checks the alert rules of examples/monitoring (minutes, once)
controller-gen: bin/controller-gen ## Build bin/controller-gen, which writes the CRD of a Sync (a minute, once)
helm: bin/helm ## Build bin/helm, which renders and checks the chart of examples/chart (minutes, once)
kubectl: bin/kubectl ## Build bin/kubectl, which runs the commands of our pages (a minute, once)
gitea: bin/gitea ## Build bin/gitea, the forge that tests use (minutes, once; needs a C compiler)

programs := $(patsubst fixtures/server/%/go.mod,%,$(wildcard fixtures/server/*/go.mod))
$(foreach p,$(programs),$(eval bin/$p: $(filter-out %_test.go,$(wildcard fixtures/server/$p/*.go)) fixtures/server/$p/go.mod fixtures/server/$p/go.sum))
bin/gitea: export CGO_ENABLED = 1
bin/%: main = .
bin/flux: main = github.com/fluxcd/kustomize-controller
bin/source: main = github.com/fluxcd/source-controller
bin/promtool: main = github.com/prometheus/prometheus/cmd/promtool
bin/controller-gen: main = sigs.k8s.io/controller-tools/cmd/controller-gen
bin/helm: main = helm.sh/helm/v4/cmd/helm
$(programs:%=bin/%): bin/%:
	@echo 'building $*; the first time takes two to five minutes'
	$(call how,fixtures/server/$*) go -C fixtures/server/$* build -ldflags '-s -w' -o '$(CURDIR)/$@' $(main)
	@touch $@

.PHONY: check
check: format lint tidy licences vuln architecture platforms test ## Check everything, as CI does; the tests compare golden files

.PHONY: quick
quick: format lint architecture bin/summary ## Run the checks that need no server, in less than two minutes once everything is compiled
	@bin/summary env $(static) go test -json -vet=off $(TESTFLAGS) $(call except,$(served)) $(repository)

.PHONY: format
format:
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo 'not formatted; `make fix` does it:'; echo "$$files"; exit 1; fi

# The linter includes `go vet`. For the small programs of fixtures/server it runs only linters that do not analyse
# dependencies: the others would analyse all of Kubernetes and Gitea for minutes.
shallow := errcheck,errname,errorlint,forcetypeassert,gocritic,ineffassign,misspell,nolintlint,revive,thelper,unconvert,unused,whitespace
linted := $(patsubst %,bin/linted/%,$(filter-out .,$(coded)))
.PHONY: lint
lint: bin/linted/main $(linted)

# The first run, and so CI, lints everything. Later runs lint the packages that changed, and not those that import them,
# because those would take most of the time.
bin/linted/main: .golangci.yml go.mod go.sum bin/golangci-lint $(shell find cmd reconcile render examples fixtures -name '*.go' \
		-not -path '*/testdata/*' -not -path 'fixtures/server/*')
	@packages='$(if $(filter-out %.go,$?),./...,$(addprefix ./,$(sort $(dir $?))))' && \
		echo "golangci-lint, $$packages" && $(static) bin/golangci-lint run --config .golangci.yml $$packages
	@mkdir -p $(@D) && touch $@

$(foreach m,$(filter-out .,$(coded)),$(eval bin/linted/$m: $(wildcard $m/*.go $m/go.mod $m/go.sum)))
$(linted): bin/linted/%: .golangci.yml bin/golangci-lint
	@echo 'golangci-lint, $*' && cd $* && $(call how,$*) '$(CURDIR)/bin/golangci-lint' run \
		--config '$(CURDIR)/.golangci.yml' $(if $(filter fixtures/server/%,$*),--enable-only=$(shallow)) ./...
	@mkdir -p $(@D) && touch $@

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

# Scanning the small scanner itself shows in a moment whether the database can be reached.
.PHONY: vuln
vuln: bin/govulncheck
	@out=$$(bin/govulncheck -mode binary bin/govulncheck 2>&1) || case "$$out" in *'fetching vulnerabilities'*) \
		echo 'govulncheck: skipped, because its database cannot be reached'; exit 0;; esac; \
	bin/govulncheck ./cmd/headgate

# The test is named by its file: it reads sources, so the rest of the package need not compile.
.PHONY: architecture
architecture:
	@go test cmd/headgate/architecture_test.go

# The other systems that a release is for. Only the program is compiled for them: some tests use what only Linux and macOS have.
.PHONY: platforms
platforms:
	@for system in windows darwin; do echo "go build, $$system" && GOOS=$$system $(static) go build ./cmd/... ./reconcile/... ./render/... || exit 1; done

# Where nothing compiles C, the tests that need Gitea say so.
servers := $(programs:%=bin/%)
ifeq ($(shell command -v "$$(go env CC)"),)
servers := $(filter-out bin/gitea,$(servers))
endif

# The linter vets, so the tests do not. Tests without the detector are built like the program and the linter's input, so that everything
# is compiled once. The test cache considers variables, but neither files outside of the module nor programs. HEADGATE_CORPUS_STATE
# changes with the corpus, and HEADGATE_PROGRAM with the packages of the program, so a changed test or document repeats no test that
# starts the program. Tests with servers wait more than they work, so six packages are tested at a time.
#
# A comment above a test says when it runs, if that is not always:
#
#	//test:long     CI runs it (WHOLE=1), and a check before a commit does not
#	//test:unraced  it runs without the detector: it starts the program hundreds of times, repeats a pass for each row of a table, or
#	                reads the corpus in one goroutine. With the detector it takes up to twenty times as long, and finds nothing more
#	//test:story    of the end-to-end suites, a check before a commit runs only these
marked  = $(shell grep -rhA1 --include='*_test.go' '^//test:.*$1' $(trees) | sed -n 's/^func \(Test[A-Za-z0-9_]*\).*/\1/p' | sort -u)
slow    = $(call marked,unraced)
long    = $(call marked,long)
stories = $(call marked,story)
holding = $(shell grep -rl --include='*_test.go' '^//test:.*$1' $(trees) | xargs -n1 dirname | sort -u)

# The tests of cmd/headgate that read the repository itself, which are those in files with root(t). They run apart from the others:
# every change of a source or a document repeats them, and the scripts of the program take a minute. With -run, all run together.
reading = $(if $(findstring -run,$(TESTFLAGS)),,$(shell sed -n 's/^func \(Test[A-Za-z0-9_]*\).*/\1/p' $$(grep -l 'root(t)' cmd/headgate/*_test.go)))

# CI runs all tests (WHOLE=1). A check before a commit leaves the longest ones to CI, and the race detector: they take two thirds of
# the time.
WHOLE ?= $(findstring -run,$(TESTFLAGS))

named = ^($(subst $(eval) ,|,$(strip $1)))$$
# Go's own linker takes half of the time of the system's, which is the default with the detector.
detector = race='-race -ldflags=-linkmode=internal'; go -C .ci/summary build $$race -o /dev/null . 2>/dev/null || race=-race; \
	go -C .ci/summary build $$race -o /dev/null . 2>/dev/null || { race=; echo 'no C compiler, or cgo is off: testing WITHOUT the race detector'; };
tests = env $(static) go test -json -vet=off -timeout=40m
repository = $(if $(reading),-- $(tests) -run='$(call named,$(reading))' $(TESTFLAGS) ./cmd/headgate)
whole = env GOFLAGS="$$GOFLAGS -trimpath" go test -json -vet=off -timeout=40m -p=2 $$race -skip='$(call named,$(slow) $(reading))' $(TESTFLAGS) $(raced:%=./%) \
	-- $(tests) -p=3 $(TESTFLAGS) $(addprefix ./,$(filter-out $(raced),$(slowest))) $(call except,$(raced)) \
	-- $(tests) -p=1 -run='$(call named,$(slow) $(reading))' $(TESTFLAGS) $(addprefix ./,$(call holding,unraced))
short = $(tests) -p=4 -skip='$(call named,$(long) $(reading))' $(TESTFLAGS) $(addprefix ./,$(filter-out $(suites),$(slowest))) $(call except,$(suites)) \
	-- $(tests) -p=2 -run='$(call named,$(stories))' $(TESTFLAGS) $(addprefix ./,$(call holding,story)) $(repository)
export HEADGATE_CORPUS_STATE := $(shell ls -ln '$(or $(HEADGATE_CORPUS),../shared/corpus)' 2>/dev/null | cksum)

.PHONY: test
test: $(servers) bin/summary ## Run the tests, and with WHOLE=1 also those that take longest; then the race detector watches where goroutines meet (TESTFLAGS=-run=…)
	@export HEADGATE_PROGRAM="$$($(static) go list -tags=grpcnotrace -deps -export -f '{{.BuildID}}' ./cmd/headgate | cksum)"; \
	$(if $(WHOLE),$(detector)) \
	bin/summary $(if $(WHOLE),$(whole),$(short)) \
		$(foreach m,$(nested),-- env $(call how,$m) go -C $m test -json -vet=off -timeout=40m $(TESTFLAGS) ./...)
	@$(if $(WHOLE),,echo 'The longest tests and the race detector are left to CI; WHOLE=1 runs them as well.')

bin/summary: $(wildcard .ci/summary/*.go) .ci/summary/go.mod
	@$(static) go -C .ci/summary build -o '$(CURDIR)/$@' .
	@touch $@

.PHONY: update
update: $(servers) ## Rewrite golden files; read their diff like code
	@for pkg in $(call having,fixtures/golden); do go test $$pkg -update || exit 1; done

.PHONY: generate
generate: bin/controller-gen ## Write the CRD of a Sync and the methods of its types; a test compares them
	@cd reconcile/api/v1alpha1 && '$(CURDIR)/bin/controller-gen' paths=. object crd output:crd:dir='$(CURDIR)/examples/controller/crds'

.PHONY: bench
bench: bin/dyff $(filter bin/gitea,$(servers)) ## Measure each figure against its target, in about four hours, or less than two with BENCHFLAGS= (BENCH=regexp, BENCHFLAGS='-n 5'); then run the benchmarks in the code
	@$(static) go run ./fixtures/bench -run '$(BENCH)' $(BENCHFLAGS)
	@for pkg in $(call having,^func Benchmark); do go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) -timeout 120m $$pkg || exit 1; done

bin/dyff: .ci/dyff/go.mod .ci/dyff/go.sum
	$(static) go -C .ci/dyff build -ldflags '-s -w' -o '$(CURDIR)/$@' github.com/homeport/dyff/cmd/dyff
	@touch $@

.PHONY: mutate
mutate: bin/controlplane ## Break the code that decides what to delete and activate, one place at a time, and check that a test fails (an hour on two cores; MUTANTS=regexp)
	@$(static) go run ./fixtures/mutate -run '$(MUTANTS)'

.PHONY: fuzz
fuzz: ## Fuzz every target for FUZZTIME (FUZZ=regexp)
	@for pkg in $(call having,^func Fuzz); do \
		for target in $$(go test -list '$(FUZZ)' $$pkg | grep '^Fuzz'); do \
			echo "$$pkg $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
		done || exit 1; \
	done

.PHONY: attack
attack: bin/controlplane ## Have the program read every bomb and the largest honest inputs within a memory limit, and attack it with 500 syncs (minutes; CI runs a short form)
	go test -v -count=1 -timeout=60m ./fixtures/attack -whole
	go test -v -count=1 -timeout=60m ./fixtures/loop -run '^(TestKilledWithManyPasses|TestManySyncsOfOneDeletedCRD|TestBesideBrokenSyncs|TestServerAwayFromManySyncs)$$' -syncs 500

.PHONY: mutations
mutations: ## Judge how previews compare MUTATIONS mutated CRDs of real providers, by the code of the API server (MUTATIONS=10000, in about ten minutes of CPU; CI runs 400)
	go test -v -count=1 -timeout=10h ./render/schema -run 'TestDifferential|TestGrowsIsSafe' -mutations $(or $(MUTATIONS),10000)

.PHONY: soak
soak: $(filter-out bin/gitea,$(servers)) ## Make SOAK random edits, deletions, commits and kills while the API server and an admission webhook fail at random, without and with Crossplane, each for at most MINUTES (SOAK=500 SEED="1 2 3" TIMES=3); then run an hour's worth of quiet passes with Crossplane
	for seed in $(SEED); do \
		HEADGATE_SOAK=$(SOAK) HEADGATE_SOAK_SEED=$$seed HEADGATE_SOAK_MINUTES=$(MINUTES) go test -v -count=$(TIMES) -timeout=10h ./fixtures/soak || exit 1; \
	done
	go test -count=1 -timeout=120m ./fixtures/beside -passes=60

.PHONY: demo
demo: build ## Run the whole story on a real API server, which the demo builds in the background (FORGE=1 adds a forge, CROSSPLANE=1 a real Crossplane; CORPUS=package.tar.gz uses a real package)
	@CORPUS='$(CORPUS)' sh examples/quickstart/demo.sh $(if $(FORGE),--forge) $(if $(CROSSPLANE),--crossplane)

.PHONY: site
site: .site/node_modules/.package-lock.json ## Build the documentation as a site in .site/.build/dist, and check its links (needs npm, and the network once)
	@npm --prefix .site run --silent build

.site/node_modules/.package-lock.json: .site/package.json .site/package-lock.json
	npm --prefix .site ci --ignore-scripts --no-audit --no-fund
	@touch $@

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
