package server

import (
	"context"
	"net"
	"os"
	"time"

	"cupola/runtime/lrp"
	"cupola/server/metrics"
	"cupola/store"
)

// bindMetrics binds the listener of scrapes; nil where there is to be none.
func bindMetrics(ctx context.Context, c *Config) (net.Listener, error) {
	if c.Metrics == "" || c.Metrics == "off" {
		return nil, nil
	}
	l, err := bind(ctx, c, "metrics", c.Metrics)
	if err != nil {
		return nil, err
	}
	c.Metrics = l.Addr().String()
	return l, nil
}

func (d *daemon) openMetrics(context.Context) error {
	began := time.Now()
	d.metrics = metrics.New(metrics.Config{Environment: d.Domain, Log: d.Log, State: func(ctx context.Context) (metrics.State, error) {
		s, err := d.meter(ctx)
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

// meter is what is now.
func (d *daemon) meter(ctx context.Context) (s metrics.State, err error) {
	err = d.store.Read(ctx, func(tx *store.Tx) (err error) {
		if s.Tally, err = tx.Tally(); err != nil {
			return err
		}
		s.Domains, err = tx.FreshDomains()
		return err
	})
	s.Domains = append(s.Domains, lrp.DomainApps, lrp.DomainTasks)
	s.Cells, s.Routes = d.cellUse(), d.router.Routes()
	stats := d.gate.Stats()
	s.Refused = stats.Refused
	s.Refused["user"] = d.apiSlots.Refused()
	for _, u := range stats.Uses {
		s.Budgets = append(s.Budgets, metrics.Budget(u))
	}
	s.WaitingWrites, s.LongWrites = d.store.WaitingWrites(), d.store.LongWrites()
	s.DBBytes, s.WALBytes = fileBytes(d.dir.Path("db", store.DatabaseFile)), fileBytes(d.dir.Path("db", store.DatabaseFile+"-wal"))
	return s, err
}

// fileBytes is 0 for a file that is not there.
func fileBytes(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
