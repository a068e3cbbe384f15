# cupola: see `make help`.
SHELL      := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
VERSION    ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
TAGS       := -tags "netgo osusergo"
FUZZTIME   ?= 10s
# All is compiled alike, so that building, linting and testing share what they
# compile; without what debuggers read, which is linked into nothing. A compiler
# that does not collect garbage takes a sixth less time.
export GOFLAGS := $(GOFLAGS) -trimpath -gcflags=all=-dwarf=false '-toolexec=env GOGC=off GOMEMLIMIT=1GiB'
export CGO_ENABLED := 1
# Without what gcc adds for debuggers: the linter, which has other flags, then compiles to the same bytes, and takes what is compiled.
export CGO_CFLAGS  := -O2
# Tests are vetted by lint.
TEST       := go test $(TAGS) -vet=off -ldflags "-s -w"
# The race detector waits for other goroutines at the end of each test program, by default for a second.
# SQLite's own code, translated from C, and that of password hashes have no goroutines, and take ten times as long when each access is watched.
RACE       := GORACE=atexit_sleep_ms=100 $(TEST) -race '-gcflags=modernc.org/sqlite/lib=-race=false -d=checkptr=0' '-gcflags=modernc.org/libc/...=-race=false -d=checkptr=0' '-gcflags=golang.org/x/crypto/blowfish=-race=false -d=checkptr=0'
KUBE_CACHE    ?= $(HOME)/.cache/cupola/kube
SYSTEMD_CACHE ?= $(HOME)/.cache/cupola/systemd
# Tests that take minutes, each with what it tests before all else: they run when that changed, and always in test-all.
ONCE_KUBE       = .ci/once kube server/kube runtime/cell/conformance test/kube .ci/image cmd/cupola/apps cmd/cupola/cells cmd/cupola/deployment $(wildcard test/e2e/*/kube*_test.go) --
ONCE_SYSTEMD    = .ci/once systemd server/systemd test/systemd cmd/cupola/upgrade cmd/cupola/install.go cmd/cupola/upgrade.go --
ONCE_TOOLCHAINS = .ci/once toolchains cmd/lifecycle rootfs/debian rootfs/stack examples test/e2e/push/toolchain_test.go --
ONCE_WEB        = .ci/once web web server/console server/machine test/e2e/web --
ONCE_BOSH       = .ci/once bosh server/bosh server/boshapi cmd/cupola/deployment cmd/lifecycle/jobscript cmd/lifecycle/monit test/e2e/bosh --
ONCE_BACKUP     = .ci/once backup server/admin store/migrations cmd/cupola/backups cmd/cupola/transfer test/e2e/backup --
ONCE_DATA       = .ci/once data server/databroker server/databackup server/osb/builtin examples/services test/e2e/data --
SUDO       := $(if $(filter 0,$(shell id -u)),,sudo -E env "PATH=$(PATH)")

STARTER    := runtime/container/starter/program/bin/starter
LAUNCH     := runtime/container/starter/program/bin/launch
PROGRAMS   := $(addprefix runtime/lifecycle/bin/,lifecycle launcher fileserver init fetch) $(STARTER) $(LAUNCH)
# As the daemon embeds them.
HELPERS    := $(foreach p,$(PROGRAMS),$(subst /bin/,/packed/,$(p)).zst)
SOURCES    := $(shell find cmd server store runtime rootfs examples web -name '*.go' -o -path '*/migrations/*.sql' -o -path '*/baseline/*.sql' -o -path 'web/dist/*' -type f 2>/dev/null) go.mod

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: deps
deps: ## install what building needs, or say what to install
	@.ci/deps build

.PHONY: build
build: bin/cupola ## build bin/cupola, one static binary

bin/cupola: $(SOURCES) $(HELPERS)
	@.ci/deps build
	go build $(TAGS) -ldflags "-s -w -extldflags=-static -X cupola/cmd/cupola/command.release=$(VERSION)" -o $@ ./cmd/cupola

.PHONY: image
image: build ## make bin/cupola.oci.tar, an image of bin/cupola, for a cluster that it is to run in
	.ci/image bin/cupola bin/cupola.oci.tar cupola:$(VERSION)

.PHONY: release
release: ## make tarballs and Debian packages of HEAD for amd64 and arm64, with checksums and an SBOM, in bin/release
	.ci/release bin/release

# Without Go, or with an old one, everything else fails first, and less clearly.
.PHONY: go
go:
	@.ci/deps go
$(PROGRAMS) $(HELPERS) bin/cupola: | go

# The programs that run inside containers: static, and in any image, since nothing of them needs cgo. The same sources give the same bytes at each commit, so that
# what embeds them is tested again only when they changed.
runtime/lifecycle/bin/lifecycle: $(shell find cmd/lifecycle rootfs/unpack runtime/contract runtime/pattern runtime/fault -name '*.go') go.mod
	@mkdir -p $(@D)
	go build $(TAGS) -buildvcs=false -ldflags "-s -w" -o $@ ./cmd/lifecycle

runtime/lifecycle/bin/launcher: $(shell find cmd/lifecycle/launcher cmd/lifecycle/launch cmd/lifecycle/vcap runtime/contract -name '*.go') go.mod
	@mkdir -p $(@D)
	go build $(TAGS) -buildvcs=false -ldflags "-s -w" -o $@ ./cmd/lifecycle/launcher

runtime/lifecycle/bin/fileserver: $(shell find cmd/lifecycle/fileserver cmd/lifecycle/static runtime/contract -name '*.go') go.mod
	@mkdir -p $(@D)
	go build $(TAGS) -buildvcs=false -ldflags "-s -w" -o $@ ./cmd/lifecycle/fileserver

runtime/lifecycle/bin/init: cmd/lifecycle/init/init.c cmd/lifecycle/init/build
	@mkdir -p $(@D)
	cmd/lifecycle/init/build $@

runtime/lifecycle/bin/fetch: $(shell find cmd/lifecycle/fetch cmd/lifecycle/stage rootfs/unpack runtime/contract runtime/gitpack runtime/pattern runtime/tunnel runtime/fault -name '*.go' 2>/dev/null) go.mod
	@mkdir -p $(@D)
	go build $(TAGS) -buildvcs=false -ldflags "-s -w" -o $@ ./cmd/lifecycle/fetch

# The program that starts containers, static as well: libcontainer executes it in any image. Its seccomp filter is ours.
$(STARTER): $(shell find cmd/starter runtime/container/starter -name '*.go' 2>/dev/null) go.mod
	@.ci/deps build
	@mkdir -p $(@D)
	go build $(TAGS) -buildvcs=false -ldflags "-s -w -extldflags=-static" -o $@ ./cmd/starter

# Its counterpart without libcontainer.
$(LAUNCH): cmd/launch/launch.c cmd/launch/build
	@.ci/deps build
	@mkdir -p $(@D)
	cmd/launch/build $@

runtime/lifecycle/packed/%.zst: runtime/lifecycle/bin/%
	GOOS= GOARCH= CC= go run $(TAGS) ./.ci/compress $< $@

runtime/container/starter/program/packed/%.zst: runtime/container/starter/program/bin/%
	GOOS= GOARCH= CC= go run $(TAGS) ./.ci/compress $< $@

.PHONY: demo
demo: build ## run the demo: a daemon, an app pushed from source, its page
	$(SUDO) bin/cupola demo

# of runs a command on the packages of a class of .ci/packages, if there are any.
of = packages=$$(.ci/packages $(1)); if [ -n "$$packages" ]; then $(2) $$packages; fi

.PHONY: check
check: $(HELPERS) ## vet, lint and test what changed since main; test what imports that, too
	@.ci/deps build
	$(call of,edited,.ci/lint)
	$(call of,changed,$(TEST) -short)

.PHONY: test
test: ## run all that CI runs
	@.ci/deps build
	@.ci/deps test & deps=$$!; $(MAKE) build && wait $$deps
	@$(SUDO) bin/cupola doctor --leaks > bin/leaks || echo 'leaks of others, left as they are:'; cat bin/leaks
	@failed=0; MAKE='$(MAKE)' .ci/stages again:e2e nice:lint again:test-root nice:again:test-unit-long again:e2e-parts nice:again:test-unit-raced nice:again:test-unit-plain \
	    again:once-web again:once-data again:once-kube whole:once-systemd again:once-backup again:once-bosh again:once-toolchains || failed=1; \
	  ! comm -13 <(grep '^ ' bin/leaks | sort) <($(SUDO) bin/cupola doctor --leaks | grep '^ ' | sort) | grep . || { echo 'the tests leaked these'; failed=1; }; \
	  exit $$failed

.PHONY: once-web
once-web:
	@$(ONCE_WEB) $(MAKE) test-web

.PHONY: once-bosh once-backup once-data
once-bosh:
	@$(ONCE_BOSH) $(MAKE) test-bosh

once-backup:
	@$(ONCE_BACKUP) $(MAKE) test-backup

once-data:
	@$(ONCE_DATA) $(MAKE) test-data

.PHONY: once-kube
once-kube:
	@if [ -n "$(ALWAYS)$(wildcard $(KUBE_CACHE)/kube-*)" ]; then $(ONCE_KUBE) $(MAKE) test-kube; \
	  else echo 'test-kube has no control plane here yet: make test-kube builds one, in minutes'; fi

.PHONY: once-systemd
once-systemd:
	@if [ -n "$(ALWAYS)" ] || [ -e $(SYSTEMD_CACHE)/bookworm ]; then $(ONCE_SYSTEMD) $(MAKE) test-systemd; \
	  else echo 'test-systemd has no virtual machine here yet: make test-all makes one'; fi

# REACHABLE is whether Debian's packages can be downloaded, from this machine's apt source.
REACHABLE = curl -sfLo /dev/null -m 30 "$$(apt-get indextargets --format '$$(REPO_URI)dists/$$(RELEASE)/InRelease' 'Created-By: Packages' | head -n 1)"
.PHONY: once-toolchains
once-toolchains:
	@if [ -n "$(ALWAYS)" ] || $(REACHABLE); then $(ONCE_TOOLCHAINS) $(MAKE) test-toolchains; \
	  else echo 'test-toolchains needs packages of Debian, which cannot be downloaded here now'; fi

.PHONY: test-all
test-all: ## run every test there is, for hours: nightly
	$(MAKE) ALWAYS=1 BASE= test test-race chaos test-newcomer test-cgroup2
	@if git diff --quiet HEAD; then git rev-parse HEAD >.ci/tested; echo 'all passed: commit .ci/tested, and CI tests what changes after it'; fi

.PHONY: test-unit
test-unit: test-unit-raced test-unit-long test-unit-plain ## run the tests that need no root, with the race detector where it is cheap

.PHONY: test-unit-raced test-unit-long test-unit-plain
test-unit-raced: $(HELPERS)
	$(call of,race,$(RACE) -short -timeout 20m)

# What takes long with the race detector, without it: these tests wait more than they compute.
test-unit-long: $(HELPERS)
	$(call of,long,$(TEST) -run "$$(.ci/packages long-tests)")

test-unit-plain: $(HELPERS)
	$(call of,plain,$(TEST))
	cd server/bbs/bbspb/generate && $(TEST) . # a separate module

.PHONY: test-race
test-race: $(HELPERS) ## run the tests of all packages in which something runs beside something else, with the race detector
	$(call of,concurrent,$(RACE) -short -timeout 60m)

.PHONY: test-root
test-root: build ## run the tests on real containers, mounts and networks
	tests=$$(go run $(TAGS) ./test/roottests $$(.ci/packages root)); \
	  $(call of,root,$(REAL) -p 1 -timeout 40m -run "$$tests")

.PHONY: again
again: # the tests RUN of PACKAGE: .ci/stages runs those alone that failed beside others
	CUPOLA_TEST_TOOLCHAINS=1 CUPOLA_KUBE_BIN=$$(if ls -d $(KUBE_CACHE)/kube-* >/dev/null 2>&1; then test/kube/build $(KUBE_CACHE); fi) \
	  $(REAL) -count=1 -parallel 1 -timeout 20m -run '$(RUN)' $(PACKAGE)

# Daemons, containers and clients of a test keep a processor busy or wait for timers: more of them at once than this end no sooner.
REAL       = $(SUDO) env CUPOLA_TEST_ROOT=1 CUPOLA=$(CURDIR)/bin/cupola CUPOLA_TEST_ALL=$(ALWAYS) $(TEST)
E2E        = $(REAL) -count=1 -p $(shell nproc) -parallel 4 -timeout 40m
# Areas of one part of the product: one test of each is always run, the others when that part changed.
E2E_PARTS    = $(addprefix ./test/e2e/,bosh backup data)
ONE_OF_EACH  = ^(TestDeployment|TestABackupBringsEveryAppBack|TestServiceFiles)$$
# Those that take longest come first, so that none is left over at the end.
E2E_LONG     = $(addprefix ./test/e2e/,restart push images routing chaos)
E2E_PACKAGES = $(E2E_LONG) $(filter-out ./test/e2e/web $(E2E_PARTS) $(E2E_LONG),$(patsubst %/,%,$(patsubst %,./%,$(dir $(wildcard test/e2e/*/main_test.go)))))

