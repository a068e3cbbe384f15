// Package builder stages a buildpack app inside its container, as Cloud
// Foundry's builder does: it runs the buildpacks' scripts over the app and
// packs the droplet. Copying and packing are done here, so that the stack
// needs no tools.
package builder

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"cupola/cmd/lifecycle/vcap"
	"cupola/runtime/contract"
)

// builder is one staging.
type builder struct {
	config
	contents string // what becomes the droplet, but for the app
	stdout   io.Writer
	stderr   io.Writer
	phases   []contract.Phase
}

// Main stages as args (without the program's name) say and returns the exit
// code, one of Cloud Foundry's.
func Main(args []string) int {
	c, err := parseFlags(args, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if url := vcap.DatabaseURL(os.Getenv(contract.EnvServices)); url != "" {
		if err := os.Setenv(contract.EnvDatabaseURL, url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 5 // Cloud Foundry's code for it
		}
	}
	b := &builder{config: c, stdout: os.Stdout, stderr: os.Stderr}
	if err := b.run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitCode(err)
	}
	return 0
}

func (b *builder) run() error {
	if err := b.makeDirectories(); err != nil {
		return errSetup.by(err)
	}
	defer func() { _ = os.RemoveAll(b.contents) }()
	chosen, err := b.choose()
	if err != nil {
		return err
	}
	result, err := b.build(chosen)
	if err != nil {
		// The result tells which buildpacks took part, also when they failed.
		_ = b.writeResult(result, chosen)
		return err
	}
	if err := b.writeResult(result, chosen); err != nil {
		return err
	}
	return b.pack()
}

// choice is the buildpacks that stage the app.
type choice struct {
	keys   []string // all, in order
	dir    string   // of the last
	detect string   // what its detect script printed
}

// choose finds the buildpack that takes the app, or takes those named.
func (b *builder) choose() (choice, error) {
	if !b.skipDetect {
		return b.detect()
	}
	last := b.order[len(b.order)-1]
	c := choice{keys: b.order}
	for _, name := range b.suppliers() {
		dir, err := b.buildpackDir(name)
		if err != nil {
			return c, errSupply.by(err)
		}
		if !exists(filepath.Join(dir, "bin", "supply")) {
			return c, errNoSupply
		}
	}
	dir, err := b.buildpackDir(last)
	if err != nil {
		return c, errSupply.by(err)
	}
	c.dir = dir
	return c, nil
}

// build runs the scripts and collects the processes.
func (b *builder) build(c choice) (contract.Result, error) {
	if err := b.supply(); err != nil {
		return contract.Result{}, err
	}
	if err := b.finalize(c.dir); err != nil {
		return contract.Result{}, errCompile.by(err)
	}
	processes, err := b.processes(c.dir)
	if err != nil {
		return contract.Result{}, err
	}
	result := newResult(processes)
	if result.ProcessTypes["web"] == "" {
		fmt.Fprintln(b.stderr, "No start command specified by buildpack or via Procfile.")
		fmt.Fprintln(b.stderr, "App will not start unless a command is provided at runtime.")
	}
	return result, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
