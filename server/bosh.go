package server

import (
	"context"

	"cupola/runtime/lrp"
	"cupola/server/api"
	"cupola/server/bosh/director"
	"cupola/server/bosh/resolve"
)

func (d *daemon) openDirector() {
	r := &resolve.Resolver{Containers: d.containers, Roots: d.roots, Users: d.owners, States: d.dir.Path("cell"), Images: d.images, Log: d.Log}
	d.director = director.New(director.Config{Store: d.store, Volumes: d.volumes, Resolve: r.Resolve, AZ: d.cellsOf, Log: d.Log})
}

// cellsOf are the tags of an AZ that is made of logical cells: its name, if a
// cell has that as a tag.
func (d *daemon) cellsOf(az string) []string {
	for _, p := range d.cell.Parts() {
		if (lrp.Constraint{Require: []string{az}}).Allows(p.Presence().Tags) && az != "" {
			return []string{az}
		}
	}
	return nil
}

func (d *daemon) renderBOSH(ctx context.Context, r api.RenderRequest) (*api.Rendered, error) {
	return resolve.Kube(ctx, d.director, r)
}