.PHONY: e2e
e2e: build ## drive the built daemon as a user does; e2e-parts, test-bosh, test-backup, test-data and test-web have the rest
	$(E2E) $(E2E_PACKAGES)

.PHONY: e2e-parts
e2e-parts: build ## run one test of each of test-bosh, test-backup and test-data
	$(E2E) -run '$(ONE_OF_EACH)' $(E2E_PARTS)

.PHONY: test-bosh test-backup test-data
test-bosh: build ## run BOSH deployments as operators do; in make test when their packages changed
	$(E2E) -skip '$(ONE_OF_EACH)' ./test/e2e/bosh

test-backup: build ## make and restore backups of all kinds, move apps; in make test when their packages changed
	$(E2E) -skip '$(ONE_OF_EACH)' ./test/e2e/backup

test-data: build ## use the data services of the built-in broker; in make test when their packages changed
	$(E2E) -skip '$(ONE_OF_EACH)' ./test/e2e/data

.PHONY: test-web
test-web: build ## drive the web console in Chromium, on real daemons; in make test once for each change of the console
	@.ci/deps test
	$(E2E) -p 1 ./test/e2e/web

.PHONY: test-toolchains
test-toolchains: build ## build a stack with the toolchains of the buildpacks, of Debian's packages, and push the examples to it
	@.ci/deps test
	CUPOLA_TEST_TOOLCHAINS=1 $(E2E) -v -run 'TestToolchains$$' ./test/e2e/push

