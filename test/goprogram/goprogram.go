// Package goprogram builds the Go programs that tests and benchmarks run in containers.
package goprogram

import (
	"fmt"
	"os"
	"os/exec"
)

// Build builds a static program, the package pkg of the module of dir, as the file out. No dir is the caller's.
// It has the product's tags, so that the packages that both need are compiled once.
func Build(dir, pkg, out string) error {
	cmd := exec.Command("go", "build", "-tags", "netgo osusergo", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, pkg)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", pkg, err, said)
	}
	return nil
}
