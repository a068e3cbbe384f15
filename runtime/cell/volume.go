package cell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"cupola/rootfs/volume"
	"cupola/runtime/container"
	"cupola/runtime/lrp"
	"cupola/runtime/users"
)

// errNoVolumes says that the cell has no directories that outlive containers.
var errNoVolumes = errors.New("cell has no volumes")

// How long a volume that only one container may have is waited for, and how
// often it is looked whether it is free.
const (
	volumeWait  = 30 * time.Second
	volumeLooks = 50 * time.Millisecond
)

// awaitVolumes waits until the volumes that the container wants for itself alone
// are free.
func (b *build) awaitVolumes(ctx context.Context) error {
	for _, v := range b.full.Volumes {
		if b.cell.cfg.Volumes == nil {
			return errNoVolumes
		}
		if err := b.awaitVolume(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

// Volumes makes volumes, or directories of them, available at places that no
// container can change, with files owned by the container's users. Show
// creates a missing directory if it gets an owner; "" is the whole volume.
// Hide removes a container's places, if there are any.
type Volumes interface {
	Match(name, pattern string) (dirs []string, err error)
	Show(container string, n int, to users.Range, name, dir string, owner *volume.Owner) (at string, err error)
	Hide(container string) error
}

// showVolumes finds the sources of the container's volume mounts.
func (b *build) showVolumes(context.Context) error {
	volumes, err := b.matched()
	if err != nil {
		return &blame{"failed to mount volume", err}
	}
	for n, v := range volumes {
		var owner *volume.Owner
		if v.Owner != "" {
			u, err := b.lookUp(v.Owner)
			if err != nil {
				return err
			}
			owner = &volume.Owner{UID: u.UID, GID: u.GID}
		}
		at, err := b.cell.cfg.Volumes.Show(b.guid(), n, b.users(), v.Name, v.Dir, owner)
		missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
		if v.Dir != "" && v.Optional && missing {
			continue
		}
		if err != nil {
			return &blame{"failed to mount volume", err}
		}
		b.volumes = append(b.volumes, container.Mount{Source: at, Destination: path.Clean(v.Path), ReadOnly: v.ReadOnly, NoExec: v.NoExec})
	}
	return nil
}

// matched returns the container's volumes, those that match instead of patterns. What another volume shows is left to that.
func (b *build) matched() (all []lrp.Volume, err error) {
	for _, v := range b.full.Volumes {
		if !v.Pattern {
			all = append(all, v)
			continue
		}
		dirs, err := b.cell.cfg.Volumes.Match(v.Name, v.Dir)
		if err != nil {
			return nil, err
		}
		for _, dir := range dirs {
			one := v
			one.Dir, one.Path, one.Optional = dir, strings.TrimSuffix(v.Path, v.Dir)+dir, true
			if !slices.ContainsFunc(b.full.Volumes, func(other lrp.Volume) bool { return other.Path == one.Path }) {
				all = append(all, one)
			}
		}
	}
	return all, nil
}

func (c *Cell) hideVolumes(_ context.Context, guid string) error {
	if c.cfg.Volumes == nil {
		return nil
	}
	return c.cfg.Volumes.Hide(guid)
}

// awaitVolume waits until no other container has a volume that only one may
// have.
func (b *build) awaitVolume(ctx context.Context, v lrp.Volume) error {
	ctx, cancel := context.WithTimeoutCause(ctx, volumeWait, fmt.Errorf("volume %s is another container's", v.Name))
	defer cancel()
	for v.Exclusive && b.cell.volumeTaken(b.instance, v.Name) {
		select {
		case <-time.After(volumeLooks):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// volumeTaken reports whether a container that was there before i has a volume.
func (c *Cell) volumeTaken(i *instance, name string) bool {
	return slices.ContainsFunc(c.all(), func(other *instance) bool {
		return other != i && other.order < i.order &&
			slices.ContainsFunc(other.spec.Volumes, func(v lrp.Volume) bool { return v.Name == name })
	})
}