CHAOS_ROUNDS ?= 60
CYCLES       ?= 2000

.PHONY: chaos
chaos: build ## break the daemon in many ways while tenants work, and push and delete apps, and take its backups' target away: some two hours; e2e has a short form
	@.ci/deps test
	$(SUDO) env CUPOLA_TEST_ROOT=1 CUPOLA=$(CURDIR)/bin/cupola CUPOLA_IDLE_REQUESTS=1000 $(TEST) -count=1 -timeout 1h -v -run 'TestIdleTenant$$' ./test/e2e/chaos
	$(SUDO) env CUPOLA_TEST_ROOT=1 CUPOLA=$(CURDIR)/bin/cupola CUPOLA_CHAOS_ROUNDS=$(CHAOS_ROUNDS) CUPOLA_CYCLES=$(CYCLES) \
	  $(TEST) -count=1 -timeout 3h -v -run 'TestChaos$$|TestCycles$$' ./test/e2e/chaos
	$(SUDO) env CUPOLA_TEST_ROOT=1 CUPOLA=$(CURDIR)/bin/cupola CUPOLA_AWAY=1h $(TEST) -count=1 -timeout 2h -v -run 'TestATargetThatIsAway$$' ./test/e2e/backup
	$(SUDO) env CUPOLA_TEST_ROOT=1 CUPOLA_NTH_CALLS=all $(TEST) -count=1 -timeout 1h -v -run 'TestNthCallFails$$' ./store

