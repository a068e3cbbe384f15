package images

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"cupola/rootfs/image"
	"cupola/rootfs/layer"
	"cupola/rootfs/packed"
	"cupola/rootfs/registry"
	"cupola/runtime/contract"
	"cupola/runtime/lifecycle"
	"cupola/runtime/lrp"
	"cupola/server/api"
	"cupola/server/desire"
	"cupola/store/cf"
)

// PackDroplet makes an image of a droplet, with the root that its containers have here.
func (i Images) PackDroplet(ctx context.Context, droplet *cf.Droplet, command string, progress func(api.PackStep)) (registry.Image, error) {
	of := desire.ImageOf(droplet, command)
	r, err := i.request(of.RootFS, of.Layers)
	if err != nil {
		return registry.Image{}, err
	}
	r.Labels, r.Config = of.Labels, image.Config{User: of.User, Env: of.Env, Entrypoint: of.Entrypoint, Cmd: of.Cmd, WorkingDir: of.Workdir}
	r.Progress = func(what string, done, total int64) { progress(api.PackStep{What: what, Done: done, Total: total}) }
	for _, p := range of.Ports {
		r.Config.ExposedPorts = append(r.Config.ExposedPorts, strconv.Itoa(int(p.Port))+"/"+p.Protocol)
	}
	return i.Roots.Packed.Pack(ctx, r)
}

// request asks for an image of a root with layers that are blobs of apps, and the programs of the lifecycle.
func (i Images) request(rootFS string, layers []lrp.Layer) (packed.Request, error) {
	r := packed.Request{Stack: rootFS, Own: packed.Archive{Name: "launcher", Write: lifecycle.WriteTar}}
	for _, l := range layers {
		digest, blob := strings.CutPrefix(l.From, lrp.BlobScheme)
		if !blob {
			return r, fmt.Errorf("no image can be made of %s", l.From)
		}
		archive, err := i.Blobs.Path(digest)
		if err != nil {
			return r, err
		}
		r.Layers = append(r.Layers, layer.Layer{Digest: digest, Archive: archive, Dest: l.Dest, UID: contract.VcapID, GID: contract.VcapID})
	}
	return r, nil
}

// tellAfter is how long a layer may take in silence.
const tellAfter = time.Second

// PackRoot makes an image of what a container of this machine would have for its root: its stack or image with its layers, and
// the programs of the lifecycle; of a staging, also what stages. It tells of each layer that takes more than a moment.
func (i Images) PackRoot(ctx context.Context, of lrp.RunInfo, tell func(what string)) (registry.Image, error) {
	r, err := i.request(of.RootFS, of.Layers)
	if err != nil {
		return registry.Image{}, err
	}
	if of.ResultFile != "" {
		r.Own = packed.Archive{Name: "stager", Write: lifecycle.WriteStagerTar}
	}
	begun, reported := map[string]time.Time{}, map[string]bool{}
	r.Progress = func(what string, _, _ int64) {
		if begun[what].IsZero() {
			begun[what] = time.Now()
		} else if !reported[what] && time.Since(begun[what]) > tellAfter {
			reported[what] = true
			tell(what)
		}
	}
	return i.Roots.Packed.Pack(ctx, r)
}

// OpenLayer opens a layer of an image of a droplet.
func (i Images) OpenLayer(droplet *cf.Droplet, image, layer string) (*os.File, error) {
	return i.Roots.Packed.Open(image, droplet.Digest, layer)
}
