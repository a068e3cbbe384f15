package server

import (
	"context"
	"net"

	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/server/reconcile"
	"cupola/store/cf"
)

func (h *daemon) loopConfig(ctx context.Context) reconcile.Config {
	return reconcile.Config{Store: h.store, Cells: h.loopCells(ctx), API: h.apiURL(), Pull: h.images.Pull, BBS: h.desired, Sources: []reconcile.Source{{Desired: h.dataDesired}, h.director.Source()}, Observe: h.metrics.Converged, Logs: h.logLine, Log: h.Log}
}

// loopCells are the logical cells, which drain what they stop until ctx ends.
func (h *daemon) loopCells(ctx context.Context) (all []reconcile.Cell) {
	for _, p := range h.cell.Parts() {
		all = append(all, reconcile.Draining(ctx, p, h.ingress.Settle))
	}
	return all
}

// retire has an instance replaced.
func (h *daemon) retire(p *cf.Process, a *cf.App, index int) {
	key := lrp.Key{ProcessGUID: desire.ProcessGUID(p, a), Index: index}
	if err := h.loop.Retire(context.Background(), key); err != nil {
		h.Log.Error("instance not retired", "process_guid", p.GUID, "index", index, "err", err)
	}
}

// apiURL is the API as apps are told it in VCAP_APPLICATION.
func (h *daemon) apiURL() string {
	_, port, _ := net.SplitHostPort(h.HTTP)
	return "http://" + net.JoinHostPort(h.APIHost(), port)
}
