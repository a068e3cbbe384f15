package cell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"time"

	"cupola/runtime/container"
	"cupola/runtime/lrp"
)

// programFile holds what a container does, for a daemon that adopts it. It
// names secrets, so that it lies in memory alone.
const programFile = "program.json"

// bindingsTree is the directory of a container's Files.
const bindingsTree = "bindings"

// treeName is the directory of the nth of a container's Trees.
func treeName(n int) string { return "tree-" + strconv.Itoa(n) }

// errNoFiles says that a container was started without Files, and so has
// nowhere to put them.
var errNoFiles = errors.New("instance has no volume mounted files")

// errGone says that a container is not what it was: its first process has ended,
// or what it does is lost.
var errGone = errors.New("missing garden container")

// makeMemory makes what of the container lies in memory.
func (b *build) makeMemory(context.Context) error {
	files := b.cell.cfg.Files
	if err := files.Create(b.guid(), b.users().Base, len(b.full.Trees) > 0); err != nil {
		return err
	}
	program, err := json.Marshal(b.full)
	if err != nil {
		return fmt.Errorf("encode program: %w", err)
	}
	if err := files.Keep(b.guid(), programFile, program); err != nil {
		return fmt.Errorf("keep program: %w", err)
	}
	if err := b.makeCredentials(); err != nil {
		return err
	}
	b.update(func(r *record) { r.User = loginOf(b.user) })
	for n, t := range b.full.Trees {
		if err := files.Replace(b.guid(), treeName(n), b.user.GID, b.addressed(t.Files)); err != nil {
			return fmt.Errorf("write %s: %w", t.Path, err)
		}
	}
	mounted := b.full.AllFiles()
	if mounted == nil {
		return nil
	}
	if err := files.Replace(b.guid(), bindingsTree, b.user.GID, mounted); err != nil {
		return &blame{"failed to create volume mounted files", err}
	}
	b.update(func(r *record) { r.FilesDigest, r.FilesSince = lrp.FilesDigest(mounted), time.Now() })
	return nil
}

func (c *Cell) removeMemory(_ context.Context, guid string) error { return c.cfg.Files.Remove(guid) }

// program is what an earlier daemon's container does.
func (i *instance) program() (lrp.Container, error) {
	var full lrp.Container
	content, err := i.cell.cfg.Files.Kept(i.guid(), programFile)
	if err == nil {
		err = json.Unmarshal(content, &full)
	}
	if err != nil {
		return full, fmt.Errorf("read program: %w", err)
	}
	return full, nil
}

// memoryMounts show the container what of its memory it may see.
func (b *build) memoryMounts() []container.Mount {
	mounts := b.credentialMounts()
	for n, t := range b.full.Trees {
		mounts = append(mounts, container.Mount{Source: b.cell.cfg.Files.Path(b.guid(), treeName(n)), Destination: path.Clean("/" + t.Path), ReadOnly: true})
	}
	if b.record().FilesDigest != "" {
		mounts = append(mounts, b.memoryMount(bindingsTree, lrp.FilesPath))
	}
	return mounts
}

func (b *build) memoryMount(tree, at string) container.Mount {
	return container.Mount{Source: b.cell.cfg.Files.Path(b.guid(), tree), Destination: at, ReadOnly: true, NoExec: true}
}

// setFiles gives a container other Files, all at once: a process that
// reads them sees the old ones or the new. The error is errNotRunning, or
// errNoFiles for a container that was started without (Files that are not nil,
// and none, make it ready for some).
func (c *Cell) setFiles(guid string, files []lrp.File) error {
	<-c.adopted
	i := c.instance(guid)
	if i == nil {
		return errNotRunning
	}
	rec := i.record()
	switch {
	case rec.Phase == lrp.PhaseStopping, rec.Phase == lrp.PhaseExited, rec.Phase == lrp.PhaseCreating && rec.FilesDigest == "":
		return errNotRunning
	case rec.FilesDigest == "":
		return errNoFiles
	}
	if err := c.cfg.Files.Replace(guid, bindingsTree, rec.User.GID, files); err != nil {
		return fmt.Errorf("replace volume mounted files: %w", err)
	}
	i.update(func(r *record) { r.FilesDigest, r.FilesSince = lrp.FilesDigest(files), time.Now() })
	i.logf("Cell %s replaced the service binding files of instance %s", i.cellID(), guid)
	return nil
}
