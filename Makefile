# doppel: `make` builds, `make demo` shows, `make test` checks. `make help` lists the targets.
#
# The work is done by CMake (CMakePresets.json) and by scripts/; this file only names it.
PREFIX ?= /usr/local
PLANTED ?= 100000

all: ## build build/doppel, build/libdoppel.a and build/libdoppel.so (the default)
	@scripts/install-deps --check build
	@scripts/build release product

demo: ## install what is missing, build, and look for copies among this machine's licence texts
	@scripts/install-deps build
	@scripts/build release product
	@scripts/demo

wheel: ## make the Python wheel and its sdist, in build/wheel
	@scripts/install-deps build wheel
	@scripts/wheel

check: ## build, and run what needs no Redis, Kafka or browser: three minutes, for daily work
	@scripts/install-deps build test wheel
	@scripts/test check

test: ## install what is missing, build, and run every test at reduced size
	@scripts/install-deps build test wheel services
	@scripts/test quick

test-full: ## the same at full size, and the tests on 64-bit ARM under emulation; takes hours
	@scripts/install-deps build test wheel services cross
	@scripts/test full

bench: ## measure, beside the peers; PART=cores (or text, near, dedup, trim, engine, serve, redis, stream, python): that part alone
	@scripts/install-deps build bench services
	@scripts/build release product bench
	@bench/run $(if $(PART),--part $(PART))

accuracy: ## measure precision and recall: labelled sets in $DOPPEL_DATA, planted copies (PLANTED=100000), common claims
	@scripts/install-deps build test
	@scripts/build release product accuracy
	@tests/accuracy/run build --planted $(PLANTED)

install: all ## install into PREFIX (/usr/local): header, libraries, pkg-config file, command, man page, completion
	@cmake --install build --prefix '$(PREFIX)'
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi

format: ## format all C and C++ files
	@scripts/gates format --fix

deps: ## install the packages that building and testing need
	@scripts/install-deps build test wheel services

clean: ## remove build/
	rm -rf build

help:
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

.PHONY: all demo wheel check test test-full bench accuracy install format deps clean help
