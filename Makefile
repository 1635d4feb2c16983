# The commands of the house; the work is in scripts/ and CMakePresets.json.
.DEFAULT_GOAL := help
.PHONY: help demo build test bench bench-peers format lint check install clean
SHELL := /bin/bash

PREFIX ?= /usr/local
DESTDIR ?=

help:
	@echo 'make demo      install what is needed, build, show Trocar on a real model'
	@echo 'make build     build/release/trocar'
	@echo 'make test      the whole test suite'
	@echo 'make bench     the speed table'
	@echo 'make bench-peers   fault injection against PyTorchFI and torch hooks (fetches 3 GB)'
	@echo 'make format    lay out the sources as .clang-format says'
	@echo 'make lint      clang-tidy on what changed since it last passed, and scripts/check'
	@echo 'make install   install under PREFIX ($(PREFIX)); DESTDIR goes in front'
	@echo 'make clean     delete build/; .deps/ stays'

demo:
	@scripts/setup demo
	@scripts/build release trocar_cli
	@scripts/demo

build:
	@scripts/setup demo
	@scripts/build release trocar_cli

test:
	@scripts/test

bench:
	@scripts/setup bench
	@scripts/bench

bench-peers:
	@scripts/setup bench-peers
	@scripts/bench-peers

format:
	@scripts/setup lint
	@scripts/format

lint:
	@scripts/setup lint
	@scripts/check
	@scripts/lint

check:
	@scripts/check

install: build
	@scripts/build release trocar
	@DESTDIR='$(DESTDIR)' cmake --install build/release --prefix '$(PREFIX)'

clean:
	rm -rf build
