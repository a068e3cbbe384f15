package restart

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"cupola/test/e2e"
)

// TestDataDirLeadsToItsDaemon makes a command find the API of a daemon by its data
// directory, also when it has come back on another port.
func TestDataDirLeadsToItsDaemon(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	cells := func() (string, error) {
		cmd := exec.Command(d.Binary, "cells", "--data-dir", d.Dir)
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
		d.Kill()
		out, err := cells()
		if want := "no daemon runs on " + d.Dir + ": start it with 'sudo " + d.Binary + " serve --data-dir " + d.Dir + "'"; err == nil || !strings.Contains(out, want) {
			t.Errorf("with the daemon killed: got %v\n%s\nwant %q", err, out, want)
		}
		before := d.Addr
		d.Addr = "127.0.0.1:0"
		d.Start()
		if d.Addr == before {
			t.Errorf("it is back on %s; the test wants another port", before)
		}
	}
}
