// Package command is what cupola's commands share: their environment, the data
// directory that they are about, and how they print.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"cupola/server/admin"
)

// Env is the environment that all commands share.
type Env struct {
	Ctx      context.Context
	Out, Err io.Writer
	Log      *slog.Logger
	Level    *slog.LevelVar // of Log
	Terminal bool           // Out is a terminal, so progress may be drawn
	Program  string         // as a user calls it
	Config   string         // the file that flags were read from; "" for none
}

// ExitCode is an error that was already printed.
type ExitCode int

func (c ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// Width is the terminal's, or 0 where there is none.
func Width(e *Env) int {
	f, ok := e.Out.(*os.File)
	if !ok || !e.Terminal {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

// DaemonFlags say which daemon is meant.
type DaemonFlags struct {
	DataDir string `help:"The data directory." default:"/var/lib/cupola" env:"CUPOLA_DATA_DIR" placeholder:"DIR"`
}

// Target is the data directory that operators' commands are about.
func (d DaemonFlags) Target(e *Env) admin.Target { return admin.Target{DataDir: d.DataDir, Log: e.Log} }

// Root is the absolute path of the data directory, for what only root may do.
func (d DaemonFlags) Root() (string, error) {
	path, err := filepath.Abs(d.DataDir)
	return path, errors.Join(err, admin.NeedRoot())
}

// Known checks that the data directory is there: looking makes none.
func (d DaemonFlags) Known() error {
	if _, err := os.Stat(d.DataDir); err != nil {
		return fmt.Errorf("no data directory %s: give --data-dir, or start 'cupola serve' first", d.DataDir)
	}
	return nil
}

// release is set by the Makefile.
var release = ""

// BuildVersion is the release, else the commit it was built from.
func BuildVersion() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
