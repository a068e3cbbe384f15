package faces

import (
	"context"
	"time"

	"cupola/server/metrics"
	"cupola/store"
)

// OpenMetrics opens the metrics. A scrape reads the parts, which are open by then.
func (f *Faces) OpenMetrics(context.Context) error {
	x, began := f.Executor, time.Now()
	f.Metrics = metrics.New(metrics.Config{Environment: x.Domain, Export: x.Telemetry.Config(), Version: x.Version, Log: x.Log, State: func(ctx context.Context) (metrics.State, error) {
		s, err := metrics.Sources{Store: x.Store, Database: x.Dir.Path("db", store.DatabaseFile), Cells: x.CellUse, Router: f.Router, Gate: f.gate, API: f.slots, Streams: &x.Logs.Hub}.State(ctx)
		s.Uptime = time.Since(began)
		if st, ok := f.certs.Status(); ok {
			s.ACME = &st
		}
		if f.BackupsBehind != nil {
			s.BackupsBehind = f.BackupsBehind()
		}
		return s, err
	}})
	x.Trace = f.Metrics.TraceContainer()
	return nil
}
