package server

import (
	"context"
	"time"

	"cupola/store"
)

// forgetInterval is how long the log lines of a deleted app stay, at most twice:
// its instances say something while they end.
const forgetInterval = time.Minute

// forgetLogs deletes what the log cache has of apps that are gone, until ctx
// ends. Sources that never were apps of Cloud Controller's, such as LRPs of the
// BBS, are pushed out by others alone.
func (d *daemon) forgetLogs(ctx context.Context) error {
	ticker := time.NewTicker(forgetInterval)
	defer ticker.Stop()
	known := map[string]bool{} // apps, with those that are gone
	for {
		if err := d.forgetDeleted(ctx, known); err != nil && ctx.Err() == nil {
			d.Log.Warn("log lines of deleted apps were not looked for", "err", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (d *daemon) forgetDeleted(ctx context.Context, known map[string]bool) error {
	for source, app := range d.logs.Tagged("app_id") {
		if source == app {
			known[source] = true
		}
	}
	apps := map[string]bool{}
	err := d.store.Read(ctx, func(tx *store.Tx) error {
		all, _, err := store.Apps.List(tx, store.Query{})
		for _, a := range all {
			apps[a.GUID], known[a.GUID] = true, true
		}
		return err
	})
	if err != nil {
		return err
	}
	sources := d.logs.Meta()
	for guid := range known {
		if apps[guid] {
			continue
		}
		if _, ok := sources[guid]; ok {
			d.logs.Delete(guid)
		} else {
			delete(known, guid)
		}
	}
	return nil
}
