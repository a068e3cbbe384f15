SHELL := /bin/bash
TAGS := seccomp netgo osusergo

.PHONY: build
build: ## build bin/cupola
	@:
