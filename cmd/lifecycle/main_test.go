package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"cupola/runtime/contract"
	"cupola/test/goprogram"
)

// programsDir holds the programs as Install lays them out, built once for all
// tests of this package.
var programsDir string

func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "lifecycle")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if out, err := exec.Command("init/build", filepath.Join(dir, "init")).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "init/build: %v\n%s", err, out)
		return 1
	}
	for _, pkg := range []string{"lifecycle", "lifecycle/launcher", "lifecycle/fetch", "lifecycle/fileserver"} {
		if err := goprogram.Build("", "cupola/cmd/"+pkg, filepath.Join(dir, filepath.Base(pkg))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	for name, target := range contract.Links() {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	programsDir = dir
	return m.Run()
}
