package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Main runs the tests of a package. At the end it stops the daemon that they
// shared, which must leave nothing.
func Main(m *testing.M) {
	code := m.Run()
	if d := shared.daemon; d != nil {
		for _, problem := range d.stop() {
			fmt.Fprintln(os.Stderr, "the shared daemon:", problem)
			code = 1
		}
	}
	if common.dir != "" {
		_ = os.RemoveAll(common.dir)
	}
	os.Exit(code)
}

// shared is the daemon of the package's tests whose subject is not the daemon.
var shared struct {
	sync.Mutex
	tried  bool
	daemon *Daemon
}

// SharedDaemon is one daemon for all tests of a package that call it. The first
// call starts it. The tests use different names, change nothing that belongs to
// the whole daemon, and neither stop nor restart it.
func SharedDaemon(t testing.TB) *Daemon {
	t.Helper()
	binary := NeedBinary(t)
	shared.Lock()
	defer shared.Unlock()
	if !shared.tried {
		shared.tried = true
		d := newDaemon(t, binary)
		t.Cleanup(func() {
			if shared.daemon == nil { // it did not start
				d.Destroy()
			}
		})
		d.Start()
		shared.daemon = d
	}
	if shared.daemon == nil {
		t.Fatal("the shared daemon did not start: see the first test that failed")
	}
	d := shared.daemon.On(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the shared daemon's log:\n%s", d.Log)
		}
	})
	return d
}

// Repository is the root of this repository.
func Repository(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd() // a test's is that of its package
	if err != nil {
		t.Fatal(err)
	}
	for at := dir; at != filepath.Dir(at); at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "cmd", "cupola")); err == nil {
			return at
		}
	}
	t.Fatalf("%s is outside of the repository", dir)
	return ""
}
