// Command cupola is Cloud Foundry on one machine: the daemon and its own
// small CLI.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/lmittmann/tint"

	"cupola/cmd/cupola/apps"
	"cupola/cmd/cupola/backups"
	"cupola/cmd/cupola/cells"
	"cupola/cmd/cupola/cli"
	"cupola/cmd/cupola/command"
	"cupola/cmd/cupola/deployment"
	"cupola/cmd/cupola/machine"
	"cupola/cmd/cupola/push"
	"cupola/cmd/cupola/stacks"
	"cupola/cmd/cupola/transfer"
	"cupola/cmd/cupola/trust"
	"cupola/server/admin"
	"cupola/server/doctor"
)

// commandLine is what package cli reads. Every flag of serve can be given by environment and
// by file too.
type commandLine struct {
	Config string `type:"path" help:"Read flags from this YAML file; its keys are the flags' names." placeholder:"FILE" env:"CUPOLA_CONFIG"`
	Debug  bool   `help:"Log debug messages." env:"CUPOLA_DEBUG"`

	Serve       serveCmd           `cmd:"" group:"The daemon" help:"Run the daemon."`
	Demo        demoCmd            `cmd:"" group:"The daemon" help:"Start a temporary daemon, push an app from source and show its page."`
	Push        push.Cmd           `cmd:"" group:"Apps" help:"Push an app to a running daemon, without the cf CLI."`
	Git         push.GitCmd        `cmd:"" group:"Apps" help:"Deploy with git push: print or add an app's remote."`
	SSHKeys     push.SSHKeysCmd    `cmd:"" group:"Apps" name:"ssh-keys" help:"Register the public keys by which you push over SSH."`
	Open        openCmd            `cmd:"" group:"The daemon" help:"Open the web console in a browser, logged in."`
	Doctor      doctorCmd          `cmd:"" group:"The machine"`
	Status      machine.StatusCmd  `cmd:"" group:"The machine" help:"Show the daemon and its machine on one screen."`
	Top         machine.TopCmd     `cmd:"" group:"The machine" help:"Show live which apps use processors, memory, disk and requests."`
	Disk        machine.DiskCmd    `cmd:"" group:"The machine" help:"Show what takes room in the data directory, and delete caches."`
	Support     machine.SupportCmd `cmd:"" group:"The machine" name:"support-bundle"`
	Alerts      machine.AlertsCmd  `cmd:"" group:"The machine" help:"List and silence alerts; set their targets and rules."`
	Credentials credentialsCmd     `cmd:"" group:"The daemon" help:"Print the admin password."`
	TokenKeys   tokenKeysCmd       `cmd:"" group:"Security" help:"List and rotate the keys that sign users' tokens."`
	Stack       stacks.Cmd         `cmd:"" group:"Stacks and services" help:"List, build, import, pull and remove stacks."`

	Backup  backups.Cmd        `cmd:"" group:"Backups"`
	Verify  backups.VerifyCmd  `cmd:"" group:"Backups"`
	Restore backups.RestoreCmd `cmd:"" group:"Backups" help:"Restore a data directory from a backup."`
	Backups backups.OffsiteCmd `cmd:"" group:"Backups" help:"Show, make, verify, fetch and restore encrypted backups away from this machine ('serve --backup-to')."`
	Broker  stacks.BrokerCmd   `cmd:"" group:"Stacks and services" help:"Prepare and inspect the built-in service broker ('serve --data-services' enables it)."`

	Services backups.ServicesCmd `cmd:"" group:"Stacks and services" help:"Back up and restore service instances of the built-in broker."`

	Settings configCmd `cmd:"" name:"config" group:"The daemon" help:"Print the daemon's configuration."`

	Install   installCmd   `cmd:"" group:"The daemon" help:"Install cupola as a systemd service."`
	Uninstall uninstallCmd `cmd:"" group:"The daemon" help:"Remove the systemd service and stop its apps."`
	Upgrade   upgradeCmd   `cmd:"" group:"The daemon" help:"Replace the service's binary while its apps keep running."`

	AppFeatures       apps.FeaturesCmd       `cmd:"" group:"Apps" aliases:"app-feature-flags" help:"List an app's features."`
	AppFeature        apps.FeatureCmd        `cmd:"" group:"Apps" aliases:"app-feature-flag" help:"Show a feature of an app."`
	EnableAppFeature  apps.EnableFeatureCmd  `cmd:"" group:"Apps" aliases:"enable-app-feature-flag" help:"Enable a feature of an app."`
	DisableAppFeature apps.DisableFeatureCmd `cmd:"" group:"Apps" aliases:"disable-app-feature-flag" help:"Disable a feature of an app."`

	App  apps.Cmd     `cmd:"" group:"Apps" help:"Explain why an app does not run; export it as Kubernetes objects, or as an image."`
	Jobs apps.JobsCmd `cmd:"" group:"Apps" help:"Run commands of apps by cron schedules."`
	Logs apps.LogsCmd `cmd:"" group:"Apps" help:"Search what apps logged."`

	Import transfer.ImportCmd `cmd:"" group:"Apps" help:"Copy apps from another Cloud Foundry."`
	Export transfer.ExportCmd `cmd:"" group:"Apps" help:"Copy apps to another Cloud Foundry."`

	Deployment deployment.Cmd `cmd:"" group:"BOSH" help:"Deploy, manage and lint BOSH deployments."`

	Cells          cells.Cmd      `cmd:"" group:"Cells" help:"List the cells; move the apps of a space to one."`
	PlacementPools cells.PoolsCmd `cmd:"" group:"Cells" help:"List, create, update, delete and assign placement pools."`

	Trust             trust.Cmd            `cmd:"" group:"Security" help:"Let this machine and your browsers trust the daemon's CA."`
	DomainCertificate domainCertificateCmd `cmd:"" group:"Security" help:"Give domains certificates, show and delete them."`

	Simulate   cells.SimulateCmd `cmd:"" group:"Cells" help:"Simulate a fleet of cells; report the scheduler's planning time and placement quality."`
	Completion completionCmd     `cmd:"" group:"This program" help:"Print a shell completion script."`
	Man        manCmd            `cmd:"" group:"This program" help:"Print the manual page, cupola(1)."`
	Cleanup    cleanupCmd        `cmd:"" group:"The daemon" help:"Stop all containers that a stopped daemon left running."`
	Version    versionCmd        `cmd:"" group:"This program" help:"Print the version."`

	HoldVolume backups.HoldVolumeCmd `cmd:"" hidden:""` // datadir.HoldCommand
	DrillRun   backups.DrillRunCmd   `cmd:"" hidden:""` // of 'backups drill'
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run runs a command line and returns the exit code: 1 if the command failed, 2
// if the command line is invalid.
func run(args []string, stdout, stderr *os.File) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal kills the process
	if err := doctor.AvoidSilent(); err != nil {
		fmt.Fprintln(stderr, "cupola:", err)
	}
	var c commandLine
	parser, err := newParser(&c)
	if err != nil {
		fmt.Fprintln(stderr, "cupola:", err)
		return 2
	}
	chosen, err := parser.Parse(args)
	level := levelOf(c.Debug)
	e := &command.Env{Ctx: ctx, Out: stdout, Err: stderr, Log: newLogger(stderr, level), Level: level, Terminal: command.IsTerminal(stdout), Program: command.CalledAs(os.Args[0]), Config: c.Config}
	if fault, ok := errors.AsType[*cli.Error](err); ok {
		return explain(e, fault)
	}
	if p, ok := chosen.Target().(interface{ parsed([]*cli.Flag) }); ok {
		p.parsed(chosen.AllFlags())
	}
	err = chosen.Target().(runner).Run(e)
	if quiet, ok := errors.AsType[command.ExitCode](err); ok {
		return int(quiet)
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	if err != nil {
		fmt.Fprintln(stderr, e.Called("cupola: "+err.Error()))
		return 1
	}
	return 0
}

// runner is a command.
type runner interface {
	Run(e *command.Env) error
}

// explain answers a command line that runs nothing, and returns the exit code.
func explain(e *command.Env, fault *cli.Error) int {
	if errors.Is(fault, cli.ErrHelp) {
		if err := fault.Command.WriteHelp(e.Out, command.Width(e)); err != nil {
			return 1
		}
		return 0
	}
	help := strings.Join(append(fault.Command.Path(), "--help"), " ")
	fmt.Fprint(e.Err, e.Called(fmt.Sprintf("cupola: %v\nTry 'cupola %s'.\n", fault, help)))
	return 2
}

// newParser returns the parser of c.
func newParser(c *commandLine) (*cli.Parser, error) {
	p, err := cli.New(c, cli.Options{Name: "cupola", Help: "Cloud Foundry on one machine, in one process.", Types: yamlTypes(), File: "config", Read: readYAML})
	if err != nil {
		return nil, err
	}
	return p, describeOperations(p.Program)
}

// describeOperations sets the help of the commands that are operations of package
// admin.
func describeOperations(program *cli.Command) error {
	for _, o := range admin.Table() {
		name, help := o.Describe()
		c := program
		for word := range strings.FieldsSeq(name) {
			if c = c.Find(word); c == nil {
				return fmt.Errorf("no command for the operation %q", name)
			}
		}
		c.Help = help
	}
	return nil
}

// levelOf is the level of the log, which can change.
func levelOf(debug bool) *slog.LevelVar {
	level := &slog.LevelVar{}
	if debug {
		level.Set(slog.LevelDebug)
	}
	return level
}

// newLogger logs for people on a terminal, and as JSON otherwise.
func newLogger(w *os.File, level *slog.LevelVar) *slog.Logger {
	if command.IsTerminal(w) {
		return slog.New(tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: "15:04:05"}))
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}
