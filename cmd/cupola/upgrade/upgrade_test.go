package upgrade

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cupola/test/e2e"
)

// shellProgram writes a program for a shell.
func shellProgram(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestAnUpgradeFailsNoRequest upgrades a daemon whose socket is held by its
// manager, while an app is asked: no request fails and the instance stays, also
// when the new binary does not come up and the old one is brought back.
func TestAnUpgradeFailsNoRequest(t *testing.T) {
	t.Parallel()
	binary := e2e.NeedBinary(t)
	d := e2e.StartDaemon(t, binary)
	if out, err := d.Run("push", e2e.Example(t, "node")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	before := d.Running("hello-node", "web", 1)
	d.Kill()
	program := filepath.Join(t.TempDir(), "cupola")
	if err := copyProgram(binary, program); err != nil {
		t.Fatal(err)
	}
	s := e2e.Supervise(t, d, program)
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var sent atomic.Int64
	failed := make(chan string, 1)
	for range 4 {
		go s.Requests(ctx, "hello-node", &sent, failed)
	}
	var out strings.Builder
	t.Cleanup(func() { s.Stop(context.Background()) })
	u := &Upgrade{Binary: program, DataDir: d.Dir, Service: s, Out: &out}
	if err := u.Run(t.Context(), binary); err != nil || !strings.Contains(out.String(), "Upgraded to ") {
		t.Errorf("got %v, %q", err, out.String())
	}
	for want, file := range map[string]string{
		"nothing was changed":                               shellProgram(t, "echo something else"),
		"is not a cupola binary":                            shellProgram(t, "exit 3"),
		"did not start, and the previous binary runs again": shellProgram(t, `[ "$1" = version ] && echo "cupola 9.9 (CF)" && exit; echo no >&2; exit 1`),
	} {
		if err := u.Run(t.Context(), file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %q", err, want)
		}
	}
	n := sent.Load()
	e2e.Eventually(t, time.Minute, func() string {
		if sent.Load() < n+20 {
			return "nobody answers"
		}
		return ""
	})
	cancel()
	select {
	case err := <-failed:
		t.Errorf("a request of %d failed: %s", sent.Load(), err)
	default:
	}
	if after := d.Running("hello-node", "web", 1); after[0].InstanceGUID != before[0].InstanceGUID {
		t.Errorf("the instance was replaced")
	}
	if version, err := versionOf(t.Context(), program); err != nil || version == "9.9" {
		t.Errorf("got the version %q, %v", version, err)
	}
}
