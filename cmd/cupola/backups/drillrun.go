package backups

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"cupola/cmd/cupola/command"
	"cupola/runtime/network"
	"cupola/server"
	"cupola/server/acme"
	"cupola/server/admin/offsite"
	"cupola/server/bulkhead"
	"cupola/server/cells"
	"cupola/server/config"
	"cupola/server/databroker"
	"cupola/server/otlp"
)

// drilled is what a drill found.
type drilled struct {
	Started, Waited float64 // seconds until the daemon served, and until nothing more was waited for
	Found           []drilledOne
}

// drillKinds are the kinds of what a drill looks at.
var drillKinds = []string{kindProcess, kindRoute, kindService}

const (
	kindProcess = "processes"
	kindRoute   = "routes"
	kindService = "services"
)

// drilledOne is a process of an app, a route or a service instance.
type drilledOne struct {
	Kind, Name string
	Want, Have int
	Why        string `json:",omitempty"`
}

// DrillRunCmd is the internal command that a drill runs in a network namespace. The flags are those of serve,
// so that a configuration file of the daemon says how it runs.
type DrillRunCmd struct {
	Config config.Config `embed:""`
	Within time.Duration `default:"2m"`
}

// Run runs the daemon until it was looked at, or the standard input ends.
func (c *DrillRunCmd) Run(e *command.Env) error {
	if err := network.RaiseLoopback(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(e.Ctx)
	defer stop()
	// If the command that runs this one is killed, nothing reads the log: a line of it must not end the daemon before its apps. Not
	// ignored: programs would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends with the command that runs this one
		stop()
	}()
	ready, ended := make(chan server.Ready, 1), make(chan error, 1)
	began := time.Now()
	go func() { ended <- server.Run(ctx, drillConfig(c.Config, e), func(r server.Ready) { ready <- r }) }()
	select {
	case err := <-ended:
		return err
	case r := <-ready:
		d := &drilled{Started: time.Since(began).Seconds()}
		err := d.look(ctx, e, r, c.Within)
		stop()
		if err := errors.Join(err, <-ended); err != nil {
			return err
		}
		return json.NewEncoder(e.Out).Encode(d)
	}
}

// drillConfig is the daemon's configuration without what leads out of the machine, or to it.
func drillConfig(c config.Config, e *command.Env) config.Config {
	c.HTTP, c.HTTPS, c.SSH, c.BBS, c.Director, c.Metrics = "127.0.0.1:0", "off", "off", "", "", ""
	c.SegmentRouters, c.SegmentHTTPS, c.RouterSegments = nil, nil, nil
	c.ACME, c.Telemetry, c.Backups, c.AlertCommand = acme.Flags{}, otlp.Flags{}, offsite.Flags{}, ""
	c.Kubernetes, c.KubernetesRegistry, c.RegistryListen = nil, "", ""
	c.AdminPassword = "" // the backup's
	c.DrainWait = 0      // there are no load balancers
	if len(c.DataServices) == 0 {
		c.DataServices = databroker.Names()
	}
	if len(c.Cells) == 0 || c.Cells[0].IsNone { // what runs on clusters elsewhere is tried here
		// What runs on this machine keeps half of the memory that is free.
		_, free := bulkhead.Memory("/")
		c.Cells = cells.List{{Name: "drill", MemoryMB: cells.Megabytes(max(free>>21, 1))}}
	}
	c.Version, c.Log, c.Level, c.Stop = command.BuildVersion(), e.Log, e.Level, config.StopApps
	return c
}
