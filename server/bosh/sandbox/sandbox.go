package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"cupola/rootfs"
	"cupola/rootfs/reference"
	"cupola/rootfs/root"
	"cupola/runtime/container"
	"cupola/runtime/users"
	"cupola/server/bosh/erb"
)

// Config is what a Sandbox is made of. Zero bounds are the defaults.
type Config struct {
	Containers *container.Engine
	Roots      *rootfs.Store
	// Users gives each run a range of host users, as long as its directory
	// exists in States. States is a cell's, which removes what a killed daemon
	// left there.
	Users       Users
	States      string
	Time        time.Duration // of one run; 60 s
	MemoryBytes int64         // 512 MiB
	OutputBytes int64         // 96 MiB, of which a third is how it is written
	Log         *slog.Logger  // of failed removals; nil discards it
}

// Users are a users.Claims or a users.Shared.
type Users interface {
	Claim(owner string) (users.Range, error)
	Release(owner string) error
}

// Bounds that nothing needs to change.
const (
	maxProcesses = 32
	maxFiles     = 256
	diskBytes    = 32 << 20
	inodes       = 4096
	nobody       = 65534
	cpuShares    = 512 // half of what an app of ordinary size has
	cleanupTime  = 20 * time.Second
)

// Sandbox runs untrusted programs.
type Sandbox struct{ cfg Config }

// New returns a Sandbox. It starts nothing. A cell with the same containers
// and roots removes unknown ones when it starts, including those of a killed
// daemon's sandbox: use the Sandbox after that.
func New(c Config) *Sandbox {
	c.Time = cmp.Or(c.Time, time.Minute)
	c.MemoryBytes = cmp.Or(c.MemoryBytes, 512<<20)
	c.OutputBytes = cmp.Or(c.OutputBytes, 96<<20)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Sandbox{c}
}

// Interpreter is a Ruby.
type Interpreter struct {
	Stack string // the stack or image that it is part of
	Path  string // in it
}

// Ruby finds a Ruby in the first of the stacks and images that has one, and
// returns what runs it; nil if none has. A stack that is not here has none. Each
// run is its own container.
func (s *Sandbox) Ruby(ctx context.Context, stacks ...string) (erb.Ruby, Interpreter, error) {
	for _, stack := range stacks {
		if !s.has(stack) {
			continue
		}
		found, err := s.find(ctx, stack)
		if err != nil {
			return nil, Interpreter{}, err
		}
		if found != "" {
			i := Interpreter{stack, found}
			return func(ctx context.Context, program, input []byte) ([]byte, error) { return s.run(ctx, i, program, input) }, i, nil
		}
	}
	return nil, Interpreter{}, nil
}

// has reports whether a stack is here; an image is.
func (s *Sandbox) has(stack string) bool {
	scheme, name := reference.SplitScheme(stack)
	switch {
	case !strings.Contains(stack, ":"):
		name = stack
	case scheme != reference.SchemePreloaded:
		return true
	}
	_, here := s.cfg.Roots.Stacks.Get(name)
	return here
}

// places are where programs named ruby lie, in stacks and in release images.
var places = []string{"usr/bin/ruby", "usr/local/bin/ruby", "opt/ruby/bin/ruby", "var/vcap/packages/*/bin/ruby"}

// find returns the path of a stack's Ruby, or "".
func (s *Sandbox) find(ctx context.Context, stack string) (found string, err error) {
	err = s.with(ctx, rubyRoot(stack), func(m mounted) error {
		found, err = locate(m.Root, places)
		return err
	})
	return found, err
}

// rubyRoot is the root that Ruby runs in.
func rubyRoot(stack string) root.Request {
	return root.Request{Stack: stack, DiskBytes: diskBytes, Inodes: inodes}
}

// locate returns the first of some paths that a root has, or "".
func locate(root root.Root, places []string) (string, error) {
	for _, b := range root.Binds {
		for _, place := range places {
			within, err := filepath.Rel(b.Destination, "/"+place)
			if err != nil || b.Source == "" || !filepath.IsLocal(within) {
				continue
			}
			if _, err := os.Stat(filepath.Join(b.Source, within)); err == nil {
				return "/" + place, nil
			}
		}
	}
	dir, err := os.OpenRoot(root.Path)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	for _, place := range places {
		found, err := fs.Glob(dir.FS(), place) // a link counts, wherever it leads
		if err == nil && len(found) > 0 {
			return path.Join("/", found[0]), nil
		}
	}
	return "", nil
}

// mounted is the root of a run, and whose it is.
type mounted struct {
	root.Root
	id    string
	users users.Range
}

// with mounts a stack or image, with its own users, for as long as f takes.
func (s *Sandbox) with(ctx context.Context, r root.Request, f func(mounted) error) error {
	m := mounted{id: newID()}
	state := filepath.Join(s.cfg.States, m.id)
	if err := os.Mkdir(state, 0o700); err != nil {
		return err
	}
	defer s.clean(ctx, m.id, state)
	var err error
	if m.users, err = s.cfg.Users.Claim(state); err != nil {
		return fmt.Errorf("users: %w", err)
	}
	r.ID, r.Users = m.id, m.users
	if m.Root, err = s.cfg.Roots.Mount(ctx, r); err != nil {
		return err
	}
	return f(m)
}

// clean removes a run's remains, then frees its users. If it fails, the next
// daemon does it.
func (s *Sandbox) clean(ctx context.Context, id, state string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	err := errors.Join(s.cfg.Containers.Remove(ctx, id), s.cfg.Roots.Unmount(ctx, id))
	if err == nil {
		err = os.Remove(state)
	}
	if err == nil {
		err = s.cfg.Users.Release(state)
	}
	if err != nil {
		s.cfg.Log.WarnContext(ctx, "sandbox was not taken away", "id", id, "err", err)
	}
}

func mounts(root root.Root) (all []container.Mount) {
	for _, b := range root.Binds {
		all = append(all, container.Mount{Source: b.Source, Destination: b.Destination, ReadOnly: true, Recursive: true})
	}
	return all
}

// lastLine is what a program said last.
func lastLine(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
