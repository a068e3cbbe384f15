package server

import (
	"context"
	"net"

	"cupola/runtime/lrp"
	"cupola/server/bbs"
	"cupola/server/front"
	"cupola/store"
)

func (d *daemon) openBBS() {
	d.bbs = bbs.New(bbs.Config{Store: d.store, Rows: d.desired, Look: d.loop.Look, Cells: d.presences, Log: d.Log,
		Apps: func(tx *store.Tx) (list []bbs.App, err error) {
			apps, err := d.loop.Apps(tx)
			for _, a := range apps {
				list = append(list, bbs.App(a))
			}
			return list, err
		}})
}

func (d *daemon) presences() (all []lrp.Cell) {
	for _, p := range d.cell.Parts() {
		all = append(all, p.Presence())
	}
	return all
}

// prepareBBS writes what clients of l need, if there is one, before the daemon
// says that it is ready.
func (d *daemon) prepareBBS(l net.Listener) error {
	if l == nil {
		return nil
	}
	d.bbsEndpoint = &bbs.Endpoint{DataDir: d.DataDir, Address: d.BBS, APIHost: d.APIHost(), IPs: front.Addresses(), Own: d.BBSFiles, Log: d.Log}
	return d.bbsEndpoint.Prepare()
}

// serveBBS answers the clients of l, if there is one.
func (d *daemon) serveBBS(ctx context.Context, l net.Listener) error {
	if l == nil {
		return nil
	}
	return d.bbs.Serve(ctx, l, d.bbsEndpoint.TLS())
}
