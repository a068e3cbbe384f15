package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"

	"cupola/cmd/cupola/command"
	"cupola/server"
	"cupola/server/admin/cleanup"
	"cupola/server/bbs"
	"cupola/server/config"
	"cupola/server/datadir"
	"cupola/server/seed"
	"cupola/server/systemd"
)

type serveCmd struct {
	Config config.Config `embed:""`
}

// Run runs the daemon until a signal ends it.
func (s *serveCmd) Run(e *command.Env) (err error) {
	c := s.Config
	c.Version = command.BuildVersion()
	c.Manager, c.Log, c.Level, c.Debug = systemd.FromEnvironment(), e.Log, e.Level, e.Level.Level() == slog.LevelDebug
	c.Hangup, c.Reread = hangups(), reread
	if c.Listeners, err = systemd.Listeners(); err != nil {
		return err
	}
	err = server.Run(e.Ctx, c, func(r server.Ready) { welcome(e, r) })
	if errors.Is(err, syscall.EPERM) { // root in a container, say, that lacks privileges
		return fmt.Errorf("%w; 'cupola doctor' tells what this machine lacks", err)
	}
	return err
}

// hangups gets SIGHUP, but for a daemon of a terminal: that ends with it.
func hangups() <-chan os.Signal {
	signals := make(chan os.Signal, 1)
	if !command.IsTerminal(os.Stdin) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	return signals
}

// reread is the configuration that this command line has by now.
func reread() (config.Config, error) {
	var line commandLine
	parser, err := newParser(&line)
	if err != nil {
		return config.Config{}, err
	}
	if _, err := parser.Parse(os.Args[1:]); err != nil {
		return config.Config{}, err
	}
	line.Serve.Config.Debug = line.Debug
	return line.Serve.Config, nil
}

// welcome says what a newcomer needs to know of a daemon that serves.
func welcome(e *command.Env, r server.Ready) {
	t := tabwriter.NewWriter(e.Out, 0, 0, 2, ' ', 0)
	row := func(k, format string, args ...any) {
		fmt.Fprintf(t, "  %s\t%s\n", k, e.Called(fmt.Sprintf(format, args...)))
	}
	fmt.Fprintln(t, "cupola is ready.")
	row("API", "%s", apiURL(r))
	row("apps", "http://<app>.%s%s", r.Domain, strings.TrimPrefix(apiURL(r), "http://"+hostOf(apiURL(r))))
	row("console", "%s/console/  (sudo cupola open%s)", apiURL(r), dataDirFlag(r))
	if r.HTTPS != "" {
		row("TLS", "%s  (its CA: %s)", r.HTTPS, r.CA)
	}
	if r.SSH != "" {
		row("ssh", "%s  (cf ssh APP)", r.SSH)
	}
	if r.BBS != "" {
		row("BBS", "https://%s  (eval \"$(sudo cupola credentials --bbs%s)\"; cfdot …)", r.BBS, dataDirFlag(r))
	}
	if r.Director != "" {
		row("director", "%s  (eval \"$(sudo cupola credentials --director%s)\"; bosh …)", r.Director, dataDirFlag(r))
	}
	if r.Metrics != "" {
		row("metrics", "%s", r.Metrics)
	}
	row("log in", "cf login -a %s -u admin -p \"$(sudo cupola credentials%s)\"", apiURL(r), dataDirFlag(r))
	row("stack", "%s", r.Stack)
	row("data", "%s", r.DataDir)
	if r.Running > 0 {
		row("running", "%d containers, adopted from the previous daemon", r.Running)
	}
	t.Flush()
}

// apiURL is the URL of the API as a client on this machine should type it.
func apiURL(r server.Ready) string {
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(r.HTTP, "http://"))
	host := "api." + r.Domain
	if r.Domain == "localhost" {
		host = "localhost" // names below it resolve in browsers and curl, and not for the cf CLI
	}
	return "http://" + net.JoinHostPort(host, port)
}

