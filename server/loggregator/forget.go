package loggregator

import (
	"context"
	"time"

	"cupola/store"
)

// forgetInterval is how long the log lines of a deleted app stay, at most twice:
// its instances say something while they end.
const forgetInterval = time.Minute

// Forget deletes what the log cache has of apps that are gone, until ctx
// ends. Sources that never were apps of Cloud Controller's, such as LRPs of the
// BBS, are pushed out by others alone.
func (s *Stream) Forget(ctx context.Context) error {
	ticker := time.NewTicker(forgetInterval)
	defer ticker.Stop()
	known := map[string]bool{} // apps, with those that are gone
	for {
		if err := s.forgetDeleted(ctx, known); err != nil && ctx.Err() == nil {
			s.Log.Warn("log lines of deleted apps were not looked for", "err", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *Stream) forgetDeleted(ctx context.Context, known map[string]bool) error {
	for source, app := range s.Cache.Tagged("app_id") {
		if source == app {
			known[source] = true
		}
	}
	apps := map[string]bool{}
	err := s.Store.Read(ctx, func(tx *store.Tx) error {
		all, err := store.Apps.All(tx)
		for _, a := range all {
			apps[a.GUID], known[a.GUID] = true, true
		}
		return err
	})
	if err != nil {
		return err
	}
	sources := s.Cache.Sources()
	for source, app := range sources {
		if app {
			known[source] = true
		}
	}
	for guid := range known {
		if apps[guid] {
			continue
		}
		if _, ok := sources[guid]; ok {
			s.Cache.Delete(guid)
		} else {
			delete(known, guid)
		}
	}
	return nil
}
