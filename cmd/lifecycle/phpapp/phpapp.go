// Package phpapp runs a PHP app: PHP's process manager and the web server before it, of which neither works without the other. The php
// buildpack puts this program into the droplet.
package phpapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Start is the name of the program.
const Start = "php-start"

// App is how a staged app runs. Texts may contain the variables of the container's environment, as ${PORT} or @{HOME}.
type App struct {
	// Config is the directory of the web server's configuration in the droplet; "" is none. It is completed when the app starts.
	Config string `json:"config,omitempty"`
	// WebDir is the directory that is served, below the app's.
	WebDir string `json:"web_dir,omitempty"`
	// Programs are started in this order.
	Programs [][]string `json:"programs"`
}

// configVariable names the directory of the completed configuration, socketVariable where PHP's process manager listens.
const (
	configVariable = "SERVER_CONFIG"
	socketVariable = "PHP_FPM_LISTEN"
)

// Main runs the app that the file args[0] describes, until one of its programs ends or SIGTERM arrives.
func Main(args []string) int {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "usage: php-start FILE")
		return 2
	}
	text, err := os.ReadFile(args[0])
	var a App
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err == nil {
		err = a.prepare()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "php-start:", err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return a.run(ctx)
}

// prepare sets the variables that the configuration names, and completes it in the container's temporary directory.
func (a App) prepare() error {
	temp := os.TempDir()
	for name, value := range map[string]string{"TMPDIR": temp, "WEBDIR": a.WebDir, socketVariable: filepath.Join(temp, "php-fpm.sock"), configVariable: filepath.Join(temp, "server")} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	if a.Config == "" {
		return nil
	}
	from, to := expand(a.Config), os.Getenv(configVariable)
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		at := filepath.Join(to, name)
		switch {
		case d.IsDir():
			return os.MkdirAll(at, 0o755)
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			_ = os.Remove(at) // of an earlier start
			return os.Symlink(target, at)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(at, []byte(expand(string(text))), 0o644)
	})
}

// expand replaces ${NAME} and @{NAME}, where the environment has such a variable. A dollar without braces is the server's own.
func expand(text string) string {
	var out strings.Builder
	for {
		at := strings.IndexAny(text, "$@")
		if at < 0 || at+1 >= len(text) {
			out.WriteString(text)
			return out.String()
		}
		out.WriteString(text[:at])
		rest := text[at+1:]
		name, after, ok := strings.Cut(strings.TrimPrefix(rest, "{"), "}")
		value, known := os.LookupEnv(name)
		if !ok || rest[0] != '{' || !known {
			out.WriteByte(text[at])
			text = rest
			continue
		}
		out.WriteString(value)
		text = after
	}
}

// run starts the programs. When one ends, or ctx does, it ends the others and returns the code of the one that ended first.
func (a App) run(ctx context.Context) int {
	g := &group{ended: make(chan error, len(a.Programs))}
	var first error
	for i, argv := range a.Programs {
		if i > 0 {
			g.await(ctx, os.Getenv(socketVariable))
		}
		if first = g.start(argv); first != nil {
			break
		}
	}
	if first == nil {
		select {
		case first = <-g.ended:
			g.running--
		case <-ctx.Done():
		}
	}
	for _, cmd := range g.all {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	}
	for range g.running {
		<-g.ended //nolint:errcheck // each was asked to end
	}
	return exitCode(ctx, first)
}

// group is the programs that run.
type group struct {
	all     []*exec.Cmd
	running int
	ended   chan error
}

func (g *group) start(argv []string) error {
	for i := range argv {
		argv[i] = expand(argv[i])
	}
	// It ends by a signal, which lets it finish its requests.
	cmd := exec.CommandContext(context.Background(), argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	g.all = append(g.all, cmd)
	g.running++
	go func() { g.ended <- cmd.Wait() }()
	return nil
}

// patience is how long the web server waits for PHP: the app counts as healthy once the server listens.
const patience = 30 * time.Second

// await returns when something listens at the socket, a program has ended or ctx has, and after some patience.
func (g *group) await(ctx context.Context, socket string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	t := time.NewTicker(10 * time.Millisecond)
	defer t.Stop()
	for len(g.ended) == 0 {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

// exitCode is that of an app of which a program ended with err. A server that ends by itself has failed, also with the code 0.
func exitCode(ctx context.Context, err error) int {
	if ctx.Err() != nil && err == nil {
		return 0
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok && err != nil {
		fmt.Fprintln(os.Stderr, "php-start:", err)
	}
	if ok && exit.ExitCode() > 0 {
		return exit.ExitCode()
	}
	return 1
}
