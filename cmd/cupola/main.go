// Command cupola is Cloud Foundry on one machine: the daemon and its own
// small CLI.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/lmittmann/tint"

	"cupola/cmd/cupola/apps"
	"cupola/cmd/cupola/backups"
	"cupola/cmd/cupola/cells"
	"cupola/cmd/cupola/command"
	"cupola/cmd/cupola/deployment"
	"cupola/cmd/cupola/machine"
	"cupola/cmd/cupola/push"
	"cupola/cmd/cupola/stacks"
	"cupola/cmd/cupola/trust"
	"cupola/server/admin"
	"cupola/server/doctor"
	"cupola/server/kube"
)

// cli is the command line. Every flag of serve can be given by environment and
// by file too.
type cli struct {
	Config kong.ConfigFlag `help:"Read flags from this YAML file; its keys are the flags' names." placeholder:"FILE" env:"CUPOLA_CONFIG"`
	Debug  bool            `help:"Log debug messages." env:"CUPOLA_DEBUG"`

	Serve       serveCmd           `cmd:"" help:"Run the daemon."`
	Demo        demoCmd            `cmd:"" help:"Start a temporary daemon, push an app from source and show its page."`
	Push        push.Cmd           `cmd:"" help:"Push an app to a running daemon, without the cf CLI."`
	Git         push.GitCmd        `cmd:"" help:"Deploy with git push: print or add an app's remote."`
	SSHKeys     push.SSHKeysCmd    `cmd:"" name:"ssh-keys" help:"Register the public keys by which you push over SSH."`
	Open        openCmd            `cmd:"" help:"Open the web console in a browser, logged in."`
	Doctor      doctorCmd          `cmd:""`
	Status      machine.StatusCmd  `cmd:"" help:"Show the daemon and its machine on one screen."`
	Top         machine.TopCmd     `cmd:"" help:"Show live which apps use processors, memory, disk and requests."`
	Disk        machine.DiskCmd    `cmd:"" help:"Show what takes room in the data directory, and delete caches."`
	Support     machine.SupportCmd `cmd:"" name:"support-bundle"`
	Alerts      machine.AlertsCmd  `cmd:"" help:"List alerts; say where they are sent, what they are about, and silence them."`
	Credentials credentialsCmd     `cmd:"" help:"Print the admin password."`
	TokenKeys   tokenKeysCmd       `cmd:"" help:"List and rotate the keys that sign users' tokens."`
	Stack       stacks.Cmd         `cmd:"" help:"List, build, import, pull and remove stacks."`

	Backup  backups.Cmd        `cmd:""`
	Verify  backups.VerifyCmd  `cmd:""`
	Restore backups.RestoreCmd `cmd:"" help:"Restore a data directory from a backup."`
	Backups backups.OffsiteCmd `cmd:"" help:"Show, make, verify, fetch and restore encrypted backups away from this machine ('serve --backup-to')."`
	Broker  stacks.BrokerCmd   `cmd:"" help:"Prepare and inspect the built-in service broker ('serve --data-services' enables it)."`

	Services backups.ServicesCmd `cmd:"" help:"Back up and restore service instances of the built-in broker."`

	Install   installCmd   `cmd:"" help:"Install cupola as a systemd service."`
	Uninstall uninstallCmd `cmd:"" help:"Remove the systemd service and stop its apps."`
	Upgrade   upgradeCmd   `cmd:"" help:"Replace the service's binary while its apps keep running."`

	AppFeatures       apps.FeaturesCmd       `cmd:"" aliases:"app-feature-flags" help:"List an app's features."`
	AppFeature        apps.FeatureCmd        `cmd:"" aliases:"app-feature-flag" help:"Show a feature of an app."`
	EnableAppFeature  apps.EnableFeatureCmd  `cmd:"" aliases:"enable-app-feature-flag" help:"Enable a feature of an app."`
	DisableAppFeature apps.DisableFeatureCmd `cmd:"" aliases:"disable-app-feature-flag" help:"Disable a feature of an app."`

	App        apps.Cmd       `cmd:"" help:"Explain why an app does not run; export it as Kubernetes objects, or as an image."`
	Jobs       apps.JobsCmd   `cmd:"" help:"Run commands of apps by cron schedules."`
	Deployment deployment.Cmd `cmd:"" help:"Deploy, manage and lint BOSH deployments."`

	Cells          cells.Cmd      `cmd:"" help:"List the cells; move the apps of a space to one."`
	PlacementPools cells.PoolsCmd `cmd:"" help:"List, create, update, delete and assign placement pools."`

	Trust             trust.Cmd            `cmd:"" help:"Let this machine and your browsers trust the daemon's CA."`
	DomainCertificate domainCertificateCmd `cmd:"" help:"Give domains certificates, show and delete them."`

	Simulate   cells.SimulateCmd `cmd:"" help:"Simulate a fleet of cells; report the scheduler's planning time and placement quality."`
	Completion completionCmd     `cmd:"" help:"Print a shell completion script."`
	Man        manCmd            `cmd:"" help:"Print the manual page, cupola(1)."`
	Cleanup    cleanupCmd        `cmd:"" help:"Stop all containers that a stopped daemon left running."`
	Version    versionCmd        `cmd:"" help:"Print the version."`

	HoldVolume backups.HoldVolumeCmd `cmd:"" hidden:""` // datadir.HoldCommand
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
	var c cli
	exit := -1
	parser, err := newParser(&c, stdout, stderr, func(code int) { exit = code })
	if err != nil {
		fmt.Fprintln(stderr, "cupola:", err)
		return 2
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	k, err := parser.Parse(args)
	if exit >= 0 {
		return exit
	}
	e := &command.Env{Ctx: ctx, Out: stdout, Err: stderr, Log: newLogger(stderr, c.Debug), Terminal: command.IsTerminal(stdout), Program: command.CalledAs(os.Args[0])}
	if err != nil {
		fmt.Fprint(stderr, e.Called(fmt.Sprintf("cupola: %v\nTry 'cupola %s'.\n", err, helpFor(err))))
		return 2
	}
	err = k.Run(e)
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

// helpFor returns the arguments that print the help of the command in which err,
// a parse error, occurred.
func helpFor(err error) string {
	const flag = "--help"
	fault, ok := errors.AsType[*kong.ParseError](err)
	if !ok || fault.Context == nil {
		return flag
	}
	var words []string
	for _, p := range fault.Context.Path {
		if p.Command != nil {
			words = append(words, p.Command.Name)
		}
	}
	return strings.Join(append(words, flag), " ")
}

// newParser returns the parser of c. It calls exit after it printed help.
func newParser(c *cli, stdout, stderr io.Writer, exit func(code int)) (*kong.Kong, error) {
	return kong.New(c, append(yamlFlags(), kong.Name("cupola"), kong.Description("Cloud Foundry on one machine, in one process."),
		kong.Configuration(loadYAML), kong.Vars{"zoneLabel": kube.DefaultZoneLabel}, kong.Writers(stdout, stderr), kong.Exit(exit), kong.PostBuild(describeOperations),
		kong.ValueFormatter(helpText), kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}), kong.UsageOnError())...)
}

