package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"cupola/cmd/cupola/command"
	"cupola/cmd/cupola/upgrade"
	"cupola/server/config"
	"cupola/server/systemd"
)

// Where an installation lies.
const (
	installedBinary = "/usr/local/bin/cupola"
	packagedBinary  = "/usr/bin/cupola" // of a package, which has the shared files, too: it runs where it is
	installedConfig = "/etc/cupola/cupola.yml"
	unitDir         = "/etc/systemd/system"
)

// sharedFiles are what an installation has for shells and readers, and what
// writes them.
var sharedFiles = map[string]func(io.Writer) error{
	"/usr/local/share/man/man1/cupola.1":                     writeManual,
	"/usr/local/share/bash-completion/completions/cupola":    func(w io.Writer) error { return writeCompletion(w, "bash") },
	"/usr/local/share/zsh/site-functions/_cupola":            func(w io.Writer) error { return writeCompletion(w, "zsh") },
	"/usr/local/share/fish/vendor_completions.d/cupola.fish": func(w io.Writer) error { return writeCompletion(w, "fish") },
}

const firstConfig = `# Flags of cupola serve, by their names: see 'cupola serve --help'. The data
# directory and the addresses that systemd listens at are in the units: change
# them by another 'cupola install'.
`

type installCmd struct {
	command.DaemonFlags
	HTTP    string `help:"Address of the API and of apps' HTTP routes." default:"127.0.0.1:8080" placeholder:"ADDR"`
	HTTPS   string `help:"Address of the same with TLS; 'off' disables it." default:"127.0.0.1:8443" placeholder:"ADDR"`
	SSH     string `name:"ssh" help:"Address of 'cf ssh'; 'off' disables it." default:"127.0.0.1:2222" placeholder:"ADDR"`
	TCP     string `name:"tcp" help:"Address and ports of TCP routes, as in 'cupola serve --tcp'; by default as in the configuration file." placeholder:"ADDR"`
	Root    string `help:"Install below this directory without starting anything, to build packages and machine images." placeholder:"DIR"`
	NoStart bool   `help:"Do not start the service."`
}

// Run installs cupola as a service of systemd's. Once more, it brings what is
// there up to date and changes nothing else.
func (c *installCmd) Run(e *command.Env) error {
	dir, err := filepath.Abs(c.DataDir)
	if err != nil {
		return err
	}
	flags := config.Config{DataDir: dir, HTTP: c.HTTP, HTTPS: c.HTTPS, SSH: c.SSH, TCP: c.TCP}
	if err := flags.Validate(); err != nil { // rather than a service that never starts
		return err
	}
	i, err := newInstallation(c.Root)
	if err != nil {
		return err
	}
	err = i.installBinary()
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: run it with sudo", err)
	}
	if err != nil {
		return err
	}
	service := c.service(i.binary(), dir)
	if err := i.write(service, dir); err != nil {
		return err
	}
	for _, name := range i.changed {
		fmt.Fprintf(e.Out, "  wrote      %s\n", name)
	}
	if c.Root != "" || c.NoStart {
		fmt.Fprintln(e.Out, "Installed, not started.")
		return nil
	}
	if !systemdRuns() {
		fmt.Fprintf(e.Out, "Installed, not started: systemd does not run here. Start the daemon with:\n  cupola serve --data-dir %s\n", dir)
		return nil
	}
	if err := i.start(e.Ctx, service); err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "Installed and running. Show its log with: journalctl -u %s\n", strings.TrimSuffix(systemd.ServiceUnit, ".service"))
	return nil
}

func (c *installCmd) service(binary, dataDir string) systemd.Service {
	s := systemd.Service{DataDir: dataDir, Command: []string{binary, "serve", "--config", installedConfig, "--data-dir", dataDir}}
	for _, k := range []systemd.Socket{{Name: "http", Address: c.HTTP}, {Name: "https", Address: c.HTTPS}, {Name: "ssh", Address: c.SSH}} {
		s.Command = append(s.Command, "--"+k.Name, k.Address)
		if k.Address != "off" {
			s.Sockets = append(s.Sockets, k)
		}
	}
	if c.TCP != "" {
		s.Command = append(s.Command, "--tcp", c.TCP)
	}
	return s
}

// installation is what is installed below a root directory; "" is the machine's.
type installation struct {
	root    string
	self    string   // the program that runs
	changed []string // files that were written
}

func newInstallation(root string) (*installation, error) {
	self, err := os.Executable()
	return &installation{root: root, self: self}, err
}

// packaged reports whether the program that runs belongs to a package.
func (i *installation) packaged() bool { return i.root == "" && i.self == packagedBinary }

// binary is what the service runs.
func (i *installation) binary() string {
	if i.packaged() {
		return packagedBinary
	}
	return installedBinary
}

func (i *installation) path(name string) string { return filepath.Join("/", i.root, name) }

// installBinary puts the program that runs in its place.
func (i *installation) installBinary() error {
	if i.self == i.path(i.binary()) {
		return nil
	}
	program, err := os.ReadFile(i.self)
	if err != nil {
		return err
	}
	return i.put(installedBinary, program, 0o755)
}

