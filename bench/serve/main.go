// Command serve measures how long a daemon takes from its execution to its first answer:
// on a new data directory, and on the same one again, as after an upgrade.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"cupola/bench/daemon"
	"cupola/bench/report"
)

func main() {
	binary := flag.String("cupola", "bin/cupola", "the built cupola")
	before := flag.String("before", "", "another build, measured by turns with it")
	rounds := flag.Int("n", 11, "how many new data directories")
	restarts := flag.Int("restarts", 3, "how many starts on each of them")
	flag.Parse()
	report.Main(5*time.Minute, func(ctx context.Context) error {
		var builds []*build
		for _, name := range []string{*before, *binary} {
			if name != "" {
				builds = append(builds, &build{binary: name})
			}
		}
		for range *rounds {
			for _, b := range builds {
				if err := b.round(ctx, *restarts); err != nil {
					return err
				}
			}
		}
		show(builds)
		return nil
	})
}

// build is what was measured of a binary.
type build struct {
	binary     string
	first      []start // on new data directories
	afterwards []start
}

// start is one start of a daemon.
type start struct{ wall, cpu time.Duration }

// round starts the daemon on a new data directory, and then again.
func (b *build) round(ctx context.Context, restarts int) (err error) {
	dir, err := os.MkdirTemp("", "bench-cupola-")
	if err != nil {
		return err
	}
	defer func() {
		out, failed := exec.CommandContext(ctx, b.binary, "cleanup", "--data-dir", dir).CombinedOutput()
		if failed != nil {
			failed = fmt.Errorf("cupola cleanup: %w\n%s", failed, out)
		}
		err = errors.Join(err, failed, os.RemoveAll(dir))
	}()
	if err := os.Chmod(dir, 0o711); err != nil { // containers reach their roots through it
		return err
	}
	for n := range restarts + 1 {
		s, err := b.serve(ctx, dir)
		if err != nil {
			return err
		}
		if n == 0 {
			b.first = append(b.first, s)
		} else {
			b.afterwards = append(b.afterwards, s)
		}
	}
	return nil
}

// pause is between two attempts to connect; it bounds how exact a figure is.
const pause = time.Millisecond

// serve starts a daemon, asks it until it answers, and stops it.
func (b *build) serve(ctx context.Context, dir string) (s start, err error) {
	address, err := unused()
	if err != nil {
		return s, err
	}
	d := exec.CommandContext(ctx, b.binary, "serve", "--data-dir", dir, "--http", address, "--https", "off")
	var said bytes.Buffer
	d.Stderr = &said
	d.Cancel = func() error { return d.Process.Signal(syscall.SIGTERM) }
	began := time.Now()
	if err := d.Start(); err != nil {
		return s, err
	}
	answered := ask(ctx, "http://"+address+"/v3/info")
	s.wall = time.Since(began)
	used, err := daemon.CPUTime(d.Process.Pid)
	s.cpu = used
	err = errors.Join(answered, err, d.Process.Signal(syscall.SIGTERM), d.Wait())
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, said.String())
	}
	return s, err
}

// unused is an address on the loopback at which nothing listens.
func unused() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// ask asks for a page until it is answered.
func ask(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		answer, err := client.Do(r)
		if err == nil {
			return errors.Join(answer.Body.Close(), wantOK(answer))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

func wantOK(answer *http.Response) error {
	if answer.StatusCode != http.StatusOK {
		return errors.New("got " + answer.Status)
	}
	return nil
}

func show(builds []*build) {
	t := report.NewTable("build", "new directory, ms", "slowest", "CPU", "again, ms", "slowest", "CPU")
	for _, b := range builds {
		cells := []string{filepath.Base(b.binary)}
		for _, all := range [][]start{b.first, b.afterwards} {
			walls, cpus := make([]time.Duration, len(all)), make([]time.Duration, len(all))
			for i, s := range all {
				walls[i], cpus[i] = s.wall, s.cpu
			}
			for _, d := range []time.Duration{report.Median(walls), report.Quantile(walls, 1), report.Median(cpus)} {
				cells = append(cells, report.Figure(report.MS(d), 0))
			}
		}
		t.Add(cells...)
	}
	t.Print(os.Stdout)
}
