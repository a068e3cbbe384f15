package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cupola/cmd/cupola/command"
	"cupola/cmd/cupola/upgrade"
	"cupola/server/systemd"
)

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
	u := &upgrade.Upgrade{Binary: i.path(installedBinary), DataDir: dir, Service: systemdService{}, Out: e.Out}
	return u.Run(e.Ctx, c.From)
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