// write writes the units and all other files, and takes away the sockets that
// are not wanted any longer.
func (i *installation) write(s systemd.Service, dataDir string) error {
	units := s.Units()
	for name, text := range units {
		if err := i.put(filepath.Join(unitDir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	for _, name := range systemd.AllUnits() {
		if _, ok := units[name]; !ok {
			if err := i.remove(filepath.Join(unitDir, name)); err != nil {
				return err
			}
		}
	}
	if !i.packaged() {
		if err := i.writeShared(); err != nil {
			return err
		}
	}
	if _, err := os.Lstat(i.path(installedConfig)); !errors.Is(err, fs.ErrNotExist) {
		return err // it is the operator's
	}
	return i.put(installedConfig, []byte(firstConfig), 0o600)
}

func (i *installation) writeShared() error {
	for name, write := range sharedFiles {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return err
		}
		if err := i.put(name, b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// put writes a file in one step, unless it is as it should be.
func (i *installation) put(name string, content []byte, mode fs.FileMode) error {
	to := i.path(name)
	info, err := os.Lstat(to)
	if err == nil && info.Mode() == mode {
		if have, err := os.ReadFile(to); err == nil && bytes.Equal(have, content) {
			return nil
		}
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	_, err = command.WriteFile(to, func(w io.Writer) error {
		if f, ok := w.(*os.File); ok {
			if err := f.Chmod(mode); err != nil {
				return err
			}
		}
		_, err := w.Write(content)
		return err
	})
	i.changed = append(i.changed, to)
	return err
}

func (i *installation) remove(name string) error {
	if err := os.Remove(i.path(name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// start makes systemd load what was written, and starts the service.
func (i *installation) start(ctx context.Context, s systemd.Service) error {
	sockets := make([]string, 0, len(s.Sockets))
	for _, k := range s.Sockets {
		sockets = append(sockets, k.Unit())
	}
	if err := systemctl(ctx, "daemon-reload"); err != nil {
		return err
	}
	if err := systemctl(ctx, append([]string{"enable", "--now"}, sockets...)...); err != nil {
		return err
	}
	verb := "start"
	if len(i.changed) > 0 {
		verb = "restart"
	}
	return errors.Join(systemctl(ctx, "enable", systemd.ServiceUnit), systemctl(ctx, verb, systemd.ServiceUnit))
}

// systemdRuns reports whether this machine was booted with systemd: sd_booted(3).
func systemdRuns() bool {
	_, err := os.Lstat("/run/systemd/system")
	return err == nil
}

// systemctl runs it, and gives what it said as the error.
func systemctl(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "systemctl", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("systemctl %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

type uninstallCmd struct {
	Purge bool   `help:"Remove the data directory and the configuration, too."`
	Root  string `help:"Remove what was installed below this directory." placeholder:"DIR"`
}

// Run removes the installed service and ends the apps. If nothing is installed
// it does nothing.
func (c *uninstallCmd) Run(e *command.Env) error {
	i := &installation{root: c.Root}
	dir, err := i.dataDir()
	if err != nil {
		return err
	}
	if c.Root == "" && systemdRuns() {
		if err := i.stop(e.Ctx); err != nil {
			return err
		}
	}
	if c.Root == "" && dir != "" {
		if err := endApps(e, dir); err != nil {
			return err
		}
	}
	if err := i.removeAll(c.Purge); err != nil {
		return err
	}
	switch {
	case dir == "":
		fmt.Fprintln(e.Out, "Nothing is installed.")
	case !c.Purge:
		fmt.Fprintf(e.Out, "Uninstalled. %s stays, with all apps; 'cupola uninstall --purge' removes it, too.\n", dir)
	default:
		if err := os.RemoveAll(i.path(dir)); err != nil {
			return err
		}
		fmt.Fprintln(e.Out, "Uninstalled; nothing is left.")
	}
	if c.Root == "" && systemdRuns() {
		return systemctl(e.Ctx, "daemon-reload")
	}
	return nil
}

// dataDir is that of what is installed; "" where nothing is.
func (i *installation) dataDir() (string, error) {
	unit, err := i.unit()
	if err != nil || unit == "" {
		return "", err
	}
	return systemd.DataDirOf(unit)
}

// unit is the text of the installed service's unit; "" where nothing is installed.
func (i *installation) unit() (string, error) {
	text, err := os.ReadFile(i.path(filepath.Join(unitDir, systemd.ServiceUnit)))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

func (i *installation) stop(ctx context.Context) error {
	var there []string
	for _, name := range systemd.AllUnits() {
		if _, err := os.Lstat(i.path(filepath.Join(unitDir, name))); err == nil && name != systemd.SliceUnit {
			there = append(there, name)
		}
	}
	if len(there) == 0 {
		return nil
	}
	return systemctl(ctx, append([]string{"disable", "--now"}, there...)...)
}

func endApps(e *command.Env, dataDir string) error {
	if _, err := os.Stat(dataDir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return cleanUp(e.Ctx, e, command.DaemonFlags{DataDir: dataDir})
}

func (i *installation) removeAll(purge bool) error {
	names := []string{installedBinary, installedBinary + upgrade.OldSuffix}
	for name := range sharedFiles {
		names = append(names, name)
	}
	for _, name := range systemd.AllUnits() {
		names = append(names, filepath.Join(unitDir, name))
	}
	if purge {
		names = append(names, installedConfig)
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, i.remove(name))
	}
	if purge {
		_ = os.Remove(i.path(filepath.Dir(installedConfig))) // unless others have something there
	}
	return errors.Join(errs...)
}
