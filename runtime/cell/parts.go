package cell

import (
	"context"
	"errors"
	"strings"

	"cupola/rootfs"
	"cupola/runtime/lrp"
)

// inodes is how many files a container may have: Diego's limit.
const inodes = 200_000

func (b *build) acquireNetwork(ctx context.Context) error {
	if b.badEgress != nil {
		return b.badEgress
	}
	net, err := b.cell.cfg.Network.Acquire(ctx, b.guid())
	if err != nil {
		return err
	}
	b.net = net
	b.update(func(r *record) { r.Address = net.Address.String() })
	return b.cell.applyPolicies(ctx)
}

// releaseNetwork takes the policy away before the address is another's.
func (c *Cell) releaseNetwork(ctx context.Context, guid string) error {
	if i := c.instance(guid); i != nil {
		i.update(func(r *record) { r.Address = "" })
	}
	err := c.applyPolicies(ctx)
	return errors.Join(err, c.cfg.Network.Release(ctx, guid))
}

func (b *build) mountRoot(ctx context.Context) error {
	owner := layerOwner(b.flat.Run.User)
	layers := make([]rootfs.Layer, len(b.full.Layers))
	for n, l := range b.full.Layers {
		digest := strings.TrimPrefix(l.From, lrp.BlobScheme)
		archive, err := b.cell.cfg.Blob(digest)
		if err != nil {
			return &blame{"failed to download cached artifacts", err}
		}
		layers[n] = rootfs.Layer{Digest: digest, Archive: archive, Dest: l.Dest, UID: owner.UID, GID: owner.GID}
	}
	root, err := b.cell.cfg.RootFS.Mount(ctx, rootfs.Request{
		ID: b.guid(), Stack: b.cell.part(b.cellID()).rootFS(b.full.RootFS), Layers: layers,
		DiskBytes: int64(b.full.DiskMB) << 20, Inodes: inodes,
	})
	if err != nil {
		return err
	}
	b.root = root
	b.user, err = b.lookUp(b.flat.Run.User)
	return err
}

func (b *build) extractInputs(ctx context.Context) error {
	for _, in := range b.flat.Inputs {
		if err := b.extract(ctx, in); err != nil && (!in.Optional || ctx.Err() != nil) {
			return err
		}
	}
	return nil
}

func (b *build) extract(ctx context.Context, in input) error {
	archive, err := b.cell.cfg.Blob(strings.TrimPrefix(in.From, lrp.BlobScheme))
	if err != nil {
		return &blame{"Downloading failed", err}
	}
	owner := rootfs.Owner{UID: b.user.UID, GID: b.user.GID}
	if err := b.cell.cfg.RootFS.Extract(ctx, b.guid(), archive, in.To, owner); err != nil {
		return &blame{"Copying into the container failed: " + err.Error(), err}
	}
	return nil
}

func (b *build) writeFiles(context.Context) error {
	files := append(b.systemFiles(), b.full.Files...)
	for _, f := range files {
		if err := b.cell.cfg.RootFS.WriteFile(b.guid(), f.Path, f.Content, 0o644, 0, 0); err != nil {
			return &blame{"failed to create volume mounted files", err}
		}
	}
	return nil
}
