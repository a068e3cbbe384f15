package server

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
)

// preloadPrefix begins the names of directories that are gone when a preload is
// done, or the next daemon starts.
const preloadPrefix = "preload-"

// preloadRetry is how long after a failure a root filesystem is fetched again.
const preloadRetry = time.Minute

// preload makes the stacks that the configuration names and that are not here
// yet, until all are or ctx ends. The cells offer each once it is there.
func (d *daemon) preload(ctx context.Context) error {
	missing, err := d.Preloads()
	if err != nil {
		return err
	}
	stale, _ := filepath.Glob(d.dir.Path(preloadPrefix + "*"))
	for _, dir := range stale {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	for len(missing) > 0 {
		for name, from := range maps.Clone(missing) {
			if err := d.preloadOne(ctx, name, from); err != nil && ctx.Err() == nil {
				d.Log.ErrorContext(ctx, "root filesystem was not preloaded", "name", name, "from", from, "err", err)
				continue
			}
			delete(missing, name)
		}
		if len(missing) == 0 {
			break
		}
		select {
		case <-time.After(preloadRetry):
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

func (d *daemon) preloadOne(ctx context.Context, name, from string) error {
	if have, ok := d.roots.Stacks.Get(name); ok {
		if have.Origin != origin(from) {
			d.Log.WarnContext(ctx, "root filesystem is an older stack of that name; remove it with cupola stack remove to have it made anew",
				"name", name, "from", from, "made_from", have.Origin)
		}
		return nil
	}
	quiet := func(steps.Step) {}
	if isTree(from) {
		return d.preloadTree(ctx, name, from)
	}
	if strings.HasPrefix(from, "/") {
		_, err := d.stacks.Import(ctx, stack.ImportRequest{Name: name, Path: from}, quiet)
		return err
	}
	_, err := d.stacks.Pull(ctx, stack.PullRequest{Reference: from, Name: name}, quiet)
	return err
}

// preloadTree makes a stack of a directory, by way of an archive of it.
func (d *daemon) preloadTree(ctx context.Context, name, dir string) error {
	tmp, err := os.MkdirTemp(d.DataDir, preloadPrefix)
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
	_, err = d.stacks.Import(ctx, stack.ImportRequest{Name: name, Path: archive.Name()}, func(steps.Step) {})
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
