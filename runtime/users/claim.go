package users

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// The ranges lie where nothing else on a machine has IDs: above those of sssd and
// FreeIPA (to 2,000,200,000) and of systemd's containers (to 1,879,048,191), below
// systemd's foreign IDs (from 2,147,352,576).
const (
	lowest = 0x78000000
	count  = (0x7ffe0000 - lowest) / Size
)

// DefaultDir is where all daemons of a machine claim ranges. It ends with the
// machine's uptime, as containers do.
const DefaultDir = "/run/cupola-users"

// Claims are the ranges of a machine that are in use. Each is a symbolic link,
// named by the range, to a directory that exists as long as anything of the
// container is left: a range whose directory is gone is free. So a daemon that is
// killed at any moment neither loses a range nor frees it too early. The methods
// may be called at the same time, by several daemons too.
type Claims struct {
	dir     string
	foreign []span // of /etc/subuid and /etc/subgid

	mu   sync.Mutex
	next int              // where the search goes on, so that a range is reused as late as possible
	held map[string]Range // by owner; those of other daemons as they were at Open
}

// Open opens the claims that lie in dir, which is made if it is missing.
func Open(dir string) (*Claims, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make directory of user ranges: %w", err)
	}
	c := &Claims{dir: dir, next: rand.IntN(count), held: map[string]Range{}}
	if err := c.load(); err != nil {
		return nil, err
	}
	for _, name := range []string{"/etc/subuid", "/etc/subgid"} {
		text, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read subordinate IDs: %w", err)
		}
		c.foreign = append(c.foreign, parseSubIDs(string(text))...)
	}
	return c, nil
}

// errNone says that containers have all ranges.
var errNone = fmt.Errorf("all %d ranges of user IDs are in use", count)

// Claim gives a free range to the container whose last trace is the directory
// owner, an absolute path that exists. An owner that has a range keeps it.
func (c *Claims) Claim(owner string) (Range, error) {
	unlock, err := c.lock()
	if err != nil {
		return Range{}, err
	}
	defer unlock()
	if r, ok := c.held[owner]; ok {
		if to, err := os.Readlink(c.link(r)); err == nil && to == owner {
			return r, nil
		}
	}
	for range count {
		r := Range{Base: uint32(lowest + c.next*Size), Size: Size}
		c.next = (c.next + 1) % count
		if c.isForeign(r) {
			continue
		}
		free, err := c.vacate(r)
		if err != nil {
			return Range{}, err
		}
		if !free {
			continue
		}
		if err := os.Symlink(owner, c.link(r)); err != nil {
			return Range{}, err
		}
		c.held[owner] = r
		return r, nil
	}
	return Range{}, errNone
}

// Release frees the range of an owner whose directory is gone. One that has none
// is not an error.
func (c *Claims) Release(owner string) error {
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	r, ok := c.held[owner]
	if !ok {
		return nil
	}
	free, err := c.vacate(r)
	if free {
		delete(c.held, owner)
	}
	return err
}

// ReleaseBelow gives back the ranges of all owners in a directory, though they
// cannot be removed: nothing of their containers may be left.
func (c *Claims) ReleaseBelow(dir string) (err error) {
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	for owner, r := range c.held {
		if filepath.Dir(owner) != dir {
			continue
		}
		if to, rerr := os.Readlink(c.link(r)); rerr == nil && to == owner {
			err = errors.Join(err, os.Remove(c.link(r)))
		}
		delete(c.held, owner)
	}
	return err
}

// vacate reports whether a range is free, and removes the claim of one whose
// owner is gone.
func (c *Claims) vacate(r Range) (free bool, err error) {
	owner, err := os.Readlink(c.link(r))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	switch _, err := os.Lstat(owner); {
	case err == nil:
		return false, nil
	case !errors.Is(err, fs.ErrNotExist):
		return false, nil // it may be there
	}
	return true, os.Remove(c.link(r))
}

// load reads the claims that there are.
func (c *Claims) load() error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return fmt.Errorf("read user ranges: %w", err)
	}
	for _, e := range entries {
		base, err := strconv.ParseUint(e.Name(), 16, 32)
		if err != nil {
			continue // the lock
		}
		if owner, err := os.Readlink(filepath.Join(c.dir, e.Name())); err == nil {
			c.held[owner] = Range{Base: uint32(base), Size: Size}
		}
	}
	return nil
}

func (c *Claims) link(r Range) string {
	return filepath.Join(c.dir, strconv.FormatUint(uint64(r.Base), 16))
}

// lock keeps other goroutines and other daemons out.
func (c *Claims) lock() (unlock func(), err error) {
	c.mu.Lock()
	f, err := os.OpenFile(filepath.Join(c.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
			f.Close()
		}
	}
	if err != nil {
		c.mu.Unlock()
		return nil, fmt.Errorf("lock user ranges: %w", err)
	}
	return func() {
		f.Close()
		c.mu.Unlock()
	}, nil
}

// span is IDs that an administrator has given to somebody.
type span struct{ first, count uint64 }

// parseSubIDs reads a file like /etc/subuid: name:first:count, a line each. Lines
// of another form give nothing, as to shadow's tools.
func parseSubIDs(text string) (spans []span) {
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) != 3 {
			continue
		}
		first, err := strconv.ParseUint(fields[1], 10, 32)
		n, err2 := strconv.ParseUint(fields[2], 10, 32)
		if err == nil && err2 == nil && n > 0 {
			spans = append(spans, span{first, n})
		}
	}
	return spans
}

func (c *Claims) isForeign(r Range) bool {
	return slices.ContainsFunc(c.foreign, func(s span) bool { return uint64(r.Base) < s.first+s.count && s.first < uint64(r.Base)+uint64(r.Size) })
}
