package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"cupola/bench/daemon"
	"cupola/bench/report"
)

// cliPushes are the pushes by the official CLI that are measured, in their order.
var cliPushes = []string{"of a new app", "with a change", "of the same again"}

// cliBuild is a daemon of one binary, which the official CLI pushes to.
type cliBuild struct {
	name string
	d    *daemon.Daemon
	home string            // the CLI's
	took [][]time.Duration // of each push, of each round
}

// measureCLI measures `cf push` on the builds by turns; before may be "".
func measureCLI(ctx context.Context, rounds int, before, binary, app string) (err error) {
	dir, err := os.MkdirTemp("", "bench-push-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var builds []*cliBuild
	defer func() {
		for _, b := range builds {
			err = errors.Join(err, b.d.Stop())
		}
	}()
	for _, c := range []struct{ name, binary string }{{"before", before}, {"cupola", binary}} {
		if c.binary == "" {
			continue
		}
		d, err := daemon.Start(c.binary)
		if err != nil {
			return err
		}
		b := &cliBuild{name: c.name, d: d, home: filepath.Join(dir, c.name), took: make([][]time.Duration, len(cliPushes))}
		builds = append(builds, b)
		if err := b.login(ctx); err != nil {
			return err
		}
	}
	for round := range rounds {
		for _, b := range builds {
			if err := b.round(ctx, app, fmt.Sprintf("cli-%d", round)); err != nil {
				return err
			}
		}
	}
	printCLI(builds, app, rounds)
	return nil
}

func (b *cliBuild) login(ctx context.Context) error {
	if err := os.Mkdir(b.home, 0o700); err != nil {
		return err
	}
	return b.cf(ctx, "login", "-a", b.d.URL(), "-u", "admin", "-p", daemon.Password, "--skip-ssl-validation")
}

func (b *cliBuild) cf(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "cf", args...)
	cmd.Env = append(os.Environ(), "CF_HOME="+b.home, "CF_COLOR=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cf %s: %w\n%s", args[0], err, out)
	}
	return nil
}

// round pushes a copy of the app as another app, and again.
func (b *cliBuild) round(ctx context.Context, app, name string) error {
	dir := filepath.Join(b.home, name)
	if err := os.CopyFS(dir, os.DirFS(app)); err != nil {
		return err
	}
	for i := range cliPushes {
		if i == 1 {
			if err := os.WriteFile(filepath.Join(dir, "change"), []byte(name), 0o600); err != nil {
				return err
			}
		}
		began := time.Now()
		if err := b.cf(ctx, "push", name, "-p", dir, "-f", filepath.Join(dir, "manifest.yml")); err != nil {
			return err
		}
		b.took[i] = append(b.took[i], time.Since(began))
	}
	return b.cf(ctx, "delete", name, "-f", "-r")
}

func printCLI(builds []*cliBuild, app string, rounds int) {
	fmt.Printf("`cf push` of %s until it has shown the running app, ms, median of %d by turns; the CLI itself waits for 1000 after each upload:\n\n", app, rounds)
	table := report.NewTable("build", cliPushes[0], cliPushes[1], cliPushes[2])
	for _, b := range builds {
		row := []string{b.name}
		for _, took := range b.took {
			row = append(row, ms(report.Median(took)))
		}
		table.Add(row...)
	}
	table.Print(os.Stdout)
}
