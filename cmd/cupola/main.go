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
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/lmittmann/tint"
	"golang.org/x/term"

	"cupola/server/kube"
)

// cli is the command line. Every flag of serve can be given by environment and
// by file too.
type cli struct {
	Config kong.ConfigFlag `help:"Read flags from this YAML file; its keys are the flags' names." placeholder:"FILE" env:"CUPOLA_CONFIG"`
	Debug  bool            `help:"Log what happens inside." env:"CUPOLA_DEBUG"`

	Serve       serveCmd       `cmd:"" help:"Run the daemon."`
	Demo        demoCmd        `cmd:"" help:"Show it: a daemon, an app pushed from source, its page."`
	Push        pushCmd        `cmd:"" help:"Push an app to a running daemon, without the cf CLI."`
	Doctor      doctorCmd      `cmd:"" help:"Check this machine, and say how to mend what is amiss."`
	Credentials credentialsCmd `cmd:"" help:"Tell the admin's password."`
	TokenKeys   tokenKeysCmd   `cmd:"" help:"List and rotate the keys that sign users' tokens."`
	Stack       stackCmd       `cmd:"" help:"List, build, import, pull and remove stacks."`

	Backup  backupCmd  `cmd:"" help:"Write all of a daemon into one file, while it runs or not."`
	Verify  verifyCmd  `cmd:"" help:"Check a backup to its last byte."`
	Restore restoreCmd `cmd:"" help:"Make a data directory of a backup."`
	Broker  brokerCmd  `cmd:"" help:"Prepare and look at the built-in service broker, which 'serve --data-services' turns on."`

	Install   installCmd   `cmd:"" help:"Make a service of systemd's of this binary."`
	Uninstall uninstallCmd `cmd:"" help:"Take the service away again, and end its apps."`
	Upgrade   upgradeCmd   `cmd:"" help:"Replace the service's binary, with its apps running on."`

	AppFeatures       appFeaturesCmd       `cmd:"" aliases:"app-feature-flags" help:"List an app's features."`
	AppFeature        appFeatureCmd        `cmd:"" aliases:"app-feature-flag" help:"Show a feature of an app."`
	EnableAppFeature  enableAppFeatureCmd  `cmd:"" aliases:"enable-app-feature-flag" help:"Turn a feature of an app on."`
	DisableAppFeature disableAppFeatureCmd `cmd:"" aliases:"disable-app-feature-flag" help:"Turn a feature of an app off."`

	App        appCmd  `cmd:"" help:"Write a pushed app as Kubernetes objects."`
	Deployment boshCmd `cmd:"" help:"Deploy BOSH manifests here, look after what runs of them, and lint them."`

	Cells          cellsCmd      `cmd:"" help:"List the cells: their tags, what they offer, their room."`
	PlacementPools poolsCmd      `cmd:"" help:"List, make, change, delete and assign placement pools."`
	Simulate       simulateCmd   `cmd:"" help:"Replay a synthetic fleet through the scheduler, and tell how long it plans and how well it places."`
	Completion     completionCmd `cmd:"" help:"Write the script that lets a shell complete these commands."`
	Man            manCmd        `cmd:"" help:"Write the manual page, cupola(1)."`
	Cleanup        cleanupCmd    `cmd:"" help:"End all that still runs of a daemon that has ended."`
	Version        versionCmd    `cmd:"" help:"Tell the version."`

	HoldVolume holdVolumeCmd `cmd:"" hidden:""` // server.HoldCommand
}

// env is what commands share.
type env struct {
	ctx      context.Context
	out, err io.Writer
	log      *slog.Logger
	terminal bool   // out is one: progress may be drawn
	program  string // as a user calls it
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run runs a command line and returns the exit code: 0, or 1 when it failed,
// or 2 when it could not be understood.
func run(args []string, stdout, stderr *os.File) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends what does not heed the first
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
	e := &env{ctx: ctx, out: stdout, err: stderr, log: newLogger(stderr, c.Debug), terminal: term.IsTerminal(int(stdout.Fd())), program: calledAs(os.Args[0])}
	if err != nil {
		fmt.Fprint(stderr, e.called(fmt.Sprintf("cupola: %v\nTry 'cupola %s'.\n", err, helpFor(err))))
		return 2
	}
	err = k.Run(e)
	if quiet, ok := errors.AsType[exitCode](err); ok {
		return int(quiet)
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	if err != nil {
		fmt.Fprintln(stderr, e.called("cupola: "+err.Error()))
		return 1
	}
	return 0
}

// helpFor is what asks for the help of the command that a fault of a command line
// is in, as far as the line names one.
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

// newParser makes the parser of c. What it prints by itself, like help, ends
// with exit.
func newParser(c *cli, stdout, stderr io.Writer, exit func(code int)) (*kong.Kong, error) {
	return kong.New(c, kong.Name("cupola"), kong.Description("Cloud Foundry on one machine, in one process."),
		kong.Configuration(loadYAML), kong.Vars{"zoneLabel": kube.DefaultZoneLabel}, kong.Writers(stdout, stderr), kong.Exit(exit),
		kong.ValueFormatter(helpText), kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}), kong.UsageOnError())
}

// helpText is what --help says of a flag: with its default, which kong shows only
// where it stands for a value by itself, and with its environment variables.
func helpText(v *kong.Value) string {
	if v.HasDefault && v.Tag.PlaceHolder != "" {
		with := *v
		with.Help = strings.TrimSuffix(v.Help, ".") + "; " + v.Default + " when not given."
		v = &with
	}
	return kong.DefaultHelpValueFormatter(v)
}

// exitCode is an error that has been told already.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// newLogger logs for people on a terminal, and as JSON otherwise.
func newLogger(w *os.File, debug bool) *slog.Logger {
	level := slog.LevelInfo
	if debug {
		level = slog.LevelDebug
	}
	if term.IsTerminal(int(w.Fd())) {
		return slog.New(tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: "15:04:05"}))
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}
