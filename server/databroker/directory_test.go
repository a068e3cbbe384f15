package databroker

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestDirectoryStopsAServerThatIsJustStarting dumps a directory again and again: each dump
// ends while the server starts again, which the next one stops at once. A lost signal
// would let the dump wait for ever.
func TestDirectoryStopsAServerThatIsJustStarting(t *testing.T) {
	dir := t.TempDir()
	shell := func(program string) *exec.Cmd {
		places := strings.NewReplacer(data, dir, serverPID, filepath.Join(dir, "server.pid"))
		c := exec.CommandContext(t.Context(), "/bin/sh", "-c", places.Replace(program))
		c.Dir = dir
		return c
	}
	if err := os.MkdirAll(filepath.Join(dir, "box"), 0o700); err != nil {
		t.Fatal(err)
	}
	const box = directory("box")
	script := shell("set -eu\n" + box.script(announced("sleep 1000"), "TERM"))
	script.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := script.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-script.Process.Pid, syscall.SIGKILL) // what it did not end
		_ = script.Wait()
	}()
	for n := range 20 {
		if out, err := shell(box.dump()).Output(); err != nil || len(out) == 0 {
			t.Fatalf("dump %d: got %d bytes, %v; want a tar", n, len(out), err)
		}
	}
}
