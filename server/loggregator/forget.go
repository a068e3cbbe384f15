package loggregator

import (
	"context"
	"slices"
	"time"

	"cupola/server/databroker"
	"cupola/server/logcache"
	"cupola/store"
)

// forgetInterval is how long the log lines of a deleted app stay, at most twice:
// its instances say something while they end.
const forgetInterval = time.Minute

// Forget deletes what the log cache has of apps and service instances that are gone, until ctx
// ends. Sources that never were such, like LRPs of the BBS, are pushed out by others alone. What stays is packed.
func (s *Stream) Forget(ctx context.Context) error {
	ticker := time.NewTicker(forgetInterval)
	defer ticker.Stop()
	known := map[string]bool{} // apps and service instances, with those that are gone
	for {
		s.Cache.Pack()
		if err := s.forgetDeleted(ctx, known); err != nil && ctx.Err() == nil {
			s.Log.Warn("log lines of deleted apps and service instances were not looked for", "err", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// forgetUnscrubbed deletes what an earlier cupola kept of the logs of service instances: only admins could read it, and secrets were not
// taken out of it. Its lines do not name the instance.
func (s *Stream) forgetUnscrubbed() {
	err := s.Store.Read(context.Background(), func(tx *store.Tx) error {
		instances, err := store.DataInstances.All(tx)
		for _, i := range slices.Concat(instances, store.DataInstances.Damaged(tx)) {
			unscrubbed := false
			s.Cache.Newest(i.GUID, func(e *logcache.Envelope) bool {
				unscrubbed = e.Tags[databroker.TagInstance] == ""
				return false
			})
			if unscrubbed {
				s.Cache.Delete(i.GUID)
			}
		}
		return err
	})
	if err != nil {
		s.Log.Warn("logs of service instances that an earlier version kept were not deleted", "err", err)
	}
}

func (s *Stream) forgetDeleted(ctx context.Context, known map[string]bool) error {
	unknown := func(source string) bool { return !known[source] }
	for _, tag := range []string{tagApp, databroker.TagInstance} {
		for source, owner := range s.Cache.Tagged(tag, unknown) {
			if source == owner {
				known[source] = true
			}
		}
	}
	there := map[string]bool{}
	err := s.Store.Read(ctx, func(tx *store.Tx) error {
		apps, err := store.Apps.GUIDs(tx)
		if err != nil {
			return err
		}
		instances, err := store.DataInstances.GUIDs(tx)
		for _, guid := range slices.Concat(apps, instances) {
			there[guid], known[guid] = true, true
		}
		return err
	})
	if err != nil {
		return err
	}
	sources := s.Cache.Sources()
	for source, owned := range sources {
		if owned {
			known[source] = true
		}
	}
	for guid := range known {
		if there[guid] {
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
