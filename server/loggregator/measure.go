package loggregator

import (
	"context"
	"maps"
	"time"

	"cupola/runtime/cell"
	"cupola/server/logcache"
)

// measureInterval is how often containers are measured (Diego).
const measureInterval = 15 * time.Second

// Measure keeps what containers use in the log cache, until ctx ends.
func (s *Stream) Measure(ctx context.Context, measure func() []cell.Measured) error {
	tags := map[string]map[string]string{} // by container
	ticker := time.NewTicker(measureInterval)
	defer ticker.Stop()
	for {
		now, seen := time.Now(), map[string]map[string]string{}
		for _, m := range measure() {
			if m.Log.GUID == "" {
				continue
			}
			t, ok := tags[m.GUID]
			if !ok {
				t = withOrigin(m.Log.Tags, "rep")
			}
			seen[m.GUID] = t
			s.Cache.Append(logcache.Envelope{Timestamp: now, SourceID: m.Log.GUID, InstanceID: m.Log.Instance, Tags: t, Kind: logcache.Gauge, Metrics: metricsOf(m)})
		}
		tags = seen
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func withOrigin(tags map[string]string, origin string) map[string]string {
	tags = maps.Clone(tags)
	if tags == nil {
		tags = map[string]string{}
	}
	tags["origin"] = origin
	return tags
}

// metricsOf are the metrics of a container by Diego's names and units.
func metricsOf(m cell.Measured) []logcache.Metric {
	return []logcache.Metric{
		{Name: "cpu", Unit: "percentage", Value: m.CPUPercent},
		{Name: "cpu_entitlement", Unit: "percentage", Value: m.Entitlement * 100},
		{Name: "memory", Unit: "bytes", Value: float64(m.MemoryBytes)},
		{Name: "memory_quota", Unit: "bytes", Value: float64(m.MemoryQuota)},
		{Name: "disk", Unit: "bytes", Value: float64(m.DiskBytes)},
		{Name: "disk_quota", Unit: "bytes", Value: float64(m.DiskQuota)},
		{Name: "log_rate", Unit: "B/s", Value: float64(m.LogRate)},
		{Name: "log_rate_limit", Unit: "B/s", Value: float64(m.LogRateLimit)},
		{Name: "absolute_usage", Unit: "nanoseconds", Value: float64(m.CPU)},
		{Name: "absolute_entitlement", Unit: "nanoseconds", Value: m.EntitledCPU * float64(m.Uptime)},
		{Name: "container_age", Unit: "nanoseconds", Value: float64(m.Uptime)},
	}
}