// describeOperations sets the help of the commands that are operations of package
// admin. (As variables of kong, the texts would be searched for variables again at
// each flag, at each start of the program.)
func describeOperations(k *kong.Kong) error {
	for _, o := range admin.Table() {
		name, help := o.Describe()
		node := k.Model.Node
		for word := range strings.FieldsSeq(name) {
			at := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == word })
			if at < 0 {
				return fmt.Errorf("no command for the operation %q", name)
			}
			node = node.Children[at]
		}
		node.Help = strings.ReplaceAll(help, "$", "$$") // kong looks for variables
	}
	return nil
}

// helpText returns a flag's help with its default and environment variables. kong
// omits the default of a flag that has a placeholder.
func helpText(v *kong.Value) string {
	if v.HasDefault && v.Tag.PlaceHolder != "" {
		with := *v
		with.Help = strings.TrimSuffix(v.Help, ".") + " (default " + v.Default + ")."
		v = &with
	}
	return kong.DefaultHelpValueFormatter(v)
}

// newLogger logs for people on a terminal, and as JSON otherwise.
func newLogger(w *os.File, debug bool) *slog.Logger {
	level := slog.LevelInfo
	if debug {
		level = slog.LevelDebug
	}
	if command.IsTerminal(w) {
		return slog.New(tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: "15:04:05"}))
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}
