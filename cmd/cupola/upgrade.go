package main

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

	"cupola/cmd/cupola/command"
	"cupola/runtime/durable"
	"cupola/server/systemd"
	"cupola/store"
)

// oldSuffix is what the binary is called that an upgrade replaced.
const oldSuffix = ".old"

// versionTime is within what a new binary tells its version.
const versionTime = 20 * time.Second

type upgradeCmd struct {
	From string `help:"The new binary." required:"" type:"existingfile" placeholder:"FILE"`
}

// Run upgrades the installed service. Apps run on; connections wait in the
// sockets that systemd holds.
func (c *upgradeCmd) Run(e *command.Env) error {
	i := &installation{}
	dir, err := i.dataDir()
	if err != nil {
		return err
	}
	if dir == "" {
		return errors.New("cupola is not installed as a service: run 'cupola install', or stop the daemon and start the new binary")
	}
	if !systemdRuns() {
		return errors.New("systemd does not run here: stop the daemon and start the new binary; apps keep running meanwhile")
	}
	if unit, err := i.unit(); err != nil || strings.Contains(unit, "="+packagedBinary+" serve ") {
		return errors.Join(err, fmt.Errorf("%s belongs to a package: upgrade that, as with 'apt install ./cupola_VERSION_ARCH.deb'; apps keep running, and connections wait, meanwhile", packagedBinary))
	}
	u := &upgrade{binary: i.path(installedBinary), dataDir: dir, service: systemdService{}, out: e.Out}
	return u.run(e.Ctx, c.From)
}

// service is what runs the daemon.
type service interface {
	Stop(context.Context) error
	Restart(context.Context) error // returns when the daemon is ready, or has failed
}

type systemdService struct{}

// Stop stops the daemon, and what would start it again.
func (systemdService) Stop(ctx context.Context) error {
	return systemctl(ctx, "stop", systemd.ServiceUnit)
}

// Restart waits for READY, as systemctl does.
func (systemdService) Restart(ctx context.Context) error {
	return systemctl(ctx, "restart", systemd.ServiceUnit)
}

// upgrade replaces the binary of a service.
type upgrade struct {
	binary  string
	dataDir string
	service service
	out     io.Writer
}

func (u *upgrade) run(ctx context.Context, from string) error {
	next := u.binary + ".new"
	if err := copyProgram(from, next); err != nil {
		return err
	}
	defer os.Remove(next) // unless it has its place by then
	version, err := versionOf(ctx, next)
	if err != nil {
		return fmt.Errorf("%s is not a cupola binary for this machine; nothing was changed: %w", from, err)
	}
	schema, err := store.SchemaOf(ctx, filepath.Join(u.dataDir, "db"))
	if err != nil {
		return err
	}
	if err := u.swap(next); err != nil {
		return err
	}
	failed := u.service.Restart(ctx)
	if failed == nil {
		fmt.Fprintf(u.out, "Upgraded to %s. The previous binary is %s%s.\n", version, u.binary, oldSuffix)
		return nil
	}
	// Also when this command was interrupted: a daemon must come up.
	if err := u.back(context.WithoutCancel(ctx), schema); err != nil {
		return fmt.Errorf("%s did not start (%w), and the previous binary could not be restored: %w", version, failed, err)
	}
	return fmt.Errorf("%s did not start, and the previous binary runs again: %w", version, failed)
}

// swap gives the new binary its place, and keeps the old one.
func (u *upgrade) swap(next string) error {
	old := u.binary + oldSuffix
	if err := os.Remove(old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Link(u.binary, old); err != nil {
		return err
	}
	return durable.Rename(next, u.binary)
}

// back brings back the old binary, and the database that it knows.
func (u *upgrade) back(ctx context.Context, schema int) error {
	if err := u.service.Stop(ctx); err != nil {
		return err
	}
	if err := durable.Rename(u.binary+oldSuffix, u.binary); err != nil {
		return err
	}
	if schema > 0 {
		if err := store.Revert(ctx, filepath.Join(u.dataDir, "db"), schema); err != nil {
			return err
		}
	}
	return u.service.Restart(ctx)
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
