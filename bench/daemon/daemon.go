// Package daemon runs the built cupola on a temporary directory for the programs that
// measure it.
package daemon

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"time"
)

// Password is the admin's.
const Password = "a-password-for-measuring"

// Daemon is a running `cupola serve`.
type Daemon struct {
	Binary string
	Dir    string // its data directory
	Port   string // of its HTTP listener, on the loopback
	Ready  time.Duration
	flags  []string
	cmd    *exec.Cmd
}

var apiLine = regexp.MustCompile(`API +http://[^:]+:(\d+)`)

// Run measures a daemon that it starts with flags, and stops it.
func Run(binary string, measure func(*Daemon) error, flags ...string) error {
	d, err := Start(binary, flags...)
	if err != nil {
		return err
	}
	return errors.Join(measure(d), d.Stop())
}

// Start starts a daemon with further flags. Ready is how long it took until it
// served.
func Start(binary string, flags ...string) (*Daemon, error) {
	dir, err := os.MkdirTemp("", "bench-cupola-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o711); err != nil { // containers reach their roots through it
		return nil, err
	}
	d := &Daemon{Binary: binary, Dir: dir, flags: flags}
	if err := d.serve("0"); err != nil {
		if d.cmd.Process == nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		return nil, errors.Join(err, d.Stop())
	}
	return d, nil
}

// serve runs the daemon until it listens on a port of the loopback; "0" is any.
func (d *Daemon) serve(port string) error {
	flags := append([]string{"serve", "--data-dir", d.Dir, "--http", "127.0.0.1:" + port, "--https", "off", "--admin-password", Password}, d.flags...)
	// Not CommandContext: however this ends, Stop takes the daemon down in order.
	d.cmd = exec.Command(d.Binary, flags...) //nolint:noctx
	d.cmd.Stderr = os.Stderr
	// The terminal's Ctrl-C is not for it, and it does not outlive a benchmark
	// that is killed.
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := d.cmd.Start(); err != nil {
		return err
	}
	d.Port = ""
	lines := bufio.NewScanner(out)
	for d.Port == "" && lines.Scan() {
		if m := apiLine.FindStringSubmatch(lines.Text()); m != nil {
			d.Port, d.Ready = m[1], time.Since(begin)
		}
	}
	go func() {
		for lines.Scan() { // it goes on writing
		}
	}()
	if d.Port == "" {
		return errors.New("the daemon did not start")
	}
	return nil
}

// Restart ends the daemon and starts it again, on the same port. Its containers run on.
func (d *Daemon) Restart() error {
	if err := errors.Join(d.cmd.Process.Signal(syscall.SIGTERM), d.cmd.Wait()); err != nil {
		return err
	}
	return d.serve(d.Port)
}

// PID is the daemon's process.
func (d *Daemon) PID() int { return d.cmd.Process.Pid }

// URL is the API's.
func (d *Daemon) URL() string { return "http://127.0.0.1:" + d.Port }

// Stop ends the daemon and takes all that it ran away, its directory too.
func (d *Daemon) Stop() error {
	errs := []error{d.cmd.Process.Signal(syscall.SIGTERM), d.cmd.Wait()}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, args := range [][]string{{"cleanup"}, {"doctor", "--leaks"}} {
		out, err := exec.CommandContext(ctx, d.Binary, append(args, "--data-dir", d.Dir)...).CombinedOutput()
		if err != nil {
			errs = append(errs, fmt.Errorf("cupola %s: %w\n%s", args[0], err, out))
		}
	}
	return errors.Join(append(errs, os.RemoveAll(d.Dir))...)
}
