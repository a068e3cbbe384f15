package server

import (
	"context"
	"net"

	"cupola/runtime/lrp"
	"cupola/server/databroker"
	"cupola/server/desire"
	"cupola/server/reconcile"
	"cupola/store/cf"
)

func (d *daemon) loopConfig(ctx context.Context) reconcile.Config {
	sources := []reconcile.Source{d.director.Source()}
	if len(d.DataServices) > 0 {
		sources = append([]reconcile.Source{{Desired: databroker.AllDesired}}, sources...)
	}
	return reconcile.Config{Store: d.store, Cells: d.loopCells(ctx), API: d.apiURL(), Pull: d.images.Pull, BBS: d.desired, Sources: sources, Observe: d.metrics.Converged, Logs: d.logs.Line, Log: d.Log}
}

// loopCells are the logical cells, which drain what they stop until ctx ends.
func (d *daemon) loopCells(ctx context.Context) (all []reconcile.Cell) {
	for _, p := range d.cell.Parts() {
		all = append(all, reconcile.Draining(ctx, p, d.ingress.Settle))
	}
	return all
}

// retire has an instance replaced.
func (d *daemon) retire(p *cf.Process, a *cf.App, index int) {
	key := lrp.Key{ProcessGUID: desire.ProcessGUID(p, a), Index: index}
	if err := d.loop.Retire(context.Background(), key); err != nil {
		d.Log.Error("instance not retired", "process_guid", p.GUID, "index", index, "err", err)
	}
}

// apiURL is the API as apps are told it in VCAP_APPLICATION.
func (d *daemon) apiURL() string {
	_, port, _ := net.SplitHostPort(d.HTTP)
	return "http://" + net.JoinHostPort(d.APIHost(), port)
}