.PHONY: test-newcomer
test-newcomer: ## make a release twice, which must be the same, and be a newcomer with it on a fresh Debian 12 and 13
	@.ci/deps systemd
	rm -rf bin/clone && git clone -q . bin/clone && bin/clone/.ci/release bin/again "$$(go env GOHOSTARCH)"
	.ci/release bin/release "$$(go env GOHOSTARCH)" && cmp bin/release/SHA256SUMS bin/again/SHA256SUMS
	$(SUDO) test/newcomer/run bin/release $(SYSTEMD_CACHE) bookworm trixie

.PHONY: test-kube
test-kube: build ## bring deployments into a Kubernetes control plane, and pods onto a node; building both takes minutes, once
	@.ci/deps kube
	program=$$(test/kube/build $(KUBE_CACHE)); \
	  $(SUDO) env CUPOLA_TEST_ROOT=1 CUPOLA=$(CURDIR)/bin/cupola CUPOLA_KUBE_BIN=$$program CUPOLA_TEST_ALL=$(ALWAYS) $(TEST) -count=1 -timeout 60m \
	  -run 'TestLive$$|TestNode$$|TestConformance$$|TestDeploymentOnKubernetes|TestAppOnKubernetes' ./server/kube/apply ./server/kube/kubetest ./server/kube/podcell ./test/e2e/bosh ./test/e2e/images

