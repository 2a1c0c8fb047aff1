# doppel: `make` builds, `make demo` shows, `make test` checks. `make help` lists all targets.
PREFIX ?= /usr/local

all: build/build.ninja
	@cmake --build build --target product

build/build.ninja: CMakePresets.json
	@cmake --preset release

clean:
	rm -rf build

.PHONY: all clean
