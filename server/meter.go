package server

import (
	"context"
	"net"
	"time"

	"cupola/server/metrics"
	"cupola/store"
)

func (d *daemon) openMetrics(context.Context) error {
	began := time.Now()
	d.metrics = metrics.New(metrics.Config{Environment: d.Domain, Log: d.Log, State: func(ctx context.Context) (metrics.State, error) {
		s, err := d.sources().State(ctx)
		s.Uptime = time.Since(began)
		return s, err
	}})
	return nil
}

// serveMetrics answers the scrapes of l, if there is one.
func (d *daemon) serveMetrics(ctx context.Context, l net.Listener) error {
	if l == nil {
		return nil
	}
	return d.metrics.Serve(ctx, l)
}

// sources are what a scrape reads.
func (d *daemon) sources() metrics.Sources {
	return metrics.Sources{Store: d.store, Database: d.dir.Path("db", store.DatabaseFile), Cells: d.cellUse, Router: d.router, Gate: d.gate, API: d.apiSlots}
}
