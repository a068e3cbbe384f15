// Package preload makes the stacks that the configuration names and that are not
// here yet, of directories, archives and images.
package preload

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cupola/rootfs/reference"
	"cupola/server/admin/stack"
	"cupola/server/admin/steps"
	"cupola/server/cells"
)

// prefix begins the names of directories that are gone when a preload is
// done, or the next daemon starts.
const prefix = "preload-"

// retry is how long after a failure a root filesystem is fetched again.
const retry = time.Minute

// Preloader makes root filesystems by way of the stacks.
type Preloader struct {
	Cells  cells.Config
	Stacks *stack.Library
}

// Run makes the stacks that the configuration names and that are not here yet,
// until all are or ctx ends. The cells offer each once it is there.
func (p Preloader) Run(ctx context.Context) error {
	missing, err := p.Cells.Preloads()
	if err != nil {
		return err
	}
	stale, _ := filepath.Glob(p.Stacks.Dir.Path(prefix + "*"))
	for _, dir := range stale {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	for len(missing) > 0 {
		for name, from := range maps.Clone(missing) {
			if err := p.one(ctx, name, from); err != nil && ctx.Err() == nil {
				p.Stacks.Log.ErrorContext(ctx, "root filesystem was not preloaded", "name", name, "from", from, "err", err)
				continue
			}
			delete(missing, name)
		}
		if len(missing) == 0 {
			break
		}
		select {
		case <-time.After(retry):
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

func (p Preloader) one(ctx context.Context, name, from string) error {
	if have, ok := p.Stacks.Roots.Stacks.Get(name); ok {
		if have.Origin != origin(from) {
			p.Stacks.Log.WarnContext(ctx, "root filesystem is an older stack of that name; remove it with cupola stack remove, and it is made again",
				"name", name, "from", from, "made_from", have.Origin)
		}
		return nil
	}
	quiet := func(steps.Step) {}
	if isTree(from) {
		return p.tree(ctx, name, from)
	}
	if strings.HasPrefix(from, "/") {
		_, err := p.Stacks.Import(ctx, stack.ImportRequest{Name: name, Path: from}, quiet)
		return err
	}
	_, err := p.Stacks.Pull(ctx, stack.PullRequest{Reference: from, Name: name}, quiet)
	return err
}

// preloadTree makes a stack of a directory, by way of an archive of it.
func (p Preloader) tree(ctx context.Context, name, dir string) error {
	tmp, err := os.MkdirTemp(p.Stacks.Dir.Path(), prefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	archive, err := os.Create(filepath.Join(tmp, filepath.Base(dir))) // the stack's origin
	if err != nil {
		return err
	}
	if err := errors.Join(packDir(ctx, dir, archive), archive.Close()); err != nil {
		return err
	}
	_, err = p.Stacks.Import(ctx, stack.ImportRequest{Name: name, Path: archive.Name()}, func(steps.Step) {})
	return err
}

// origin is what a stack that was made of a path or an image says of it.
func origin(from string) string {
	if strings.HasPrefix(from, "/") {
		return filepath.Base(from)
	}
	if r, err := reference.Parse(from); err == nil {
		return r.String()
	}
	return from
}
