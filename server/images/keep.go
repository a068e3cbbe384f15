package images

import (
	"context"
	"errors"
	"io"
	"os"

	"cupola/rootfs/layer"
	"cupola/runtime/contract"
	"cupola/runtime/durable"
	"cupola/runtime/lrp"
	"cupola/server/desire"
)

// Keep stores an output of a task as a blob. A droplet is unpacked as its instances will have it, and stored like that; what it has
// of the package like is not stored again. Where the very same one is there, damaged and in use, its archive is stored instead.
func (i Images) Keep(ctx context.Context, name string, f *os.File, like string) (lrp.Blob, error) {
	if name == desire.OutputDroplet {
		digest, size, err := i.Roots.Layers.Keep(ctx, f, layer.Layer{Dest: contract.Home, UID: contract.VcapID, GID: contract.VcapID}, like)
		if !errors.Is(err, layer.ErrNotKept) && !errors.Is(err, durable.ErrDamaged) {
			return lrp.Blob{Name: name, Digest: digest, Size: size}, err
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return lrp.Blob{}, err
		}
	}
	b, err := i.Blobs.Put(ctx, f)
	return lrp.Blob{Name: name, Digest: b.Digest, Size: b.Size}, err
}

// Whole reads the bits of a droplet. The error is fs.ErrNotExist if they are gone, and
// durable.ErrDamaged if they are not what was stored.
func (i Images) Whole(ctx context.Context, digest string) error {
	path, err := i.Blobs.Path(digest)
	if err != nil {
		return err
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return err
	}
	return i.Roots.Layers.WriteArchive(ctx, digest, io.Discard)
}
