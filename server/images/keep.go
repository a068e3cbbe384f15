package images

import (
	"context"
	"errors"
	"io"
	"os"

	"cupola/rootfs/layer"
	"cupola/runtime/contract"
	"cupola/runtime/lrp"
	"cupola/server/desire"
)

// Keep stores an output of a task as a blob. A droplet is unpacked as its instances will have it, and stored like that; what it has
// of the package like is not stored again.
func (i Images) Keep(ctx context.Context, name string, f *os.File, like string) (lrp.Blob, error) {
	if name == desire.OutputDroplet {
		digest, size, err := i.Roots.Layers.Keep(ctx, f, layer.Layer{Dest: contract.Home, UID: contract.VcapID, GID: contract.VcapID}, like)
		if !errors.Is(err, layer.ErrNotKept) {
			return lrp.Blob{Name: name, Digest: digest, Size: size}, err
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return lrp.Blob{}, err
		}
	}
	b, err := i.Blobs.Put(ctx, f)
	return lrp.Blob{Name: name, Digest: b.Digest, Size: b.Size}, err
}
