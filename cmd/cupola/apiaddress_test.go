package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestDataDirLeadsToItsDaemon has a command find the API of a daemon by its data
// directory, also when it has come back on another port.
func TestDataDirLeadsToItsDaemon(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, needBinary(t))
	cells := func() (string, error) {
		cmd := exec.Command(d.binary, "cells", "--data-dir", d.dir)
		for _, v := range os.Environ() {
			if !strings.HasPrefix(v, "CUPOLA_") {
				cmd.Env = append(cmd.Env, v)
			}
		}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for range 2 {
		if out, err := cells(); err != nil || !strings.Contains(out, "CONTAINERS") {
			t.Errorf("got %v\n%s", err, out)
		}
		d.kill()
		out, err := cells()
		if want := "no daemon runs on " + d.dir + ": start it with 'sudo " + d.binary + " serve --data-dir " + d.dir + "'"; err == nil || !strings.Contains(out, want) {
			t.Errorf("with the daemon killed: got %v\n%s\nwant %q", err, out, want)
		}
		before := d.addr
		d.addr = "127.0.0.1:0"
		d.start()
		if d.addr == before {
			t.Errorf("it is back on %s; the test wants another port", before)
		}
	}
}
