package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cupola/rootfs/debian"
	"cupola/rootfs/image"
	"cupola/rootfs/stack"
	"cupola/rootfs/system"
	"cupola/server/api"
	"cupola/store"
)

// StackInfo is a stack as operators see it.
type StackInfo struct {
	stack.Stack
	Default bool
	Lock    string // the file that says what it is made of; "" without one
}

// StackBuild asks for a stack made of a distribution's packages.
type StackBuild struct {
	Suite   string // debian12, debian13, jammy, noble or a codename; "" with a Lock: the lock's
	Variant string // core (also ""), dev or none
	// Packages are wanted besides those of the variant.
	Packages []string
	Without  []string // packages that are left out though others depend on them: names, or patterns of path.Match
	Name     string   // "": the suite's
	Compat   string   // what CF_STACK says; "" guesses
	Mirror   string   // "": the one in the machine's apt sources
	Lock     *debian.Lock
}

// StackImport asks for a stack made of a file or directory of this machine.
type StackImport struct {
	Name, Compat string
	Path         string // absolute
}

// StackStep says how far a build or import is. Total is 0 where it is not
// known.
type StackStep struct {
	Step        string // of debian.Step; "import", "layer", "export", "save"; "warning" for what the operator should know
	Detail      string
	Done, Total int64
}

// Stacks are the stacks of a data directory, with or without a daemon that
// runs on it.
type Stacks interface {
	List(context.Context) ([]StackInfo, error)
	Build(context.Context, StackBuild, func(StackStep)) (StackInfo, error)
	Import(context.Context, StackImport, func(StackStep)) (StackInfo, error)
	// Remove takes away a stack, or else the image of a reference or digest; the latter is told of.
	Remove(ctx context.Context, name string) (image.Removed, error)
	Inspect(ctx context.Context, name string) (StackDetail, error)
	Images(context.Context) ([]ImageInfo, error)
	Image(ctx context.Context, name string) (ImageInfo, error)
	Pull(context.Context, StackPull, func(StackStep)) (StackInfo, error)
	Export(context.Context, StackExport, func(StackStep)) (StackInfo, error)
	GC(context.Context, StackGC) (image.Removed, error)
	Close() error
}

// OpenStacks finds the stacks of a data directory: through its daemon if that
// runs, else in its place, and then no daemon can start until Close.
func OpenStacks(ctx context.Context, c Config) (Stacks, error) {
	if err := c.normalizeForRoot(); err != nil {
		return nil, err
	}
	d := &daemon{Config: c}
	err := d.openDir(ctx)
	if errors.Is(err, errInUse) {
		return newControl(c.DataDir), nil
	}
	for _, open := range []func(context.Context) error{d.openStore, d.openRoots} {
		if err == nil {
			err = open(ctx)
		}
	}
	if err != nil {
		d.close()
		return nil, err
	}
	return localStacks{d}, nil
}

// localStacks are the stacks of a daemon, which may be open or only half so.
type localStacks struct{ *daemon }

// List lists the stacks by name.
func (l localStacks) List(context.Context) (all []StackInfo, err error) {
	for _, s := range l.roots.Stacks.All() {
		all = append(all, l.info(s))
	}
	return all, nil
}

func (l localStacks) info(s stack.Stack) StackInfo {
	name, _ := l.roots.Stacks.Default(l.DefaultStack)
	i := StackInfo{Stack: s, Default: s.Name == name}
	lock := l.path("rootfs", "stacks", s.Name, "lock.json")
	if _, err := os.Stat(lock); err == nil {
		i.Lock = lock
	}
	return i
}

// Build makes a stack of packages.
func (l localStacks) Build(ctx context.Context, b StackBuild, progress func(StackStep)) (StackInfo, error) {
	if b.Suite == "" && b.Lock != nil {
		b.Suite = b.Lock.Suite
	}
	n := stack.Spec{Name: cmp.Or(b.Name, b.Suite), Compat: b.Compat, Origin: strings.TrimSpace(b.Suite + " " + b.Variant)}
	s, err := l.roots.Stacks.Add(ctx, n, func(ctx context.Context, dir string) ([]byte, error) {
		r, err := debian.Build(ctx, debian.Options{Suite: b.Suite, Variant: b.Variant, Packages: b.Packages, Without: b.Without, Dest: dir, Mirror: b.Mirror, Lock: b.Lock, IDShift: l.roots.Stacks.IDShift(), Extras: stack.DebianExtras(),
			Progress: func(p debian.Progress) { progress(StackStep{string(p.Step), p.Detail, p.Done, p.Total}) }})
		if err != nil {
			return nil, err
		}
		for _, w := range r.Warnings {
			progress(StackStep{Step: "warning", Detail: w})
		}
		progress(StackStep{Step: "save"})
		var lock bytes.Buffer
		_, err = r.Lock.WriteTo(&lock)
		return lock.Bytes(), err
	})
	if err != nil {
		return StackInfo{}, fmt.Errorf("build the stack %s: %w", n.Name, err)
	}
	return l.made(ctx, s, progress)
}

// Import makes a stack of a file.
func (l localStacks) Import(ctx context.Context, i StackImport, progress func(StackStep)) (StackInfo, error) {
	if !filepath.IsAbs(i.Path) {
		return StackInfo{}, fmt.Errorf("import %s: the path is not absolute", i.Path)
	}
	var told time.Time
	s, err := l.roots.Stacks.Import(ctx, i.Name, i.Compat, i.Path, func(done, total int64) {
		if time.Since(told) > 50*time.Millisecond || done == total {
			told = time.Now()
			progress(StackStep{Step: "import", Detail: filepath.Base(i.Path), Done: done, Total: total})
		}
	})
	if err != nil {
		return StackInfo{}, err
	}
	return l.made(ctx, s, progress)
}

// made offers a new stack, and warns where this machine does not suit it.
func (l localStacks) made(ctx context.Context, s stack.Stack, progress func(StackStep)) (StackInfo, error) {
	if w := system.KernelWarning(s.Kernel); w != "" {
		progress(StackStep{Step: "warning", Detail: w})
	}
	return l.info(s), l.offer(ctx)
}

// offer brings the API's rows and, in a daemon, the cell up to the stacks that
// are there.
func (l localStacks) offer(ctx context.Context) error {
	if l.cell != nil {
		l.offerRootFSes()
	}
	return l.store.Write(ctx, func(tx *store.Tx) error { return api.SeedStacks(tx, l.systemStacks()) })
}

// Close closes what OpenStacks opened.
func (l localStacks) Close() error {
	l.close()
	return nil
}
