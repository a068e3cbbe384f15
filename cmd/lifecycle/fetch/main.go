//go:build linux

// The fetch command downloads a buildpack by URL inside a staging container. It
// is kept apart from the lifecycle command, whose tools must start fast: a git
// client takes a millisecond of every start.
package main

import (
	"os"

	"cupola/runtime/lifecycle/fetch"
)

func main() { os.Exit(fetch.Main(os.Args[1:])) }
