package doctor

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// machine is the host to check, and the daemon's options.
type machine struct {
	Options
	host
	now    time.Time
	lookup func(ctx context.Context, host string) ([]string, error)
	getenv func(string) string
	facts  func() (storeFacts, error) // of m.store, asked once

	superuser bool
}

func thisMachine(o Options) *machine {
	m := &machine{Options: o, host: host{root: "/"}, now: time.Now(), lookup: net.DefaultResolver.LookupHost, getenv: os.Getenv, superuser: os.Geteuid() == 0}
	m.facts = sync.OnceValues(m.store)
	return m
}

// base returns the data directory, or its closest existing parent.
func (m *machine) base() string {
	dir := m.DataDir
	for {
		if st, err := os.Stat(dir); err == nil && st.IsDir() || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// try calls do with a temporary directory on the data directory's file system.
func (m *machine) try(do func(dir string) error) error {
	dir, remove, err := TempDir(m.base(), ".cupola-doctor-")
	if err != nil {
		return err
	}
	return errors.Join(do(dir), remove())
}
