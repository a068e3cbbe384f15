package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func TestDemoOnceLeavesNothing(t *testing.T) {
	demo(t, (*exec.Cmd).CombinedOutput, "--http", "127.0.0.1:0")
}

func TestDemoNeedsNoNetwork(t *testing.T) {
	demo(t, withoutNetwork)
}

func demo(t *testing.T, run func(*exec.Cmd) ([]byte, error), flags ...string) {
	t.Helper()
	binary := needBinary(t)
	out, err := run(exec.Command(binary, append([]string{"demo", "--once"}, flags...)...))
	if err != nil || !strings.Contains(string(out), "200 OK") {
		t.Fatalf("got %v\n%s", err, out)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "cupola-demo-*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	checkLeaks(t, binary, noDir)
}

// withoutNetwork runs a command in a network namespace that has nothing but
// loopback.
func withoutNetwork(c *exec.Cmd) (out []byte, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return
		}
		if err = netlink.LinkSetUp(&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Name: "lo", Index: 1}}); err != nil {
			return
		}
		out, err = c.CombinedOutput()
	}()
	<-done
	return out, err
}
