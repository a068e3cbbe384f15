// Package upgrade replaces the binary of a service, whose apps run on meanwhile.
package upgrade

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"cupola/runtime/durable"
	"cupola/store"
)

// OldSuffix is what the binary is called that an upgrade replaced.
const OldSuffix = ".old"

// versionTime is within what a new binary tells its version.
const versionTime = 20 * time.Second

// Service is what runs the daemon.
type Service interface {
	Stop(context.Context) error
	Restart(context.Context) error // returns when the daemon is ready, or has failed
}

// Upgrade replaces the binary of a service.
type Upgrade struct {
	Binary  string // what the service runs
	DataDir string
	Service Service
	Out     io.Writer // what was done is written there
}

// Run replaces the service's binary by from. If the daemon does not come up with it, the earlier one runs again, with the
// database that it knows, and the error says so.
func (u *Upgrade) Run(ctx context.Context, from string) error {
	next := u.Binary + ".new"
	if err := copyProgram(from, next); err != nil {
		return err
	}
	defer os.Remove(next) // unless it has its place by then
	version, err := versionOf(ctx, next)
	if err != nil {
		return fmt.Errorf("%s is not a cupola binary for this machine; nothing was changed: %w", from, err)
	}
	schema, err := store.SchemaOf(ctx, filepath.Join(u.DataDir, "db"))
	if err != nil {
		return err
	}
	if err := u.swap(next); err != nil {
		return err
	}
	failed := u.Service.Restart(ctx)
	if failed == nil {
		fmt.Fprintf(u.Out, "Upgraded to %s. The previous binary is %s%s.\n", version, u.Binary, OldSuffix)
		return nil
	}
	// Also when this command was interrupted: a daemon must come up.
	if err := u.back(context.WithoutCancel(ctx), schema); err != nil {
		return fmt.Errorf("%s did not start (%w), and the previous binary could not be restored: %w", version, failed, err)
	}
	return fmt.Errorf("%s did not start, and the previous binary runs again: %w", version, failed)
}

// swap gives the new binary its place, and keeps the old one.
func (u *Upgrade) swap(next string) error {
	old := u.Binary + OldSuffix
	if err := os.Remove(old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Link(u.Binary, old); err != nil {
		return err
	}
	return durable.Rename(next, u.Binary)
}

// back brings back the old binary, and the database that it knows.
func (u *Upgrade) back(ctx context.Context, schema int) error {
	if err := u.Service.Stop(ctx); err != nil {
		return err
	}
	if err := durable.Rename(u.Binary+OldSuffix, u.Binary); err != nil {
		return err
	}
	if schema > 0 {
		if err := store.Revert(ctx, filepath.Join(u.DataDir, "db"), schema); err != nil {
			return err
		}
	}
	return u.Service.Restart(ctx)
}

// copyProgram copies a program, so that what is looked at is what will run.
func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(0o755), out.Close())
}

// versionOf asks a binary for its version, which shows that it runs here.
func versionOf(ctx context.Context, binary string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, "version").Output()
	if err != nil {
		return "", err
	}
	version, ok := strings.CutPrefix(strings.TrimSpace(string(out)), "cupola ")
	if !ok {
		return "", fmt.Errorf("its version command printed %.60q", out)
	}
	version, _, _ = strings.Cut(version, " (")
	return version, nil
}