func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	return u.Hostname()
}

func dataDirFlag(r server.Ready) string {
	if r.DataDir == datadir.Default {
		return ""
	}
	return " --data-dir " + r.DataDir
}

type credentialsCmd struct {
	command.DaemonFlags
	BBS      bool `name:"bbs" help:"Print the environment variables for BBS clients like cfdot instead." xor:"for"`
	Director bool `help:"Print the environment variables for the bosh CLI instead." xor:"for"`
}

// Run prints the password and nothing else, so that it can be used in a
// command line.
func (c *credentialsCmd) Run(e *command.Env) error {
	if c.BBS {
		return c.bbs(e)
	}
	if c.Director {
		return c.director(e)
	}
	password, err := c.password()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(e.Out, password)
	return err
}

func (c *credentialsCmd) password() (string, error) {
	password, err := seed.AdminPassword(c.DataDir)
	if errors.Is(err, fs.ErrPermission) {
		return "", errors.New("only root may read the password: run it with sudo")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s has no password yet: start the daemon with 'sudo cupola serve', or give --data-dir", c.DataDir)
	}
	return password, err
}

// director prints lines for a shell. The UAA's client admin has the admin's password.
func (c *credentialsCmd) director(e *command.Env) error {
	password, err := c.password()
	if err != nil {
		return err
	}
	url, err := datadir.DirectorOf(c.DataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the daemon of %s does not serve the director's API: start it with --director, like --director 127.0.0.1:25555", c.DataDir)
	}
	if err != nil {
		return err
	}
	dataDir, err := filepath.Abs(c.DataDir)
	if err != nil {
		return err
	}
	printExports(e, [][2]string{{"BOSH_ENVIRONMENT", url}, {"BOSH_CA_CERT", filepath.Join(dataDir, "ca.pem")}, {"BOSH_CLIENT", "admin"}, {"BOSH_CLIENT_SECRET", password}})
	return nil
}

// printExports prints lines that set variables of a shell, but for empty ones.
func printExports(e *command.Env, all [][2]string) {
	for _, v := range all {
		if v[1] != "" {
			fmt.Fprintf(e.Out, "export %s='%s'\n", v[0], strings.ReplaceAll(v[1], "'", `'\''`))
		}
	}
}

// bbs prints lines for a shell.
func (c *credentialsCmd) bbs(e *command.Env) error {
	have, err := bbs.Credentials(c.DataDir)
	if errors.Is(err, fs.ErrPermission) {
		return errors.New("only root may read the key: run it with sudo")
	}
	if err != nil {
		return err
	}
	printExports(e, [][2]string{{"BBS_URL", have.URL}, {"LOCKET_API_LOCATION", strings.TrimPrefix(have.URL, "https://")}, {"CA_CERT_FILE", have.CA}, {"CLIENT_CERT_FILE", have.Cert}, {"CLIENT_KEY_FILE", have.Key}, {"DIEGO_SSH_PASSWORD", have.SSH}})
	return nil
}

type cleanupCmd struct{ command.DaemonFlags }

// Run ends what still runs.
func (c *cleanupCmd) Run(e *command.Env) error {
	if _, err := os.Stat(c.DataDir); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(e.Out, "%s does not exist: nothing to clean up.\n", c.DataDir)
		return nil
	}
	if err := cleanUp(e.Ctx, e, c.DaemonFlags); err != nil {
		return err
	}
	fmt.Fprint(e.Out, e.Called(fmt.Sprintf("Stopped all containers of %s. The next 'cupola serve' starts its apps again.\n", c.DataDir)))
	return nil
}

// cleanUp ends all that runs of a data directory.
func cleanUp(ctx context.Context, e *command.Env, d command.DaemonFlags) error {
	dir, err := d.Root()
	if err != nil {
		return err
	}
	return cleanup.Run(ctx, dir, e.Log)
}
