package sandbox

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"cupola/rootfs"
	"cupola/runtime/container"
	"cupola/server/bosh/erb"
)

// Config is what a Sandbox is made of. Zero bounds are the defaults.
type Config struct {
	Containers  *container.Engine
	Roots       *rootfs.Store
	Time        time.Duration // of one run; 60 s
	MemoryBytes int64         // 512 MiB
	OutputBytes int64         // 96 MiB, of which a third is how it is written
	Log         *slog.Logger  // of what could not be taken away; nil discards it
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

// Sandbox runs programs that nobody trusts.
type Sandbox struct{ cfg Config }

// New makes a Sandbox. It starts nothing. A cell that has the same containers and
// roots takes away, when it starts to run, what of them it does not know: use the
// Sandbox after that. What a killed daemon leaves of a run goes with it.
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
// run is a container of its own.
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

// has tells whether a stack is here; an image is.
func (s *Sandbox) has(stack string) bool {
	scheme, name := rootfs.SplitScheme(stack)
	switch {
	case !strings.Contains(stack, ":"):
		name = stack
	case scheme != rootfs.SchemePreloaded:
		return true
	}
	_, here := s.cfg.Roots.Stack(name)
	return here
}

// places are where programs named ruby lie, in stacks and in release images.
var places = []string{"usr/bin/ruby", "usr/local/bin/ruby", "opt/ruby/bin/ruby", "var/vcap/packages/*/bin/ruby"}

// find returns the path of a stack's Ruby, or "".
func (s *Sandbox) find(ctx context.Context, stack string) (found string, err error) {
	err = s.with(ctx, stack, func(_ string, root rootfs.Root) error {
		found, err = locate(root)
		return err
	})
	return found, err
}

func locate(root rootfs.Root) (string, error) {
	for _, b := range root.Binds {
		for _, place := range places {
			within, err := filepath.Rel(b.Destination, "/"+place)
			if err != nil || !filepath.IsLocal(within) {
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

// with mounts a stack or image for as long as f takes.
func (s *Sandbox) with(ctx context.Context, stack string, f func(id string, root rootfs.Root) error) error {
	id := newID()
	root, err := s.cfg.Roots.Mount(ctx, rootfs.Request{ID: id, Stack: stack, DiskBytes: diskBytes, Inodes: inodes})
	if err != nil {
		return err
	}
	defer s.clean(ctx, id)
	return f(id, root)
}

// clean takes away what a run has left. Where it cannot, the next daemon does.
func (s *Sandbox) clean(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	if err := errors.Join(s.cfg.Containers.Remove(ctx, id), s.cfg.Roots.Unmount(ctx, id)); err != nil {
		s.cfg.Log.WarnContext(ctx, "sandbox was not taken away", "id", id, "err", err)
	}
}

func mounts(root rootfs.Root) (all []container.Mount) {
	for _, b := range root.Binds {
		all = append(all, container.Mount{Source: b.Source, Destination: b.Destination, ReadOnly: true})
	}
	return all
}

// lastLine is what a program said last.
func lastLine(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
