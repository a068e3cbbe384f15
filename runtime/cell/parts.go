package cell

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path"

	"cupola/rootfs/image"
	"cupola/rootfs/layer"
	"cupola/rootfs/reference"
	"cupola/rootfs/root"
	"cupola/rootfs/tree"
	"cupola/runtime/artifact"
	"cupola/runtime/lrp"
	"cupola/runtime/network"
)

// inodes is how many files a container may have: Diego's limit.
const inodes = 200_000

func (b *build) acquireNetwork(ctx context.Context) error {
	if b.badEgress != nil {
		return b.badEgress
	}
	net, err := b.attach(ctx)
	if err != nil {
		return err
	}
	b.net = net
	b.update(func(r *record) { r.Address = net.Address.String() })
	return b.cell.applyPolicies(ctx)
}

// attach gives b a network: that of its pod, where another container has it.
func (b *build) attach(ctx context.Context) (network.Attachment, error) {
	c := b.cell
	if b.full.Pod == "" {
		return c.cfg.Network.Acquire(ctx, b.guid())
	}
	c.podsMu.Lock()
	defer c.podsMu.Unlock()
	for _, i := range c.all() {
		if i.spec.Pod != b.full.Pod || i.guid() == b.guid() {
			continue
		}
		if net, err := c.cfg.Network.Share(ctx, b.guid(), i.guid()); !errors.Is(err, os.ErrNotExist) {
			return net, err
		}
	}
	return c.cfg.Network.Acquire(ctx, b.guid())
}

// releaseNetwork takes the policy away before the address is another's.
func (c *Cell) releaseNetwork(ctx context.Context, guid string) error {
	if i := c.instance(guid); i != nil {
		i.update(func(r *record) { r.Address = "" })
	}
	err := c.applyPolicies(ctx)
	return errors.Join(err, c.cfg.Network.Release(ctx, guid))
}

// mountRoot mounts the root with its shared layers, below which lie the cached
// dependencies.
func (b *build) mountRoot(ctx context.Context) error {
	layers, release, err := b.sharedLayers(ctx)
	defer release()
	if err != nil {
		return err
	}
	b.root, err = b.mount(ctx, root.Request{
		ID: b.guid(), Stack: b.cell.part(b.cellID()).rootFS(b.full.RootFS), Layers: layers,
		DiskBytes: int64(b.full.DiskMB) << 20, Inodes: inodes, Users: b.users(), ShowLayers: len(b.full.CachedDependencies) > 0,
	})
	if err != nil {
		return err
	}
	if b.user, err = b.lookUp(b.userName()); err != nil {
		return b.startError(err) // as where it is found out later
	}
	return nil
}

// mount mounts the root of an image that need not be here yet.
func (b *build) mount(ctx context.Context, req root.Request) (root.Root, error) {
	ref, err := reference.Parse(req.Stack)
	if err != nil || ref.Scheme == reference.SchemePreloaded {
		return b.cell.cfg.RootFS.Mount(ctx, req)
	}
	if ref.Digest != "" {
		root, err := b.cell.cfg.RootFS.Mount(ctx, req)
		if !errors.Is(err, image.ErrNotPulled) {
			return root, err
		}
	}
	image, err := b.cell.cfg.Images.Pull(ctx, ref, image.PullOptions{Username: b.full.ImageUsername, Password: b.full.ImagePassword})
	if err != nil {
		return root.Root{}, err
	}
	ref.Digest = image.Digest
	req.Stack = ref.String()
	return b.cell.cfg.RootFS.Mount(ctx, req)
}

// userName is whom the files of the container are for: the user of its first
// process.
func (b *build) userName() string {
	for _, r := range append(b.full.Action.Runs(), b.full.Setup.Runs()...) {
		return r.User
	}
	return ""
}

// sharedLayers fetches what is unpacked once a machine. The caller releases it,
// also when there is an error.
func (b *build) sharedLayers(ctx context.Context) (layers []layer.Layer, release func(), err error) {
	var files []artifact.File
	release = func() {
		for _, f := range files {
			f.Release()
		}
	}
	add := func(from lrp.Source, what, source, dest string, owner tree.Owner) error {
		from.CacheKey = cmp.Or(from.CacheKey, from.From)
		f, err := b.fetch(ctx, from, what, source)
		if err != nil {
			return &blame{"failed to download cached artifacts", err}
		}
		b.downloaded(what, source, f)
		files = append(files, f)
		layers = append(layers, layer.Layer{Digest: f.SHA256, Archive: f.Path, Dest: dest, UID: owner.UID, GID: owner.GID})
		return nil
	}
	for _, d := range b.full.CachedDependencies {
		if err := add(d.Source, d.Name, cmp.Or(d.LogSource, b.spec.Log.Source), path.Clean("/"+d.To), tree.Owner{}); err != nil {
			return nil, release, err
		}
	}
	for _, l := range b.full.Layers {
		if l.Exclusive {
			continue
		}
		if err := add(l.Source, l.Name, b.spec.Log.Source, l.Dest, layerOwner(b.userName())); err != nil {
			return nil, release, err
		}
	}
	return layers, release, nil
}

// extractLayers unpacks the layers that are this container's alone.
func (b *build) extractLayers(ctx context.Context) error {
	for _, l := range b.full.Layers {
		if !l.Exclusive {
			continue
		}
		archive, err := b.fetch(ctx, l.Source, l.Name, b.spec.Log.Source)
		if err != nil {
			return err
		}
		err = b.extractLayer(ctx, l, archive)
		archive.Release()
		if err != nil {
			return &blame{"Copying into the container failed: " + err.Error(), err}
		}
		b.downloaded(l.Name, b.spec.Log.Source, archive)
	}
	return nil
}

func (b *build) extractLayer(ctx context.Context, l lrp.Layer, archive artifact.File) error {
	owner := b.user
	if l.User != "" {
		u, err := b.lookUp(l.User)
		if err != nil {
			return err
		}
		owner = u
	}
	return b.cell.cfg.RootFS.Extract(ctx, b.guid(), archive.Path, l.Dest, tree.Owner{UID: owner.UID, GID: owner.GID})
}

// writeFiles writes the files that any container has.
func (b *build) writeFiles(context.Context) error {
	for _, f := range b.systemFiles() {
		if err := b.cell.cfg.RootFS.WriteFile(b.guid(), f.Path, f.Content, 0o644, 0, 0); err != nil {
			return err
		}
	}
	return nil
}