.PHONY: test-kube-pods
test-kube-pods: build ## measure with CUPOLA_KUBE_PODS (2000) pods on nodes that pretend to run them; 10000 take seven minutes
	@.ci/deps kube
	program=$$(test/kube/build $(KUBE_CACHE)); \
	  $(SUDO) env CUPOLA_TEST_ROOT=1 CUPOLA=$(CURDIR)/bin/cupola CUPOLA_KUBE_BIN=$$program CUPOLA_KUBE_PODS=$${CUPOLA_KUBE_PODS:-2000} $(TEST) -count=1 -timeout 60m -v -run 'OfManyPods$$' ./test/e2e/images

.PHONY: test-systemd
test-systemd: build ## live through install, upgrade and reboot in a virtual machine: an emulated one takes six minutes
	@.ci/deps systemd
	$(SUDO) test/systemd/run bin/cupola $(SYSTEMD_CACHE)

# Without the browser's tests, at which user-mode Linux hangs.
CGROUP2 ?= $(filter-out ./test/e2e/web,$(patsubst %/doc.go,./%,$(wildcard test/e2e/*/doc.go))) ./runtime/container ./runtime/cell ./runtime/network ./runtime/users ./rootfs ./rootfs/disk ./rootfs/packed ./rootfs/volume

.PHONY: test-cgroup2
test-cgroup2: build ## run the e2e and root tests on cgroup v2, in a virtual machine; not in CI. RUN and SKIP=PATTERN, CGROUP2=PACKAGES
	@.ci/deps test
	@.ci/deps systemd
	@for pkg in $(CGROUP2); do (set -x; $(TEST) -c -o $$pkg/$$(basename $$pkg).test $$pkg); done
	$(SUDO) env RUN='$(RUN)' SKIP='$(SKIP)' test/systemd/cgroup2 $(SYSTEMD_CACHE) $(foreach pkg,$(CGROUP2),$(pkg)/$(notdir $(pkg)).test)

.PHONY: lint
lint: web-check ## vet and lint; with BASE=COMMIT, what changed since then
	$(if $(BASE),$(call of,edited,.ci/lint),@.ci/lint ./...)

.PHONY: web
web: ## make web/dist of web/src and web/vendor
	cd web/build && go run $(TAGS) .

.PHONY: web-check
web-check: ## fail where web/dist is not what the sources give, or one of their lines is too long
	cd web/build && go run $(TAGS) . -check

.PHONY: proto
proto: ## generate the messages of the BBS API; a test fails where this was forgotten
	cd server/bbs/bbspb && go generate .

.PHONY: fuzz
fuzz: $(HELPERS) ## run every fuzz target for FUZZTIME (10s)
	@for pkg in $$(go list $(TAGS) ./...); do \
	  dir=$$(go list $(TAGS) -f '{{.Dir}}' $$pkg); \
	  for f in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go 2>/dev/null | cut -d' ' -f2); do \
	    echo "== $$pkg $$f"; go test $(TAGS) -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$pkg; \
	  done; done

.PHONY: bench
bench: build ## measure, side by side with runc, podman and nginx
	@.ci/deps bench
	$(SUDO) bench/run

.PHONY: clean
clean: ## remove what was built
	rm -rf bin $(PROGRAMS) $(HELPERS)
