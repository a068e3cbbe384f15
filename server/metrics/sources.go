package metrics

import (
	"context"
	"os"

	"cupola/runtime/lrp"
	"cupola/server/bulkhead"
	"cupola/server/logstream"
	"cupola/server/router"
	"cupola/store"
)

// Sources are the parts that a state is read from.
type Sources struct {
	Store    *store.Store
	Database string // its file
	Cells    func() []lrp.CellUse
	Router   *router.Router
	Gate     *router.Gate
	API      *bulkhead.Share[string] // requests of the API
	Streams  *logstream.Hub          // of logs
}

// State is what is now, but for the uptime.
func (from Sources) State(ctx context.Context) (s State, err error) {
	err = from.Store.Read(ctx, func(tx *store.Tx) (err error) {
		if s.Tally, err = tx.Tally(); err != nil {
			return err
		}
		if s.Domains, err = store.BBSDomains.Fresh(tx); err != nil {
			return err
		}
		if s.Alerts, err = store.Alerts.Firing(tx); err != nil {
			return err
		}
		targets, err := store.AlertTargets.All(tx)
		for _, t := range targets {
			if !t.FailingSince.IsZero() {
				s.FailingTargets++
			}
		}
		return err
	})
	s.Domains = append(s.Domains, lrp.DomainApps, lrp.DomainTasks)
	s.Cells, s.Routes = from.Cells(), from.Router.Routes()
	stats := from.Gate.Stats()
	s.Refused = stats.Refused
	s.Refused["user"] = from.API.Refused()
	for _, u := range stats.Uses {
		s.Budgets = append(s.Budgets, Budget(u))
	}
	s.LogStreams, s.DroppedEnvelopes = from.Streams.Listening(), from.Streams.Dropped()
	s.WaitingWrites, s.LongWrites = from.Store.WaitingWrites(), from.Store.LongWrites()
	s.DBBytes, s.WALBytes = fileBytes(from.Database), fileBytes(from.Database+"-wal")
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
