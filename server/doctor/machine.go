package doctor

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// machine is the machine to check: the files below root ("/" except in tests)
// and the daemon's options.
type machine struct {
	Options
	root   string
	now    time.Time
	lookup func(ctx context.Context, host string) ([]string, error)
	getenv func(string) string
	facts  func() (storeFacts, error) // of m.store, asked once

	superuser bool
}

func thisMachine(o Options) *machine {
	m := &machine{Options: o, root: "/", now: time.Now(), lookup: net.DefaultResolver.LookupHost, getenv: os.Getenv, superuser: os.Geteuid() == 0}
	m.facts = sync.OnceValues(m.store)
	return m
}

func (m *machine) path(name string) string { return filepath.Join(m.root, name) }

// read returns a file without the blanks around, "" where there is none.
func (m *machine) read(name string) string {
	b, err := os.ReadFile(m.path(name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func (m *machine) exists(name string) bool {
	_, err := os.Stat(m.path(name))
	return err == nil
}

func (m *machine) writable(name string) bool {
	f, err := os.OpenFile(m.path(name), os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// write overwrites an existing file.
func (m *machine) write(name, text string) error {
	f, err := os.OpenFile(m.path(name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
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
