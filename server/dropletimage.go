package server

import (
	"context"
	"os"
	"strconv"

	"cupola/rootfs"
	"cupola/runtime/contract"
	"cupola/runtime/lifecycle"
	"cupola/server/api"
	"cupola/server/desire"
	"cupola/store/cf"
)

// packDroplet makes an image of a droplet, with the root that its containers have here.
func (d *daemon) packDroplet(ctx context.Context, droplet *cf.Droplet, command string, progress func(api.PackStep)) (rootfs.Packed, error) {
	of := desire.ImageOf(droplet, command)
	r := rootfs.PackRequest{
		Stack: of.RootFS, Own: rootfs.Archive{Name: "launcher", Write: lifecycle.WriteTar}, Labels: of.Labels,
		Config:   rootfs.ImageConfig{User: of.User, Env: of.Env, Entrypoint: of.Entrypoint, Cmd: of.Cmd, WorkingDir: of.Workdir},
		Progress: func(what string, done, total int64) { progress(api.PackStep{What: what, Done: done, Total: total}) },
	}
	for _, p := range of.Ports {
		r.Config.ExposedPorts = append(r.Config.ExposedPorts, strconv.Itoa(int(p.Port))+"/"+p.Protocol)
	}
	for _, l := range of.Layers {
		archive, err := d.blobs.Path(droplet.Digest)
		if err != nil {
			return rootfs.Packed{}, err
		}
		r.Layers = append(r.Layers, rootfs.Layer{Digest: droplet.Digest, Archive: archive, Dest: l.Dest, UID: contract.VcapID, GID: contract.VcapID})
	}
	return d.roots.Pack(ctx, r)
}

// packedLayer opens a layer of an image of a droplet.
func (d *daemon) packedLayer(droplet *cf.Droplet, image, layer string) (*os.File, error) {
	return d.roots.OpenPacked(image, droplet.Digest, layer)
}
